"""JSON text becomes Arrow values that say exactly the same, whatever route the parser takes."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import letters

from gristmill.tasks.json_lines import MAX_STRUCT_FIELDS, is_json, loads, parse_column


def column_of(*values):
    return parse_column("x", [None if v is ... else json.dumps(v, ensure_ascii=False).encode() for v in values])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["00123", "2024-01-01"], pa.string()),
        ([1, -(2**63), None], pa.int64()),
        ([True, False], pa.bool_()),
        ([1.5, 2], pa.float64()),
        ([None, None], pa.null()),
        ([[1, 2], []], pa.list_(pa.int64())),
        ([{"a": 1}, None], pa.struct([("a", pa.int64())])),
    ],
)
def test_a_column_of_one_kind_has_that_kinds_type(values, kind):
    field, column = column_of(*values)
    assert field.type == column.type == kind
    assert column.to_pylist() == values


@pytest.mark.parametrize(
    "values",
    [
        [1, "1"],
        [2**64, 1],
        [True, 1],
        [[1, "a"]],
        [{}],
        [{"a": {}}],
        [2**53 + 1, 0.5],
        [{f"k{i}": 1 for i in range(MAX_STRUCT_FIELDS + 1)}],
    ],
)
def test_what_fits_no_type_is_kept_as_json_text(values):
    field, column = column_of(*values)
    assert is_json(field)
    assert [json.loads(text) for text in column.to_pylist()] == values


@pytest.mark.parametrize("text", ["7" * 5000, "-" + "7" * 5000, "[1, " + "7" * 5000 + "]"])
def test_a_number_of_thousands_of_digits_is_kept_as_json_text(text):
    field, column = parse_column("x", [text.encode(), b"5", None])

    assert is_json(field)
    assert column.to_pylist() == [text, "5", None]
    with pytest.raises(ValueError, match=r"^expected whole numbers of at most 4,300 digits; got one with more$"):
        loads(text)


def test_a_missing_value_and_a_null_are_null():
    assert column_of("a", None, ...)[1].to_pylist() == ["a", None, None]
    assert column_of([1, "a"], None, ...)[1].to_pylist() == ['[1, "a"]', None, None]


@given(st.lists(letters | st.none()))
def test_strings_are_what_python_reads(values):
    for ascii_only in (True, False):
        texts = [json.dumps(v, ensure_ascii=ascii_only).encode() for v in values]
        assert parse_column("x", texts)[1].to_pylist() == [json.loads(text) for text in texts]


@pytest.mark.parametrize(
    "text", [r'"é\\"', r'"é\\n"', r'"é\"\\\""', r'"é\\\\\/\b\f\r\t"', '"é\\u0000"', '"é"', '"""', '""']
)
def test_escapes_beside_other_letters_are_read_as_python_reads_them(text):
    texts = [b'"\xc3\xa9"', text.encode()] if text != '"""' else [b'"\xc3\xa9\\""', b'""']
    assert parse_column("x", texts)[1].to_pylist() == [json.loads(t) for t in texts]


def test_long_columns_are_put_together_from_pieces_in_order():
    values = [f"é{i}\n" * 3000 if i % 3 else None for i in range(300)]  # several pieces
    assert column_of(*values)[1].to_pylist() == values


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_kept():
    assert loads(b'["\\ud800", "\\ud834\\udd1e"]') == ["\N{REPLACEMENT CHARACTER}", "𝄞"]


def test_values_nested_beyond_reading_are_kept_as_text():
    deep = b"[" * 700 + b"]" * 700
    field, column = parse_column("x", [deep])
    assert is_json(field)
    assert column.to_pylist() == [deep.decode()]
