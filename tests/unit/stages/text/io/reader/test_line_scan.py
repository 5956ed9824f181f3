"""What the kernel takes for documents, the careful way takes too; and the fields are where it says."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.kernels.text.json_objects import MOST_LEVELS
from gristmill.stages.io.line_blocks import line_bounds
from gristmill.stages.text.io.reader.jsonl import check_lines, scan_lines
from gristmill.tasks.json_lines import JsonLines

pytestmark = pytest.mark.slow

NAMES = ["text", "id", "ключ"]
LONG = b'{"text": "a line long enough for the kernel to load sixty-four bytes of it", "id": "x"}\n'

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(st.sampled_from(NAMES) | strings, values, max_size=6)


@st.composite
def spelled(draw):
    """A document as one of the many lines it may be written as."""
    document = draw(documents)
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), ("\t, ", " :\t")]))
    line = json.dumps(document, ensure_ascii=draw(st.booleans()), separators=separators)
    return line.encode() + draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))


def carefully(block):
    lines, bad = check_lines(block, line_bounds(block))
    return lines.values.to_pylist(), bad, [texts(lines, name) for name in NAMES]


def texts(lines: JsonLines, name):
    return [None if found is None else bytes(found) for found in lines.texts(name)]


def assert_the_same(found, block):
    whole, bad, fields = carefully(block)
    assert not bad
    assert found.values.to_pylist() == whole
    assert [texts(found, name) for name in NAMES] == fields


@settings(max_examples=300, deadline=None)
@given(lines=st.lists(spelled(), max_size=6))
def test_documents_are_found_with_their_fields(lines):
    block = LONG + b"".join(lines)
    found = scan_lines(block, NAMES)

    if any(b"\\" in json.dumps(key).encode() for line in lines for key in json.loads(line)):
        return  # names with escapes are left to the careful way; that they may be is all there is to say
    assert_the_same(found, block)


@settings(max_examples=500, deadline=None)
@given(lines=st.lists(spelled(), min_size=1, max_size=4), data=st.data())
def test_what_the_careful_way_would_not_take_is_never_taken(lines, data):
    block = bytearray(LONG + b"".join(lines))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(block) - 2))
        block[place] = data.draw(st.sampled_from(b'{}[],:" \t\r\\ux0189-+.eEtrufalsn\x00\x1f\x80\xff'))
    found = scan_lines(bytes(block), NAMES)

    if found is not None:
        assert_the_same(found, bytes(block))


SAMPLE = rb'{"id": -1.5e+3, "a": [true, false, null, {"b": []}, {}], "text": "x\n\u00e9\\", "n": 0, "m": 10}' + b"\n"


@pytest.mark.parametrize("place", range(len(SAMPLE) - 1))
def test_no_byte_can_be_left_out_unnoticed(place):
    block = LONG + SAMPLE[:place] + SAMPLE[place + 1 :]
    found = scan_lines(block, NAMES)

    if found is not None:
        assert_the_same(found, block)


TAKEN = [
    b"{}", b"{ }", b'{"text":""}', b'{"a":[[],{},[{}]]}', b'{"a":1,"text":"t"}', b'{"text":"twice","text":"last"}',
    b'{"text":null}', b'{"a":-0.0,"b":1E5,"c":0e-1}', b'{"text":"\\ud83d\\ude00 \\/ \\u0000"}',
    b'{"text":"\x7f\xc3\xa9"}',
]  # fmt: skip

LEFT = [
    b"", b" {}", b"{} ", b"{}{}", b"[]", b"1", b"{", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{,"a":1}', b'{"a":1 "b":2}',
    b'{"a":01}', b'{"a":1.}', b'{"a":.5}', b'{"a":+1}', b'{"a":1e}', b'{"a":-}', b'{"a":nul}', b'{"a":tru}',
    b'{"a":falsy}', b'{"a":NaN}', b'{"a":[1,]}', b'{"a":[1}', b'{"a":{"b":1]}', b'{"a":"\t"}', b'{"a":"\\x"}',
    b'{"a":"\\u12g4"}', b'{"a":"', b'{"a":"\\', b'{"a":"\xff"}', b'{"te\\u0078t":"escaped"}', b"{'a':1}",
    b'{"a":{1:2}}',
]  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_what_programs_write_is_taken(line):
    block = LONG + line + b"\n"
    found = scan_lines(block, NAMES)

    assert found is not None
    assert_the_same(found, block)


@pytest.mark.parametrize("line", LEFT)
def test_everything_else_is_left_to_the_careful_way(line):
    assert scan_lines(LONG + line + b"\n", NAMES) is None
    assert scan_lines(LONG + line + b"\n" + LONG, NAMES) is None


def test_levels_are_taken_up_to_a_limit():
    def nested(levels):
        return LONG + b'{"a":' + b"[" * levels + b"]" * levels + b"}\n"

    assert scan_lines(nested(MOST_LEVELS), NAMES) is not None
    assert scan_lines(nested(MOST_LEVELS + 1), NAMES) is None


def test_lines_may_become_much_shorter():
    long = b'{"text": "' + b"x" * 400_000 + b'"}\n'
    block = long + b'{"id":1}\n' * 1000

    assert_the_same(scan_lines(block, NAMES), block)


def test_few_bytes_are_left_to_the_careful_way():
    assert scan_lines(b'{"text":"short"}\n', NAMES) is None


@pytest.mark.parametrize("size", range(130))
def test_a_string_may_end_anywhere_in_a_block(size):
    block = LONG + json.dumps({"text": "x" * size, "id": "y" * (130 - size)}).encode() + b"\n"

    assert_the_same(scan_lines(block, NAMES), block)
