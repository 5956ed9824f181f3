"""Whatever a text holds, it is shown as text."""

import html.parser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dashboard.markup import joined, tag, text

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><b>",
    '"><img src=x onerror=1>',
    "'-->",
    "&amp;<",
    "]]>",
    "\x00\x1b[31m",
]


class Found(html.parser.HTMLParser):
    """The elements and the text a browser would make of it."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.words = [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, name, attributes):
        self.elements.append((name, attributes))

    def handle_data(self, data):
        self.words += data


@given(st.one_of(st.text(), st.sampled_from(HOSTILE)), st.text())
def test_text_stays_text_wherever_it_stands(content, attribute):
    found = Found(tag("p", content, title=attribute))

    assert found.elements == [("p", [("title", Found(text(attribute)).words)])]
    assert found.words == Found(text(content)).words


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200F, 0x1B, 0x00, 0x85, 0xD800, 0x2028])
def test_what_cannot_be_seen_or_turns_the_writing_round_is_shown_as_its_number(code):
    assert text(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


def test_a_line_break_and_a_tab_stay_and_a_long_text_is_cut():
    assert text("a\n\tb") == "a\n\tb"
    assert text("x" * 1_000_000, 10) == "xxxxxxxxxx…"


def test_only_what_was_made_as_markup_is_markup():
    assert joined(tag("b", "<"), "<b>", None, 3) == "<b>&lt;</b>&lt;b&gt;3"
