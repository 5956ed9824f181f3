"""The depth of a page is what its tags say, without its being parsed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.text import html_layout as layout
from gristmill.stages.text.html.page_shape import PageShape, measure_shape

TOKEN = re.compile(rb"<!--.*?(?:(?<=--)>|\Z)|<[!?][^>]*(?:>|\Z)|<(/?)([^\s/>]*)", re.DOTALL)
KEYS, KINDS, GROUPS = layout.element_tables()


GONE = ""


def end_of_tag(page: bytes, position: int) -> int:
    quote, after_equals = 0, False
    while position < len(page):
        byte = page[position]
        position += 1
        if quote:
            quote = 0 if byte == quote else quote
        elif byte == ord(">"):
            return position
        elif after_equals and byte in b"\"'":
            quote, after_equals = byte, False
        elif byte > ord(" ") and byte != ord("/"):
            after_equals = byte == ord("=")
    return position


class Definition:
    """Depth and open formatting elements of a page, by a list of names and a dictionary."""

    def __init__(self, page: bytes) -> None:
        self.stack, self.formatting, self.depth, self.most = [], {}, 0, 0
        position = 0
        while (token := TOKEN.search(page, position)) is not None:
            position = token.end()
            if token[2] is not None:
                position = self.take(page, token, position)

    def take(self, page, token, position) -> int:
        name = token[2].decode("latin-1").lower()
        if not token[1] and not re.match("[a-z]", name):
            return token.start() + 1
        position = end_of_tag(page, position)
        if token[1]:
            self.end(name)
            return position
        foreign = any(kind(open_) & layout.FOREIGN for open_ in self.stack)
        if not foreign:
            self.end_what_it_closes(name)
        if kind(name) & layout.VOID or (foreign and page[:position].removesuffix(b">").endswith(b"/")):
            return position
        self.open(name)
        if kind(name) & layout.RAW:
            end = re.compile(rb"</" + re.escape(name.encode()), re.IGNORECASE).search(page, position)
            return end.start() if end else len(page)
        return position

    def open(self, name):
        self.stack.append(name)
        self.depth = max(self.depth, len(self.stack) - self.stack.count(GONE))
        if kind(name) & layout.FORMATTING:
            self.formatting[name] = self.formatting.get(name, 0) + 1
            self.most = max(self.most, sum(self.formatting.values()))

    def end(self, name):
        if self.formatting.get(name):
            self.formatting[name] -= 1
        if name not in self.stack:
            return
        place = len(self.stack) - 1 - self.stack[::-1].index(name)
        within = self.stack[place + 1 :]
        if kind(name) & layout.FORMATTING and len(within) >= layout.MAX_LOOK:
            return
        if kind(name) & layout.FORMATTING and any(kind(open_) & (layout.BLOCK | layout.EDGE) for open_ in within):
            self.stack[place] = GONE
        else:
            del self.stack[place:]

    def end_what_it_closes(self, name):
        closes = group(name) or (layout.PARAGRAPH if kind(name) & layout.BLOCK else 0)
        edge = layout.TABLE if closes >= layout.FIRST_OF_TABLE else layout.EDGE
        for place in range(len(self.stack) - 1, max(-1, len(self.stack) - 1 - layout.MAX_LOOK), -1):
            if closes and group(self.stack[place]) == closes:
                del self.stack[place:]
                return
            if not closes or kind(self.stack[place]) & edge:
                return


def kind(name):
    return int(KINDS[layout.slot_of(layout.name_key(name))]) if is_known(name) else 0


def group(name):
    return int(GROUPS[layout.slot_of(layout.name_key(name))]) if is_known(name) else 0


def is_known(name):
    return int(KEYS[layout.slot_of(layout.name_key(name))]) == layout.name_key(name)


names = st.sampled_from(
    [
        "p",
        "div",
        "li",
        "ul",
        "td",
        "tr",
        "table",
        "b",
        "font",
        "a",
        "svg",
        "path",
        "br",
        "img",
        "script",
        "h1",
        "dd",
        "P",
    ]
)
tags = st.one_of(
    names.map(lambda name: f"<{name}>"),
    names.map(lambda name: f"</{name}>"),
    names.map(lambda name: f"<{name} a=\"x>y\" b='>' c=d/>"),
    st.sampled_from(["text", "<!-- <div> -->", "<!doctype html>", "<?xml x?>", "< b", "<", "</>", "<!-->", "<3"]),
)


@given(st.lists(tags, max_size=60).map("".join))
def test_the_kernel_equals_its_definition(page):
    shape, defined = measure_shape(page.encode()), Definition(page.encode())

    assert (shape.depth, shape.formatting) == (defined.depth, defined.most)


@given(st.binary(max_size=200).map(lambda data: b"<div><" + data))
def test_any_bytes_can_be_measured(page):
    assert measure_shape(page).depth >= 1


@pytest.mark.parametrize(
    ("page", "depth"),
    [
        ("", 0),
        ("no tag at all", 0),
        ("<div>" * 7, 7),
        ("<div>" * 7 + "</div>" * 7, 7),
        ("<div></div>" * 7, 1),
        ("<DIV></div>" * 7, 1),
        ("<p>one" * 7, 1),
        ("<ul>" + "<li>one" * 7, 2),
        ("<ul><li><ul><li>inner</ul><li>outer", 4),
        ("<table>" + "<tr><td>a<td>b" * 7, 3),
        ("<p>one<div>two</div>", 1),
        ("<br>" * 7 + "<img>" * 7, 0),
        ("<svg>" + "<path/>" * 7, 1),
        ("<div/>" * 7, 7),
        ("<div><span></div>" * 7, 2),
        ("<a><b><div>x</a></b>" * 7, 9),
        ("<div></x></y>" * 3, 3),
        ("<script>" + "'<div>'" * 7 + "</script><div>", 1),
        ("<!-- " + "<div>" * 7 + " --><div>", 1),
        ("<a title='<div><div>'>x</a>", 1),
        ("<title><b><b></title>", 1),
    ],
)
def test_the_depth_of_a_page(page, depth):
    assert measure_shape(page.encode()).depth == depth


@pytest.mark.parametrize(
    ("page", "glued"),
    [
        ("<table><tr><td>a</td><td>b</td></tr></table>", True),
        ("<table><tr>\n<td>a</td>\n<td>b</td>\n</tr></table>", False),
        ("<table><tr> <th>a <th>b", False),
        ("<p>a</p><p>b</p>", False),
    ],
)
def test_a_page_says_whether_cells_are_glued_together(page, glued):
    assert measure_shape(page.encode()).has_glued_cells is glued


def test_formatting_that_is_never_closed_is_counted_through_blocks():
    assert measure_shape(b"<p><b>one" * 50) == PageShape(2, 50, 100, 0)
    assert measure_shape(b"<p><b>one</b>" * 50) == PageShape(2, 1, 100, 0)


@pytest.mark.parametrize(
    ("tag", "attributes"),
    [
        ("<a>", 0),
        ("<a b>", 1),
        ("<a b=c d = e f='g h' i=\"j k\"l=m>", 5),
        ("<a b/c/>", 2),
        ("<a " + "b " * 500, 500),
        ("<a></a x y z>", 3),
    ],
)
def test_the_attributes_of_a_tag_are_counted(tag, attributes):
    assert measure_shape(tag.encode()).attributes == attributes


@pytest.mark.parametrize(
    ("page", "math", "code"),
    [
        ("<p class='text'>math tex</p>", False, False),
        ("<link type='text/css'><p id=path>", False, False),
        ("<math><mi>x</mi></math>", True, False),
        ("<d-math>x</d-math>", True, False),
        ('<script type="math/tex">x</script>', True, False),
        ('<span class="katex">x', True, False),
        ("<span class=MathJax>x", True, False),
        ("<img src='https://s0.wp.com/latex.php?latex=x'>", True, False),
        ("<img src='http://chart.apis.google.com/chart?cht=tx&chl=x'>", True, False),
        ("<img class=tex alt=x>", True, False),
        ("<img class=tex", False, False),
        ("<p title='TEXT and more'><p id=tE>x", False, False),
        ("<p title='a>b MaTh'>", True, False),
        ("<p id=a 'math>", True, False),
        ("<ma th>", False, False),
        ("<p href=?cht=TX>", True, False),
        ("<span data-tex='x'>", True, False),
        (r"<p>so \(x\) is", True, False),
        (r"<p>\[x\]", True, False),
        (r"<p>\begin{align}", True, False),
        ("<p>$$x$$", True, False),
        ("<p>[tex]x[/tex]", True, False),
        (r"<p>$5 \d [1] \\", False, False),
        (r"<script>var x = '\(x\)'</script><p>x", False, False),
        ("<pre>x", False, True),
        ("<CODE>x", False, True),
        ("<samp>x", False, True),
        ("<p>pre code", False, False),
    ],
)
def test_a_page_says_whether_it_may_have_formulas_or_code(page, math, code):
    shape = measure_shape(page.encode())

    assert (shape.may_have_math, shape.may_have_code) == (math, code)


@pytest.mark.parametrize("page", [b"<div>" * 300_000, b"<div>" * 300_000 + b"</div>" * 300_000, b"<i>" * 300_000])
def test_what_is_deeper_than_can_be_remembered_is_counted(page):
    assert measure_shape(page).depth == 300_000


def test_the_names_that_are_known_have_slots_of_their_own():
    listed = {name for _, some in (*layout._KINDS, *layout._GROUPS) for name in some.split()}

    assert len({layout.slot_of(layout.name_key(name)) for name in listed}) == len(listed)
