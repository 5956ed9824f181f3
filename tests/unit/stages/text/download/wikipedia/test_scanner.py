"""Wikitext becomes the text its readers see: construct by construct, in any nesting, of any bytes, in linear time."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.download.wikipedia import scanner as scanner_module
from gristmill.stages.text.download.wikipedia.scanner import WikitextScanner
from gristmill.stages.text.download.wikipedia.text_templates import text_templates

SCANNER = WikitextScanner("en")
CASES = {
    # Links
    "a [[b]] c": "a b c",
    "[[cat|dog]]s": "dogs",
    "[[cat|]]": "cat",
    "[[ Paris ]]": "Paris",
    "[[a|b|c]]": "b|c",
    "[[:Category:Cats]] and [[:File:A.png|a file]]": "Category:Cats and a file",
    "x [[File:A.png|thumb|A [[cat]] in {{convert|1|km}} of {{nothing}}]] y": "x y",
    "[[Image:A.png]]x[[image : a.png]]": "x",
    "text\n[[Category:Cats| ]]\n[[de:Katze]]\n": "text",
    "[[de]]": "de",
    "[[Star Wars: Episode I]]": "Star Wars: Episode I",
    "[http://a.org text] [https://b.org] [//c.org see ''this''] http://d.org": "text see this http://d.org",
    "[not a link] [[unclosed": "[not a link] [[unclosed",
    "[[no\nlink]] here": "[[no\nlink]] here",
    "[http://a.org unclosed\nnext [[line]]": "[http://a.org unclosed\nnext line",
    # Templates
    "a {{cite book|title=x|{{nested|[[y]]}}}} b": "a b",
    "{{lang|fr|déjà vu}} {{lang-de|Katze}} {{Lang|la|''a''}}": "déjà vu Katze a",
    "{{convert|100|km|mi|abbr=on}}": "100 km",
    "{{lang|fr|2=[[mot|mots]]}}": "mots",
    "{{frac|1|2}} 10{{e|6}} {{circa|1500}} a{{ndash}}b {{'}}": "1/2 10×10^6 c. 1500 a–b '",
    "{{hlist|a|b|c}}": "a, b, c",
    "{{formatnum:1234}} {{lc:ABC}} {{DEFAULTSORT:Key}} {{#if:x|y}}": "1234 ABC",
    "{{{1|default}}} {{{2}}}": "default",
    "{{{{{1}}}|x}}text": "text",
    "{{nowrap|1={{nowrap|a {{nothing}} b}}}}": "a b",
    "unclosed {{template|[[link]]": "unclosed {{template|link",
    "stray }} and ]] here": "stray }} and ]] here",
    "{{a|[[b}} c": "c",
    # Brackets that hold only what was dropped
    "Rome ({{IPA|x}}) is": "Rome is",
    "Rome ({{IPA|x}}, {{y}}; ) is": "Rome is",
    "Rome ({{lang|it|Roma}}) is": "Rome (Roma) is",
    "At {{x}}, Rome {{y}} is {{z}}. ": "At, Rome is.",
    "f() and main( )": "f() and main( )",
    # Tags, comments, entities
    "a<ref>b {{c}}</ref> d<ref name=x /> e<REF>f</ref >g": "a d eg",
    "a<!-- b --> c\n<!-- alone -->\nd": "a c\nd",
    "a <b>bold</b> <unknown>b</unknown> 1 < 2": "a bold <unknown>b</unknown> 1 < 2",
    "a<br>b<br/>c": "a\nb\nc",
    "E = mc<sup>2</sup>, 10<sup>−9</sup> m, the 1<sup>st</sup>": "E = mc^2, 10^−9 m, the 1st",
    "H<sub>2</sub>O": "H2O",
    "<nowiki>[[a]] ''b'' &amp;</nowiki>": "[[a]] ''b'' &",
    "<math>a &lt; b</math> and <math display='block'>\n c \\\\\n d</math>": "$a < b$ and $$c \\\\  d$$",
    "<ce>H2O</ce> <chem>CO2</chem>": "$\\ce{H2O}$ $\\ce{CO2}$",
    "x <source lang=c>\nint  a[[1]];\n\n\n  b &amp; c\n</source> y": "x\nint  a[[1]];\n\n\n  b &amp; c\ny",
    "a\n<pre>\n b  [[c]] &lt;\n</pre>": "a\n b  [[c]] <",
    "a<gallery>\nFile:x.jpg|text\n</gallery>b": "ab",
    "a <ref>never closed": "a never closed",
    "a <!-- never closed [[b]]": "a",
    "&nbsp;a&nbsp;b &eacute; &#233; &#xE9; AT&T &unknown; &amp": "\u00a0a\u00a0b é é é AT&T &unknown; &amp",
    # Lines
    "'''bold''' ''italic'' '''''both''''' it's 5' 6''": "bold italic both it's 5' 6",
    "''Ulysses'''s author ''a '''b''' c''": "Ulysses's author a b c",
    "* a\n** b\n# c\n: d\n; e": "a\nb\nc\nd\ne",
    "a\n\n\n\n\nb": "a\n\nb",
    "----\na  \nb": "a\nb",
    "__NOTOC__a __init__ b": "a __init__ b",
    # Headings
    "== H ==\ntext": "H\ntext",
    "=== H === <!-- c -->\ntext": "H\ntext",
    "= not\ntext =": "= not\ntext =",
    "a\n== Empty ==\n{{reflist}}\n== Full ==\nb\n== Last ==\n": "a\nFull\nb",
    "== Outer ==\n=== Inner ===\ntext": "Outer\nInner\ntext",
    "== Outer ==\n=== Inner ===\n== Next ==\ntext": "Next\ntext",
    # Tables
    "a\n{| class=x\n|-\n| b || c\n{|\n| nested\n|}\n|}\nd": "a\n\nd",
    "a\n:{|\n! b\n|}\nc": "a\n\nc",
    "{{x|\n{|\n| b\n|}\n}}a": "a",
    "{{Infobox\n| a = b\n|}}c": "c",
    "a<table><tr><td>b</td></tr></table>c": "ac",
    "{|\n| unclosed": "| unclosed",
}  # fmt: skip


@pytest.mark.parametrize(("wikitext", "text"), CASES.items())
def test_readers_see(wikitext, text):
    assert SCANNER.clean(wikitext) == text


def test_tables_can_be_kept_as_lines_of_cells():
    wikitext = (
        'a\n{| class="wikitable"\n|+ Caption\n! Name !! Size\n|-\n| align="left" | [[cat|Cat]] || 1\n|-\n'
        "| Dog\n| {{nowrap|2}}\n|}\nb"
    )
    assert WikitextScanner("en", tables=True).clean(wikitext) == "a\nCaption | Name | Size\nCat | 1\nDog | 2\n\nb"


def test_formulas_can_be_dropped():
    assert WikitextScanner("en", math=False).clean("a <math>b</math> <ce>c</ce> d") == "a d"


@pytest.mark.parametrize(
    ("language", "namespaces", "wikitext"),
    [
        ("de", (), "a[[Datei:x.png|Bild]][[Bild:x]][[Kategorie:y]][[en:z]]b"),
        ("ja", (), "a[[ファイル:x.png]][[画像:x]][[カテゴリ:y]]b"),
        ("ru", (), "a[[Файл:x.png]][[файл:x.png]][[ФАЙЛ:x.png]]b"),
        ("tlh", ("nagh", "Segh"), "a[[nagh:x.png]][[Segh:y]]b"),
    ],
)
def test_files_and_categories_have_the_names_of_their_language(language, namespaces, wikitext):
    assert WikitextScanner(language, namespaces=namespaces).clean(wikitext) == "ab"


def test_no_form_of_a_template_is_longer_than_its_call():
    for name, form in text_templates().items():
        own = form
        for number in range(1, 10):
            own = own.replace(f"{{{number}}}", "")
        own = own.replace("{all}", "").replace("{last}", "").replace("{list}", "")
        assert len(own.encode()) <= len(name.encode()) + len("{{}}"), name
        assert len(name.encode()) < lay.LONGEST_NAME


# Any nesting of well-formed constructs: what readers see of each is known when it is made.

words = st.text("abcdefgé日本", min_size=1, max_size=6)


def inline_nodes(children):
    pairs = st.tuples(words, children)
    return st.one_of(
        children.map(lambda c: (f"'''{c[0]}'''", c[1])),
        pairs.map(lambda p: (f"[[{p[0]}|{p[1][0]}]]", p[1][1] if p[1][1].strip() else p[0])),
        pairs.map(lambda p: (f"{{{{lang|fr|{p[1][0]}}}}}", p[1][1])),
        pairs.map(lambda p: (f"{{{{unknown {p[0]}|x={p[1][0]}|{p[1][0]}}}}}", "")),
        pairs.map(lambda p: (f"[[File:{p[0]}.png|thumb|{p[1][0]}]]", "")),
        children.map(lambda c: (f"<span class=x>{c[0]}</span>", c[1])),
        children.map(lambda c: (f"<ref>{c[0]}</ref>", "")),
        pairs.map(lambda p: (f"[http://a.org/{p[0]} {p[1][0]}]", p[1][1])),
        st.tuples(children, children).map(lambda p: (f"{p[0][0]} {p[1][0]}", f"{p[0][1]} {p[1][1]}")),
        words.map(lambda w: (f"<math>{w}</math>", f"${w}$")),
        words.map(lambda w: (f"<!-- [[{w}]] -->", "")),
    )


leaves = words.map(lambda w: (w, w)) | words.map(lambda w: (f"[[{w}]]", w))
nodes = st.recursive(leaves, inline_nodes, max_leaves=12)
# References cannot hold one another, and nobody knows which of six apostrophes are bold.
nodes = nodes.filter(lambda node: node[0].count("<ref>") < 2 and "''''" not in node[0])


@given(nodes)
def test_any_nesting_gives_the_text_of_its_parts(node):
    wikitext, text = node
    assert SCANNER.clean(f"x {wikitext} y").split() == f"x {text} y".split()


PIECES = """
{{ }} {{{ }}} [[ ]] [ ] | || ! !! {| |} |- |+ < > <ref> </ref> <ref/> <math> </math> <nowiki> </nowiki> <pre> </pre>
<table> </table> <br> <sup> 2</sup> <!-- --> & &amp; &#33; ' '' ''' ''''' = == === __NOTOC__ _ ( ) , ; : * # ---- //
http:// [http://a File: lang x é 日 {{lang| {{hlist| {{convert|
"""
pieces = st.sampled_from([*PIECES.split(), "\n", "\n\n", " ", "\n{|", "\n|}", "\n|", "\n==", "==\n", "\x00", "\r"])


@given(st.lists(pieces, max_size=60).map("".join), st.booleans(), st.booleans(), st.sampled_from([1, 3, 100]))
def test_any_text_is_cleaned_and_no_byte_beyond_the_room_is_touched(wikitext, math, tables, depth):
    scanner = WikitextScanner("en", math=math, tables=tables, max_depth=depth)
    content = wikitext.encode()
    guard = np.full(256, 0xAB, np.uint8)
    data = np.concatenate([np.frombuffer(content, np.uint8), np.zeros(lay.PADDING, np.uint8), guard])
    out = np.concatenate([np.zeros(3 * len(content) + 4 * lay.PADDING, np.uint8), guard])
    stack = np.full(depth * lay.ENTRY + 64, -7, np.int64)
    notes, spans = np.full(lay.NOTES + 16, -7, np.int64), np.full(2 * lay.MOST_SPANS + 16, -7, np.int64)
    slots, keys = scanner._slots, scanner._keys
    kernel = CompiledKernel("text.wikitext", "clean_wikitext")
    size = kernel(data, len(content), scanner._options, slots, len(slots) // lay.SLOT, keys, stack, notes, spans, out)
    assert 0 <= size <= 1.5 * len(content) + 3
    assert out[:size].tobytes().decode() == scanner.clean(wikitext)
    assert bytes(data[: len(content)]) == content
    assert (out[-256:] == 0xAB).all()
    assert all((array[-16:] == -7).all() for array in (stack, notes, spans))


@given(st.text())
def test_any_characters_come_out_as_characters(text):
    SCANNER.clean(text)


def test_halves_of_surrogate_pairs_are_replaced():
    assert SCANNER.clean("a\ud800b") == "a?b"


HOSTILE = [
    "{{", "{{a|", "}}", "[[", "[[a|", "]]", "{{{", "[http://a b ", "<ref>", "<ref", "<b ", "<!-- ", "''", "'''",
    "== a\n", "== a ==\n", "\n{|", "\n|}", "\n|", "{{lang|fr|", "&", "&#", "&amp", "__A", "_", "(", "(,", ")", "*",
    "<math>", "</ref>", "<table>", "</table>", "[[a|{{b|", "=", "\n", " ", "{{!}}", "\n{|\n|", "||", "!!",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("tables", [False, True])
def test_time_is_linear_whatever_is_repeated(piece, tables):
    scanner = WikitextScanner("en", tables=tables)
    scanner.clean(piece)

    def seconds(size):
        text = (piece * (size // len(piece) + 1))[:size]
        tries = []
        for _ in range(5):
            begun = time.process_time()
            scanner.clean(text)
            tries.append(time.process_time() - begun)
        return min(tries)

    # Sixteen times as much: quadratic work would take 256 times as long.
    assert seconds(1 << 20) < 64 * max(seconds(1 << 16), 1e-4)


@pytest.mark.parametrize("most", [1, 7, 100])
def test_what_is_nested_too_deeply_is_dropped_with_everything_in_it(most):
    scanner = WikitextScanner("en", max_depth=most)
    deep = "a " + "{{nowrap|x " * (most + 5) + "y" + "}}" * (most + 5) + " b"
    assert scanner.clean(deep) == "a " + "x " * (most - 1) + "x b"


def test_the_first_of_two_equal_names_counts():
    slots, _ = scanner_module._names("en", ("File",))
    assert slots.shape == scanner_module._names("en", ())[0].shape
