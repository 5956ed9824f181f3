"""Bars of a histogram have all documents, whole, on the side they belong to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dashboard.histogram import BARS, histogram
from gristmill.metrics.observations import Side
from gristmill.metrics.tally import tallied

values = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60)


@given(values, values, st.lists(st.floats(allow_nan=True), max_size=2))
def test_no_document_is_lost_or_counted_twice(kept, refused, thresholds):
    drawn = histogram(Side(tallied(kept)), Side(tallied(refused)), thresholds)
    numbers = [sum(not math.isnan(value) for value in side) for side in (kept, refused)]

    assert [sum(bar.kept for bar in drawn.bars), sum(bar.refused for bar in drawn.bars)] == numbers
    assert all(bar.kept >= 0 and bar.refused >= 0 for bar in drawn.bars)
    assert all(math.isfinite(bar.low) and math.isfinite(bar.high) for bar in drawn.bars)
    assert all(one.high == other.low for one, other in zip(drawn.bars, drawn.bars[1:], strict=False))


def test_documents_stand_where_their_values_are():
    drawn = histogram(Side(tallied([float(n) for n in range(49)])), Side(tallied([48.0] * 7)), [])
    wide = (drawn.bars[-1].high - drawn.bars[0].low) / BARS

    assert len(drawn.bars) == BARS
    assert wide == pytest.approx(1.0, rel=0.03)
    assert sum(bar.refused for bar in drawn.bars[-2:]) == 7
    assert all(bar.kept >= 1 for bar in drawn.bars)


def test_values_of_many_magnitudes_are_drawn_by_magnitude():
    drawn = histogram(Side(tallied([2.0**n for n in range(20)])), Side({}), [])

    assert drawn.logarithmic
    assert drawn.bars[1].high / drawn.bars[1].low == pytest.approx(drawn.bars[40].high / drawn.bars[40].low, rel=1e-3)


def test_a_threshold_near_the_values_is_inside_and_a_far_one_does_not_flatten_them():
    side = Side(tallied([1.0, 2.0, 3.0]))

    assert histogram(side, Side(), [4.0]).bars[-1].high > 4.0
    assert histogram(side, Side(), [100_000.0]).bars[-1].high < 4.0


def test_values_beyond_the_drawing_are_in_its_last_bar():
    side = Side(tallied([*[float(n % 10) for n in range(10_000)], 1e9]))
    drawn = histogram(side, Side(), [])

    assert drawn.bars[-1].high < 100
    assert sum(bar.kept for bar in drawn.bars) == 10_001
