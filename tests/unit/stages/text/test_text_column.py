"""Texts taken straight from JSON lines are those of the column, however the lines are written."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.stages.text.judging.statistics import texts_of_lines
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines

pytestmark = pytest.mark.slow

characters = st.integers(0, 0x10FFFF).filter(lambda code: not 0xD800 <= code <= 0xDFFF).map(chr)
ODD = ["plain text of some length", '"', "\\", "\\\\", "\n", "\t\r\b\f", "/", "é", "€", "𝄞", "\x00", "u0041"]
pieces = st.sampled_from(ODD)
values = st.lists(pieces | characters, max_size=12).map("".join) | st.none()


@st.composite
def spelled(draw):
    """One line with a text in one of its spellings, or without one."""
    document = {"id": draw(values), "text": draw(values), "last": 1}
    if draw(st.booleans()):
        document = dict(reversed(document.items()))
    if draw(st.integers(0, 9)) == 0:
        del document["text"]
    line = json.dumps(document, ensure_ascii=draw(st.booleans()))
    return (line.replace("/", "\\/") if draw(st.booleans()) else line).encode() + b"\n"


def lines_of(lines):
    return JsonLines(pa.array(lines, pa.large_binary()))


def taken(lines):
    found = texts_of_lines(lines_of(lines), "text")
    if found is None:
        return None
    texts = [bytes(found.data[a:b]).decode() for a, b in zip(found.starts, found.stops, strict=True)]
    return [None if null else text for text, null in zip(texts, found.is_null, strict=True)]


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(spelled(), min_size=1, max_size=6))
def test_they_equal_the_column(lines):
    assert taken(lines) == DocumentBatch.from_lines("test", lines_of(lines)).column("text").to_pylist()


@pytest.mark.parametrize("size", range(24))
@pytest.mark.parametrize("escape", ["\\n", "\\u00e9", "\\ud834\\udd1e", "\\\\", '\\"', "\\u0000"])
def test_an_escape_may_stand_anywhere(size, escape):
    line = f'{{"text":"{"x" * size}{escape}{"y" * (24 - size)}"}}\n'

    assert taken([line.encode()]) == [json.loads(line)["text"]]


HALVES = ['"\\ud800"', '"\\udc00 x"', '"\\ud800\\u0041"', '"abcdefgh\\ud83d"', '"\\ud83dabcdefgh"']


@pytest.mark.parametrize("value", ["1", "true", "[]", "{}", *HALVES])
def test_what_is_no_whole_text_is_left_to_the_column(value):
    assert taken([b'{"text":"fine"}\n', f'{{"text":{value}}}\n'.encode()]) is None


def test_no_lines_are_left_to_the_column():
    assert taken([]) is None
