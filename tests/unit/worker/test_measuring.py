"""Compiled counting says what plain counting says, and both say what the definition of a slot does."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.kernels import tally_layout as layout
from gristmill.metrics import observation_parts, tally
from gristmill.metrics.observation_parts import Part, PartRule, encode_rules
from gristmill.metrics.observations import EXCERPT_CHARS, NEAREST, SAMPLED
from gristmill.stages.measured import excerpt, text_keys
from gristmill.worker.job import Observed
from gristmill.worker.measuring import Counter, Gone, Texts, Values, Windows, count_plainly, numbers_in
from gristmill.worker.recorded import Recorded

LAST = tally.edge_of(tally.BEYOND)  # where the last slot begins
EDGES = LAST, -LAST, math.nextafter(LAST, 0.0), math.nextafter(-LAST, 0.0)
special = st.sampled_from(
    [*EDGES, 0.0, -0.0, 1.0, 5.0, 5.5, math.nan, math.inf, -math.inf, 2.0**41, -(2.0**39), 5e-324, 1e300]
)
numbers = st.one_of(special, st.floats(), st.integers(-6, 12).map(float))
bound = st.one_of(st.just(math.nan), st.integers(-2, 8).map(float), st.floats(-3, 9))
rule = st.tuples(st.lists(st.tuples(numbers, st.booleans()), max_size=40), bound, bound)
NO_ROWS = np.zeros(0, np.int64)
NOBODY_GONE = Gone(NO_ROWS, np.array([0]))


def values_of(rules, sources=None, offsets=None, rows=NO_ROWS):
    lengths = [len(values) for values, _, _ in rules]
    pairs = [pair for values, _, _ in rules for pair in values]
    return Values(
        np.array([value for value, _ in pairs], np.float64),
        np.array([kept for _, kept in pairs], np.bool_),
        np.cumsum([0, *lengths]),
        np.array([bound for _, low, high in rules for bound in (low, high)], np.float64),
        np.array(sources or [layout.ALL] * len(rules), np.int64),
        np.array(offsets or [0] * len(rules), np.int64),
        np.array(rows, np.int64),
    )


def gone_of(reasons):
    rows = [row for some in reasons for row in some]
    return Gone(np.array(rows, np.int64), np.cumsum([0, *(len(some) for some in reasons)]))


def counted(values, gone, keys, counter=None):
    windows = Windows.empty(len(values.firsts) - 1, len(gone.firsts) - 1)
    return (counter or Counter()).count(values, gone, keys, windows)


def sides_of(found, rules):
    """What was counted, as those see it who read the file."""
    names = [PartRule("s", 0, n, "r", "m", None, None, None, True, None) for n in range(rules)]
    arrays = [found.sums, found.extremes, found.ends, found.slots, found.counts]
    part = Part(encode_rules(names), *(array.tobytes() for array in arrays))
    return [side for each in part.unpacked().in_order().tallies for side in (each.refused, each.kept)]


def examples_of(found):
    near, sampled = found.documents[found.near], found.documents[found.sampled]
    chosen = found.windows, near, found.reasons, found.gone, sampled, found.documents
    return [found.values.tobytes(), *(array.tolist() for array in chosen)]


def test_slots_and_windows_are_as_large_for_kernels_as_for_their_readers():
    assert layout.PER_OCTAVE == tally.PER_OCTAVE
    assert layout.LAST == tally.BEYOND
    assert (layout.NEAREST, layout.SAMPLED) == (NEAREST, SAMPLED)
    assert layout.NOT_A_NUMBER == observation_parts.SHORT_NOT_A_NUMBER
    assert layout.WINDOWS == observation_parts.WINDOWS
    assert layout.BEGINNING == EXCERPT_CHARS


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(rule, min_size=1, max_size=4), st.integers(1, 50), st.lists(st.lists(st.integers(0, 39)), max_size=3))
def test_compiled_counting_is_plain_counting(rules, distinct, reasons):
    values, gone = values_of(rules), gone_of(reasons)
    keys = np.array([row * 7919 % distinct for row in range(40)], np.uint64)
    counter = Counter()
    counted(values_of([([(1.0, True)], 0.0, math.nan)] * 6), NOBODY_GONE, keys, counter)  # what another call leaves

    compiled, plain = counted(values, gone, keys, counter), count_plainly(values, gone, keys)

    assert sides_of(compiled, len(rules)) == sides_of(plain, len(rules))
    assert examples_of(compiled) == examples_of(plain)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_a_rule_may_say_that_its_documents_are_those_the_one_before_has_kept(data):
    """However documents are named, the same are chosen."""
    row_numbers = sorted(data.draw(st.sets(st.integers(0, 39))))
    rules, explicit, named = [], [], []
    for n in range(data.draw(st.integers(1, 4))):
        own = row_numbers if not n else [row for row, (_, kept) in zip(explicit[-1], rules[-1][0], strict=True) if kept]
        pairs = data.draw(st.lists(st.tuples(numbers, st.booleans()), min_size=len(own), max_size=len(own)))
        rules.append((pairs, data.draw(bound), data.draw(bound)))
        explicit.append(own)
        named.append(layout.KEPT if n else 0)
    starts = [sum(len(rows) for rows in explicit[:n]) for n in range(len(rules))]
    offsets = [data.draw(st.sampled_from([0, 40])) for _ in rules]
    keys = np.array([row * 7919 % 50 for row in range(80)], np.uint64)
    told = values_of(rules, starts, offsets, [row for rows in explicit for row in rows])
    follows = values_of(rules, named, offsets, row_numbers)

    expected = examples_of(count_plainly(told, NOBODY_GONE, keys))

    assert examples_of(counted(told, NOBODY_GONE, keys)) == expected
    assert examples_of(counted(follows, NOBODY_GONE, keys)) == expected
    assert examples_of(count_plainly(follows, NOBODY_GONE, keys)) == expected


KEYS = [row * 7919 % 53 for row in range(120)]


def chosen(gone, found, low, high, first):
    """The examples of a batch whose documents begin at `first`: windows of distances and keys, and a set of keys."""
    windows = [[] for _ in range(4)]
    for window, value, row in zip(found.windows, found.values, found.documents[found.near], strict=True):
        windows[window].append((abs(value - (low, low, high, high)[window]), KEYS[first + row]))
    return windows, {KEYS[first + gone.rows[at]] for at in found.gone}


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(rule, min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3), st.booleans())
def test_what_is_committed_leaves_out_only_what_is_further_away(tmp_path_factory, batches, is_committed, late):
    """Three batches, of which some are committed at once, some later and some never before the next one is counted."""
    low, high = batches[0][1:]
    recorded, counter, run = Recorded(), Counter(), tmp_path_factory.mktemp("run")
    about = (0, "rule")
    windows, samples, everything = [[] for _ in range(4)], set(), []
    for n, (pairs, _, _) in enumerate(batches):
        values, gone = values_of([(pairs, low, high)]), gone_of([range(len(pairs))])
        recorded.look()
        places = recorded.rule_places([about]), recorded.sample_places([(0, "why")])
        known, version = recorded.windows(), recorded.version
        keys = np.array(KEYS[40 * n : 40 * n + 40], np.uint64)
        found = counter.count(values, gone, keys, known, places)
        near, sampled = chosen(gone, found, low, high, 40 * n)
        windows = [[*own, *more] for own, more in zip(windows, near, strict=True)]
        samples |= sampled
        everything.append((pairs, 40 * n))
        recorded.expect(f"{run}/{n}", [Observed(Part(), known, version)])
        for file in range(n + 1) if late and n == 1 else [n] if is_committed[n] and not late else []:
            (run / str(file)).touch()
    whole = values_of([([pair for pairs, _ in everything for pair in pairs], low, high)], [0])
    rows = [first + row for pairs, first in everything for row in range(len(pairs))]
    whole = whole._replace(rows=np.array(rows, np.int64))
    gone = gone_of([rows])
    best, least = chosen(gone, count_plainly(whole, gone, np.array(KEYS, np.uint64)), low, high, 0)

    for own, expected in zip(windows, best, strict=True):
        nearest = {}
        for distance, key in sorted(own):
            nearest.setdefault(key, distance)
        assert sorted((distance, key) for key, distance in nearest.items())[:NEAREST] == expected
    assert sorted(samples)[:SAMPLED] == sorted(least)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=40))
def test_a_side_is_what_the_definition_says_of_each_of_its_values(pairs):
    found = count_plainly(values_of([(pairs, math.nan, math.nan)]), NOBODY_GONE, np.zeros(40, np.uint64))
    for side, wanted in zip(sides_of(found, 1), (False, True), strict=True):
        slots = {}
        own = [value for value, is_kept in pairs if is_kept == wanted]
        for value in own:
            slots[tally.slot_of(value)] = slots.get(tally.slot_of(value), 0) + 1
        in_range = [value for value in own if abs(tally.slot_of(value)) < tally.BEYOND]

        assert side.slots == slots
        assert abs(side.sum - math.fsum(in_range)) <= len(own) * 2**-32 + 1e-9 * abs(math.fsum(in_range))
        assert side.least == min((value for value in own if not math.isnan(value)), default=None)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.floats(2.0**-39, 2.0**39) | st.just(0.0), min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_lie_within_a_slot_of_those_of_the_values(values, share):
    pairs = [(value, True) for value in values]
    found = counted(values_of([(pairs, math.nan, math.nan)]), NOBODY_GONE, np.zeros(200, np.uint64))
    _, kept = sides_of(found, 1)
    exact = float(np.quantile(values, share, method="inverted_cdf"))

    assert abs(tally.slot_of(kept.distribution.quantile(share)) - tally.slot_of(exact)) <= 1


def key_of(text):
    """The definition: mix the first eight bytes and the length, then the last eight bytes."""

    def mixed(value):
        value &= 2**64 - 1
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
        return value ^ (value >> 31)

    first, last = int.from_bytes(text[:8], "little"), int.from_bytes(text[-8:], "little")
    if len(text) < 8:
        first, last = int.from_bytes(text, "big"), 0
    return mixed(mixed(first + len(text) * 0x9E3779B97F4A7C15) + last)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=60))
def test_a_text_has_the_same_key_in_compiled_code_and_outside(texts):
    data = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    stops = np.cumsum([len(text) for text in texts])
    starts, keys = stops - [len(text) for text in texts], np.zeros(len(texts), np.uint64)
    nothing = values_of([([], math.nan, math.nan)])
    Counter().count(nothing, NOBODY_GONE, keys, Windows.empty(1, 0), texts=Texts(data, starts, stops))

    assert keys.tolist() == text_keys(data, starts, stops).tolist() == [key_of(text) for text in texts]


characters = st.characters(exclude_categories=["Cs"])
long_texts = st.tuples(st.text(characters, min_size=1, max_size=12), st.integers(1, 300)).map(
    lambda given: (given[0] * given[1]).encode()
)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(long_texts | st.binary(max_size=2000), min_size=1, max_size=20))
def test_compiled_code_copies_how_the_chosen_texts_begin(texts):
    data = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    stops = np.cumsum([len(text) for text in texts])
    starts, keys = stops - [len(text) for text in texts], np.zeros(len(texts), np.uint64)
    nothing, gone = values_of([([], math.nan, math.nan)]), gone_of([range(0, len(texts), 2)])
    found = Counter().count(nothing, gone, keys, Windows.empty(1, 1), texts=Texts(data, starts, stops))
    copied, ends = found.beginnings
    pieces = [copied[start:stop].tobytes() for start, stop in zip([0, *ends], ends, strict=False)]

    assert pieces == [excerpt(texts[row]) for row in found.documents]


@given(st.text(characters, min_size=1, max_size=20), st.integers(1, 100))
def test_an_example_shows_the_first_characters_of_a_text_whatever_bytes_they_take(text, times):
    assert excerpt((text * times).encode()).decode() == (text * times)[:EXCERPT_CHARS]


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
