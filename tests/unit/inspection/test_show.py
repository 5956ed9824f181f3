"""What is printed of a document cannot act on a terminal, and says when it was cut."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.inspection.safe_text import printable
from gristmill.inspection.show import bars, brief, changes, number, whole
from gristmill.inspection.statistics import Histogram


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202efdp.exe", "abc\\u202efdp.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("a\nb\tc\rd", "a⏎b c\\x0dd"),
        ("\ud800", "\\ud800"),
        ("été 日本 👍", "été 日本 👍"),
        ("[red]markup[/red]", "[red]markup[/red]"),
    ],
)
def test_characters_that_act_or_hide_are_written_out(text, shown):
    assert printable(text) == shown


@settings(max_examples=40)
@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text):
    for lines in (False, True):
        left = {unicodedata.category(c) for c in printable(text, lines=lines) if c != "\n"}
        assert left.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def test_values_are_short_on_one_line_and_whole_below(monkeypatch):
    assert brief({"a": [1, None]}) == '{"a": [1, null]}'
    assert (brief(None), brief(b"\x00\xff")) == ("null", "2 bytes: 00 ff")
    assert len(brief("x" * 10_000)) == 400
    assert whole("a\nb") == "a\nb"
    assert whole("x" * 300_000).endswith("… (300,000 characters)")


def test_bars_are_as_long_as_their_counts():
    lines = bars(Histogram([0, 1, 2, 3], [80, 40, 1], is_logarithmic=False)).splitlines()

    assert [line.count("█") for line in lines] == [40, 20, 0]
    assert "▌" in lines[2] or "▏" in lines[2] or "▋" in lines[2] or "▍" in lines[2]
    assert [number(v) for v in (0.0, 1234567.0, 0.123456, 1e-9, 1e20)] == ["0", "1,234,567", "0.123", "1e-09", "1e+20"]


def test_a_difference_names_the_words_and_columns_that_changed():
    here = {"text": "the cat sat on the mat", "score": 1, "gone": True}
    there = {"text": "the dog sat on the mat", "score": 2}

    assert list(changes(here, there)) == [
        "text: …the [-cat-] {+dog+}",
        "score: 1 → 2",
        "gone: true → null",
    ]
    assert "differs from character 3 on" in next(changes({"t": "a a " * 3000}, {"t": "a b " * 3000}))
