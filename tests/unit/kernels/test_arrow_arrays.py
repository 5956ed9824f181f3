"""Arrays made of buffers equal those `pa.array` makes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null, numbers_of

int64s = st.lists(st.integers(-(2**63), 2**63 - 1))


@given(values=int64s)
def test_integers_equal_what_pyarrow_makes_of_them(values):
    assert from_numbers(np.array(values, np.int64)).equals(pa.array(values, pa.int64()))


@given(values=st.lists(st.floats(allow_nan=False)))
def test_floats_equal_what_pyarrow_makes_of_them(values):
    assert from_numbers(np.array(values, np.float64)).equals(pa.array(values, pa.float64()))


@given(values=int64s, cut=st.integers(0, 5))
def test_numbers_come_back_as_they_were_also_from_a_slice(values, cut):
    found = numbers_of(pa.array(values, pa.int64()).slice(cut))
    assert found.dtype == np.int64
    assert found.tolist() == values[cut:]


@pytest.mark.parametrize("array", [pa.array([1, None]), pa.array(["a"])])
def test_what_is_not_a_number_is_refused(array):
    with pytest.raises(ValueError, match="expected numbers without nulls; got"):
        numbers_of(array)


@given(values=st.lists(st.booleans()))
def test_bools_equal_what_pyarrow_makes_of_them(values):
    made = from_bools(np.array(values, np.bool_))
    assert made.equals(pa.array(values, pa.bool_()))
    assert made.true_count == sum(values)


@given(chunks=st.lists(st.lists(st.none() | st.text(max_size=3), max_size=20), max_size=4), cut=st.integers(0, 5))
def test_nulls_are_found_in_every_chunk_and_slice(chunks, cut):
    column = pa.chunked_array([pa.array(chunk, pa.string()).slice(cut) for chunk in chunks], pa.string())
    assert is_null(column).tolist() == [value is None for value in column.to_pylist()]


def test_a_column_of_the_null_type_is_all_null():
    assert is_null(pa.chunked_array([pa.nulls(3)])).tolist() == [True] * 3


def test_strided_values_are_copied_into_order():
    assert from_numbers(np.arange(6, dtype=np.int64)[::2]).to_pylist() == [0, 2, 4]


@pytest.mark.parametrize("values", [np.zeros(2, np.int16), np.zeros((2, 2), np.float64)])
def test_other_types_and_shapes_are_refused(values):
    with pytest.raises(ValueError, match="expected one dimension of"):
        from_numbers(values)
