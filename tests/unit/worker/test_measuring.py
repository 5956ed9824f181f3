"""Compiled counting says what plain counting says, and both say what the definition of a slot does."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.kernels import tally_layout as layout
from gristmill.metrics import tally
from gristmill.metrics.observation_files import Part, PartTally
from gristmill.metrics.observations import NEAREST
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.measured import text_key
from gristmill.worker.measuring import Counter, Values, Windows, count_plainly, numbers_in

special = st.sampled_from([0.0, -0.0, 1.0, 5.0, 5.5, math.nan, math.inf, -math.inf, 2.0**41, -(2.0**39), 5e-324, 1e300])
numbers = st.one_of(special, st.floats(), st.integers(-6, 12).map(float))
bound = st.one_of(st.just(math.nan), st.integers(-2, 8).map(float), st.floats(-3, 9))
rule = st.tuples(st.lists(st.tuples(numbers, st.booleans()), max_size=40), bound, bound)


def values_of(rules):
    lengths = [len(values) for values, _, _ in rules]
    pairs = [pair for values, _, _ in rules for pair in values]
    return Values(
        np.array([value for value, _ in pairs], np.float64),
        np.array([kept for _, kept in pairs], np.bool_),
        np.array([row for length in lengths for row in range(length)], np.int64),
        np.cumsum([0, *lengths]),
        np.array([bound for _, low, high in rules for bound in (low, high)], np.float64),
    )


def test_slots_and_windows_are_as_large_for_kernels_as_for_their_readers():
    assert layout.PER_OCTAVE == tally.PER_OCTAVE
    assert layout.LAST == tally.BEYOND
    assert layout.NOT_A_NUMBER == tally.NOT_A_NUMBER
    assert layout.NEAREST == NEAREST


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(rule, min_size=1, max_size=4), st.integers(1, 50))
def test_compiled_counting_is_plain_counting(rules, distinct):
    values = values_of(rules)
    keys = np.array([row % distinct for row in range(40)], np.uint64)
    counter = Counter()
    counter.count(values_of([([(1.0, True)], 0.0, math.nan)] * 6), keys)  # what is left behind by another call

    compiled, plain = counter.count(values, keys), count_plainly(values, keys)

    assert compiled.sides == plain.sides
    assert compiled.nearest.tolist() == plain.nearest.tolist()


@pytest.mark.slow
@settings(max_examples=60)
@given(rule, rule, st.integers(1, 50))
def test_what_is_known_from_elsewhere_leaves_out_only_what_is_further_away(before, now, distinct):
    """Counting two batches, the second knowing the first, finds the nearest of both together."""
    (first, low, high), (second, _, _) = before, now
    keys = np.array([row * 7919 % distinct for row in range(80)], np.uint64)
    batches = [values_of([(pairs, low, high)]) for pairs in (first, second)]
    counter, bounds = Counter(), [low, low, high, high]

    def windows(values, counted, keys):
        each = [[at for at in row if at >= 0] for row in counted.nearest.tolist()]
        return [
            [(abs(values.numbers[at] - bound), int(keys[values.rows[at]])) for at in row]
            for row, bound in zip(each, bounds, strict=True)
        ]

    known = windows(batches[0], counter.count(batches[0], keys), keys)
    distances, found = np.full((4, NEAREST), np.inf), np.zeros((4, NEAREST), np.uint64)
    for place, window in enumerate(known):
        distances[place, : len(window)] = [distance for distance, _ in window]
        found[place, : len(window)] = [key for _, key in window]
    later = keys[40:]
    new = windows(batches[1], counter.count(batches[1], later, Windows(distances, found)), later)
    both = values_of([([*first, *second], low, high)])
    rows = np.array([*range(len(first)), *range(40, 40 + len(second))], np.int64)
    whole = windows(both._replace(rows=rows), count_plainly(both._replace(rows=rows), keys), keys)

    for place in range(4):
        nearest = {}
        for distance, key in sorted([*known[place], *new[place]]):
            nearest.setdefault(key, distance)
        assert sorted((distance, key) for key, distance in nearest.items())[:NEAREST] == whole[place]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=40))
def test_a_side_is_what_the_definition_says_of_each_of_its_values(pairs):
    refused, kept = count_plainly(values_of([(pairs, math.nan, math.nan)]), np.zeros(40, np.uint64)).sides
    for side, wanted in ((refused, False), (kept, True)):
        slots = {}
        own = [value for value, is_kept in pairs if is_kept == wanted]
        for value in own:
            slots[tally.slot_of(value)] = slots.get(tally.slot_of(value), 0) + 1
        in_range = [value for value in own if abs(tally.slot_of(value)) < tally.BEYOND]

        assert dict(zip(np.cumsum(side.slots).tolist(), side.counts, strict=True)) == slots
        assert abs(side.fixed_sum / 2**32 - math.fsum(in_range)) <= len(own) * 2**-32 + 1e-9 * abs(math.fsum(in_range))
        assert side.least == min((value for value in own if not math.isnan(value)), default=None)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.floats(2.0**-39, 2.0**39) | st.just(0.0), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_lie_within_a_slot_of_those_of_the_values(values, share):
    counted = count_plainly(
        values_of([([(value, True) for value in values], math.nan, math.nan)]), np.zeros(200, np.uint64)
    )
    part = Part([PartTally("s", 0, 0, "r", "m", None, None, None, True, None, *counted.sides, [])])
    found = part.unpacked().tallies[0].distribution.quantile(share)
    exact = float(np.quantile(values, share, method="inverted_cdf"))

    assert abs(tally.slot_of(found) - tally.slot_of(exact)) <= 1


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=10))
def test_a_text_has_the_same_key_in_compiled_code(texts):
    data = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    stops = np.cumsum([len(text) for text in texts])
    starts, keys = stops - [len(text) for text in texts], np.zeros(len(texts), np.uint64)
    CompiledKernel("tally", "text_keys")(data, starts, stops, len(texts), keys)

    assert keys.tolist() == [text_key(text) for text in texts]


@pytest.mark.parametrize(
    ("given_values", "expected"),
    [
        (pa.array([1, None, 3]), [1.0, math.nan, 3.0]),
        (pa.chunked_array([[True], [False]]), [1.0, 0.0]),
        (pa.array([{"label": "en", "score": 0.5}, {"label": "de", "score": 0.25}]), [0.5, 0.25]),
        (pa.array([1, 2, 3], pa.int8()).slice(1), [2.0, 3.0]),
        (np.array([True, False]), [1.0, 0.0]),
        ([1, None], [1.0, math.nan]),
        ([10**400], None),
        (pa.array(["en", "de"]), None),
        (["a"], None),
        ([object()], None),
    ],
)
def test_what_was_measured_is_numbers_or_it_is_left_alone(given_values, expected):
    found = numbers_in(given_values)

    assert found is None if expected is None else np.array_equal(found, np.array(expected), equal_nan=True)
