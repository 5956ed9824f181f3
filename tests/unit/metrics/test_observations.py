"""What was recorded about documents adds up to the same bytes in any order, and a damaged file is noticed."""

import random
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.metrics.observation_files import (
    Damaged,
    ObservationReader,
    decode_observations,
    encode_observations,
    load_observations,
)
from gristmill.metrics.observations import (
    MAX_SLICES,
    NEAREST,
    SAMPLED,
    Amount,
    Example,
    LabelCount,
    Labels,
    MeasureTally,
    Nearest,
    Observations,
    Outcomes,
    Sample,
    Side,
    Slices,
)
from gristmill.metrics.tally import tallied

few = st.integers(0, 3)  # so that keys, values and names meet
texts = st.text(max_size=3)
numbers = st.one_of(st.integers(-5, 5).map(float), st.floats(allow_nan=False))
examples = st.builds(Example, numbers, few, texts, texts, texts, texts)
amounts = st.builds(Amount, few, few)


def side(values):
    finite = [value for value in values if abs(value) < 2**39]
    least, greatest = (min(values), max(values)) if values else (None, None)
    return Side(tallied(values), sum(int(value * 2**20) << 12 for value in finite), least, greatest)


sides = st.lists(numbers, max_size=5).map(side)
windows = st.tuples(st.lists(examples, max_size=10), st.lists(examples, max_size=10))
outcomes = st.builds(Outcomes, amounts, st.dictionaries(texts, st.dictionaries(texts, amounts, max_size=2), max_size=2))


@st.composite
def tallies(draw):
    bound = draw(st.sampled_from([-1.0, 2.5]))
    near = Nearest("low", bound)
    near.add(Nearest("low", bound, *draw(windows)))
    kept, refused = draw(sides), draw(sides)
    return MeasureTally("s", draw(few), 0, "r", "words", low=bound, kept=kept, refused=refused, nearest=[near])


labels = st.builds(
    Labels, st.dictionaries(texts, st.builds(LabelCount, few, few), max_size=3), *[st.builds(LabelCount, few, few)] * 2
)


@st.composite
def observed(draw):
    seen = Observations()
    labelled = [MeasureTally("s", draw(few), 1, "other_label", "label", labels=one) for one in draw(st.lists(labels))]
    samples = [Sample("s", draw(few), "r", draw(st.lists(examples, max_size=20)))]
    slices = {"source": Slices(draw(st.dictionaries(texts, outcomes, max_size=3)), draw(outcomes), draw(outcomes))}
    seen.add(Observations([*draw(st.lists(tallies(), max_size=2)), *labelled], samples, slices))
    return seen


def added(parts):
    total = Observations()
    for part in parts:
        total.add(decode_observations(encode_observations(part)))
    return encode_observations(total)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(observed(), max_size=4), st.randoms(use_true_random=False))
def test_observations_add_up_to_the_same_bytes_in_any_order_and_grouping(parts, chance):
    shuffled = chance.sample(parts, len(parts))
    half = len(parts) // 2
    grouped = [decode_observations(added(parts[:half])), decode_observations(added(parts[half:]))]

    assert added(parts) == added(shuffled) == added(grouped)


@pytest.mark.slow
@settings(max_examples=30)
@given(observed())
def test_a_file_holds_what_was_recorded(seen):
    assert decode_observations(encode_observations(seen)) == seen.in_order()


def test_a_sum_that_is_longer_than_64_bits_survives():
    seen = Observations([MeasureTally("s", 0, 0, "r", "chars", kept=Side({1: 1}, -(1 << 80), -(2.0**48), 3.0))])

    assert decode_observations(encode_observations(seen)).tallies[0].kept.sum == -(2.0**48)


def test_the_nearest_of_many_are_kept_and_each_text_once():
    near = Nearest("high", 10.0)
    near.add(Nearest("high", 10.0, kept=[Example(10.0 - n / 100, key=n // 2) for n in range(100)]))

    assert [example.value for example in near.kept] == [10.0 - n / 50 for n in range(NEAREST)]


def test_a_sample_is_of_the_least_keys():
    keys = random.Random(1).sample(range(1000), 200)
    parts = [Sample("s", 0, "r", [Example(None, key)]) for key in keys]
    total = reduce(lambda one, other: one.add(other) or one, parts, Sample("s", 0, "r"))

    assert [example.key for example in total.examples] == sorted(keys)[:SAMPLED]


def test_slices_are_bounded_and_those_that_are_kept_are_whole():
    one, other, whole = Slices(), Slices(), Slices()
    for number in range(3 * MAX_SLICES):
        for part in (other if number % 3 else one, whole):
            part.of(f"source {number % 1500}").add(Outcomes(Amount(1, 10)))
    one.bound()
    other.bound()
    whole.bound()
    one.add(other)

    assert one == whole
    assert len(one.values) == MAX_SLICES
    assert {outcomes.written.documents for outcomes in one.values.values()} == {2}
    assert sum(outcomes.total.documents for _, outcomes in one.by_size()) == 3 * MAX_SLICES


def test_labels_are_bounded_and_those_that_are_kept_are_whole():
    one, other, whole = Labels(), Labels(), Labels()
    for number in range(3 * MAX_SLICES):
        for part in (other if number % 3 else one, whole):
            part.of(f"label {number % 1500}").add(LabelCount(1, 2))
    one.bound()
    other.bound()
    whole.bound()
    one.add(other)

    assert one == whole
    assert len(one.values) == MAX_SLICES
    assert (one.total.kept, one.total.refused) == (3 * MAX_SLICES, 6 * MAX_SLICES)


def test_a_threshold_says_how_many_documents_it_would_keep():
    tally = MeasureTally("s", 0, 0, "r", "words", low=5.0, kept=side([5.0, 7.0, 40.0]), refused=side([1.0, 2.0]))

    assert tally.num_within(low=5) == 3
    assert tally.num_within(low=2, high=7) == 3
    assert tally.num_within() == 5


def write(run_dir, name, seen):
    path = run_dir / "measures" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_observations(seen))
    return path


def counted(number):
    return Observations([MeasureTally("s", 0, 0, "r", "words", kept=side([1.0] * number))])


def test_a_reader_adds_what_is_new_and_starts_over_where_files_are_gone(tmp_path):
    reader = ObservationReader(tmp_path)
    assert reader.refresh().is_empty

    first = write(tmp_path, "a.tally", counted(1))
    assert reader.refresh().tallies[0].kept.num_documents == 1
    write(tmp_path / "segment-2", "a.tally", counted(2))
    assert reader.refresh().tallies[0].kept.num_documents == 3
    assert reader.refresh().tallies[0].kept.num_documents == 3
    first.unlink()
    assert reader.refresh().tallies[0].kept.num_documents == 2
    assert load_observations(tmp_path) == reader.observations


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-1], lambda b: b[:5], lambda b: b"x" + b[1:], lambda b: b[:-4] + b"abcd"]
)
def test_a_damaged_file_is_named_and_left_out(tmp_path, spoil):
    write(tmp_path, "a.tally", counted(1))
    bad = write(tmp_path, "b.tally", counted(2))
    bad.write_bytes(spoil(bad.read_bytes()))
    reader = ObservationReader(tmp_path)

    assert reader.refresh().tallies[0].kept.num_documents == 1
    assert reader.damaged == [str(bad)]
    with pytest.raises(Damaged):
        decode_observations(bad.read_bytes())
