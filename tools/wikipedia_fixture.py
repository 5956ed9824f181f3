"""Write tests/data/wikipedia_texts.jsonl: wikitext of our own, and the text that NeMo Curator's extractor makes of it.

Run it with the interpreter of an environment that has NeMo Curator (`make bench-peers`), from the repository:

    benchmarks/out/venvs/nemo-curator/bin/python tools/wikipedia_fixture.py
"""

import json
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "data" / "wikipedia_texts.jsonl"

ARTICLES: list[tuple[str, str]] = [
    ("en", "A '''mill''' is a [[machine]] that ''grinds'' [[grain|grains]].<ref>A book, p. 3.</ref>"),
    ("en", "{{Infobox mill\n| name = Old Mill\n| image = [[File:Mill.jpg|thumb]]\n}}\nThe '''Old Mill''' stands."),
    ("en", "Lead.\n\n== History ==\nFirst.\n\n=== Early ===\nSecond.\n\n== References ==\n{{reflist}}\n"),
    ("en", "[[File:Mill.jpg|thumb|A mill with a [[water wheel]], {{circa|1800}}]]\nText behind a picture."),
    ("en", "[[Image:a.png]] and [[media:b.ogg|sound]] and [[:File:c.png]] and [[:Category:Mills]]."),
    ("en", "Text.\n\n[[Category:Mills]]\n[[Category:Watermills|Old Mill]]\n[[category:x]]\n[[de:Mühle]]"),
    ("en", "* one\n* two\n** two and a half\n# three\n: four\n; five : six"),
    ("en", '{| class="wikitable"\n! Name !! Year\n|-\n| Old || 1800\n|-\n| colspan="2" | New\n|}\nBehind a table.'),
    ("en", "<table><tr><td>cell</td></tr></table>Behind."),
    ("en", "Water flows at {{convert|3|m/s|ft/s}} ({{lang|fr|moulin}})."),
    ("en", "The power is <math>P = \\rho g h Q</math> and <math display=block>E = mc^2</math>."),
    ("en", "See [http://example.org the page], [https://example.org], http://example.org/x and [//example.org y]."),
    ("en", "A<br>B<br/>C <small>small</small> <span style='x'>span</span> H<sub>2</sub>O m<sup>2</sup>"),
    ("en", "<!-- hidden -->Seen.<!-- [[hidden]]\nlines --> End."),
    ("en", "<nowiki>[[not]] ''markup''</nowiki> and <pre>\n pre  formatted\n</pre> and <code>code()</code>"),
    (
        "en",
        "<gallery>\nFile:a.jpg|One\nFile:b.jpg|Two\n</gallery>\nAfter <syntaxhighlight lang=c>int a;</syntaxhighlight>",
    ),
    ("en", "__NOTOC__\nNo table. __FORCETOC__ __lower__ __A1__"),
    ("en", "&nbsp;a&nbsp;b &amp; &lt;tag&gt; &eacute; &#233; &#xE9; &unknown; AT&T"),
    ("en", "Unclosed [[link and {{template and ''italics and <ref>reference.\n\nNext paragraph."),
    ("en", "Stray ]] and }} and </ref> and |} here."),
    ("en", "''''' both ''''' ''a'''b''c''' it''s '''''x'' y'''"),
    ("en", "{{a|{{b|{{c|[[d|e]]}}}}}} text {{{1|default}}} {{{2}}}"),
    ("en", "[[File:a.png|x [[File:b.png|y]] z]] nested [[a|b [[c]] d]]"),
    ("en", "==H1==\n==H2==\ntext\n====H4====\n[[File:x.png]]\n"),
    ("en", "A<ref name=a>one</ref> B<ref name=a /> C<ref>two {{cite|[[x]]}}</ref>"),
    ("en", ""),
    ("en", "   \n\n  "),
    ("en", "#REDIRECT [[Mill]]"),
    ("en", "Line one\nLine two\n\n\n\nParagraph two  with   spaces"),
    ("en", "[[Mill (grinding)|]] [[|x]] [[ a | b ]] [[a#b]] [[a#b|c]] [[a]]s"),
    (
        "de",
        "Eine '''Mühle''' ist eine [[Maschine]].\n[[Datei:Muehle.jpg|mini|Bild]] [[Bild:x.png]]\n[[Kategorie:Mühle]]",
    ),
    ("fr", "Un '''moulin''' est une [[machine]].[[Fichier:M.jpg|vignette]]\n[[Catégorie:Moulin]]\n[[Category:Mill]]"),
    ("es", "Un '''molino'''.[[Archivo:M.jpg|thumb]][[Imagen:N.jpg]]\n[[Categoría:Molinos]]"),
    ("ja", "'''水車'''は[[機械]]である。[[ファイル:水車.jpg|thumb|説明]][[画像:x.jpg]]\n[[カテゴリ:水車]]"),
    ("ru", "'''Мельница''' — [[машина]].[[Файл:Мельница.jpg|мини]][[файл:мельница.jpg]]\n[[Категория:Мельницы]]"),
    ("zh", "'''水車'''是[[機械]]。[[文件:水車.jpg|thumb]][[檔案:x.jpg]]\n[[分类:水車]]"),
    ("it", "Un '''mulino'''.[[Immagine:M.jpg]][[File:N.jpg]]\n[[Categoria:Mulini]]"),
    ("pl", "'''Młyn'''.[[Plik:M.jpg]][[Grafika:N.jpg]]\n[[Kategoria:Młyny]]"),
    ("pt", "Um '''moinho'''.[[Ficheiro:M.jpg]][[Imagem:N.jpg]]\n[[Categoria:Moinhos]]"),
]


def main() -> None:
    """Write the file."""
    from nemo_curator.stages.text.download.wikipedia.extract import WikipediaExtractor  # type: ignore[import-not-found]

    fields = ("title", "id", "url", "language", "source_id")
    lines = []
    for language, wikitext in ARTICLES:
        record = dict.fromkeys(fields, "") | {"raw_content": wikitext}
        made = WikipediaExtractor(language).extract(record)
        text = None if made is None else made["text"]
        lines.append(json.dumps({"language": language, "wikitext": wikitext, "text": text}, ensure_ascii=False))
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
