"""Pages of our own, of the kinds a crawl is made of, for comparing extractors with the reference's.

Nothing of gristmill is imported here: the reference's environment reads this file too, for
`tools/conformance/html_pages.py`.
"""

ENGLISH = (
    "The mill stands where the road crosses the river, and it has been there for as long as anybody can remember.",
    "In the spring the water is high, and the wheel turns by day and by night until all of the grain is ground.",
    "Those who bring their wheat to it wait in the yard, and they talk about the weather and the price of bread.",
    "There was a time when the miller was the only one who could write, and he kept the books for all of them.",
    "When the new road was built, most of them thought that the mill would have to close before the end of it.",
    "It did not, because what comes out of it is better than what can be had in the town, and it costs no more.",
    "A few of the stones are more than two hundred years old, and it takes a week to dress them with a hammer.",
    "We asked whether there is one who will do this when he is gone, and he said that his daughter has begun.",
)
GERMAN = (
    "Die Mühle steht dort, wo die Straße den Fluss kreuzt, und sie steht dort, solange sich jemand erinnern kann.",
    "Im Frühjahr ist das Wasser hoch, und das Rad dreht sich bei Tag und bei Nacht, bis das ganze Korn gemahlen ist.",
    "Wer seinen Weizen bringt, wartet im Hof, und man spricht dort über das Wetter und den Preis des Brotes.",
    "Es gab eine Zeit, in der nur der Müller schreiben konnte, und er führte die Bücher für alle anderen im Dorf.",
)
JAPANESE = (
    "水車小屋は道が川を渡るところにあり、誰も覚えていないほど昔からそこにあります。",
    "春になると水かさが増え、すべての穀物がひかれるまで、水車は昼も夜も回り続けます。",
    "小麦を持ってくる人たちは庭で待ち、待っているあいだに天気やパンの値段について話をします。",
    "字を書けるのが粉屋だけだった時代もあり、彼は村のみんなのために帳簿をつけていました。",
)
MENU = "".join(
    f'<li><a href="/section/{name}">{name}</a></li>' for name in ("Home", "News", "Weather", "Sport", "Contact")
)


def _page(body: str, *, title: str = "The mill by the river", lang: str = "en") -> str:
    code = "<style>p { margin: 0 }</style><script>var a = '<p>';</script>"
    head = f"<head><meta charset=utf-8><title>{title}</title>{code}</head>"
    return f"<!DOCTYPE html>\n<html lang={lang}>{head}<body>{body}</body></html>"


def _paragraphs(sentences: tuple[str, ...], size: int) -> str:
    groups = [sentences[k : k + size] for k in range(0, len(sentences), size)]
    return "".join(f"<p>{' '.join(group)}</p>\n" for group in groups)


def _article(sentences: tuple[str, ...], size: int = 2) -> str:
    header = f"<header><nav><ul>{MENU}</ul></nav></header>"
    related = "".join(f'<li><a href="/story/{k}">Another story, number {k}</a></li>' for k in range(6))
    aside = f"<aside><h3>Related</h3><ul>{related}</ul></aside>"
    footer = "<footer><p>© 2024 The River Press. All rights reserved. <a href=/privacy>Privacy</a></p></footer>"
    body = f"<h1>The mill by the river</h1>{_paragraphs(sentences, size)}<h2>What comes next</h2><p>{sentences[0]}</p>"
    return header + f"<main><article>{body}</article></main>" + aside + footer


def _forum() -> str:
    posts = "".join(
        f'<div class="post" id="p{k}"><div class="author"><a href="/user/{k}">miller{k}</a> wrote:</div>'
        f'<div class="body"><p>{ENGLISH[k]}</p><blockquote>{ENGLISH[(k + 3) % 8]}</blockquote></div>'
        f'<div class="signature">-- <br>Grain is good</div><a href="#">Reply</a> <a href="#">Quote</a></div>'
        for k in range(5)
    )
    return f"<div id=menu><ul>{MENU}</ul></div><div id=thread><h1>Is stone better than steel?</h1>{posts}</div>"


def _shop() -> str:
    items = "".join(
        f'<tr><td><a href="/item/{k}">Flour, type {k}50</a></td><td>{k}.99</td><td>In stock</td></tr>'
        for k in range(1, 12)
    )
    head = "<tr><th>Name</th><th>Price</th><th></th></tr>"
    return f"<ul>{MENU}</ul><h1>Flour</h1><table>{head}{items}</table><p>{ENGLISH[5]}</p>"


def _manual() -> str:
    steps = "".join(f"<li>{sentence}</li>" for sentence in ENGLISH[:4])
    return (
        f"<nav><ul>{MENU}</ul></nav><div class=content><h1>How to dress a stone</h1><p>{ENGLISH[6]} {ENGLISH[7]}</p>"
        f"<h2>Steps</h2><ol>{steps}</ol><h2>Tools</h2><table><tr><td>hammer</td><td>{ENGLISH[0]}</td></tr>"
        f"<tr><td>chisel</td><td>{ENGLISH[1]}</td></tr></table>"
        f"<p>{ENGLISH[2]}<br><br>{ENGLISH[3]}<br>{ENGLISH[4]}</p></div>"
    )


def _broken() -> str:
    return (
        f"<div><p>{ENGLISH[0]}<p>{ENGLISH[1]} <b>{ENGLISH[2]}<div>{ENGLISH[3]}</p></b><ul>"
        f"<li>{ENGLISH[4]}<li>{ENGLISH[5]}</div><table><td>{ENGLISH[6]}<p>{ENGLISH[7]}&nbsp;&copy; &bogus; & < 3"
    )


PAGES: dict[str, tuple[str, str]] = {
    "article": ("ENGLISH", _page(_article(ENGLISH))),
    "short_paragraphs": ("ENGLISH", _page(_article(ENGLISH, 1))),
    "one_long_paragraph": ("ENGLISH", _page(_article(ENGLISH, 8))),
    "repeated": ("ENGLISH", _page(_article((ENGLISH[0], ENGLISH[1]) * 4))),
    "forum": ("ENGLISH", _page(_forum(), title="Forum")),
    "shop": ("ENGLISH", _page(_shop(), title="Shop")),
    "manual": ("ENGLISH", _page(_manual(), title="Manual")),
    "broken": ("ENGLISH", _broken()),
    "german": ("GERMAN", _page(_article(GERMAN), lang="de")),
    "japanese": ("JAPANESE", _page(_article(JAPANESE), lang="ja")),
    "menu_only": ("ENGLISH", _page(f"<ul>{MENU}</ul>")),
    "no_text": ("ENGLISH", _page("<img src=a.png alt='A picture of a mill'>")),
}
_ENGLISH_WORDS = """
a about all and as at be been before by can could did do for from had has he her his in is it its more most no
not of on one or out than that the their them there they this those to until was we what when where which
while who will with would
"""
_GERMAN_WORDS = "alle als bei bis das den der die dort er es für ganze gab hoch im in ist man nur sich sie und zeit"
STOP_WORDS: dict[str, frozenset[str]] = {
    "ENGLISH": frozenset(_ENGLISH_WORDS.split()),
    "GERMAN": frozenset(_GERMAN_WORDS.split()),
    "JAPANESE": frozenset("のにはをたがでてと"),
}
EXTRACTORS: dict[str, tuple[str, dict[str, object]]] = {
    "justext": ("JusTextExtractor", {}),
    "justext_all": ("JusTextExtractor", {"is_boilerplate": False}),
    "justext_other": (
        "JusTextExtractor",
        {"length_low": 20, "length_high": 100, "no_headings": True, "max_link_density": 0.5},
    ),
    "resiliparse": ("ResiliparseExtractor", {}),
    "resiliparse_all": (
        "ResiliparseExtractor",
        {"required_stopword_density": 0, "main_content": False, "alt_texts": True},
    ),
    "trafilatura": ("TrafilaturaExtractor", {}),
    "trafilatura_other": (
        "TrafilaturaExtractor",
        {"required_stopword_density": 0.1, "min_extracted_size": 10, "favor_recall": True, "deduplicate": False},
    ),
}
