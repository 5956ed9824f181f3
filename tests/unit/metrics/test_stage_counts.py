"""The books of a stage add up field by field, whatever fields there are."""

import copy

import msgspec

from gristmill.metrics.snapshot import (
    MAX_KIND_CHARS,
    MAX_KINDS,
    MAX_METRICS,
    OTHERS,
    SHOWN,
    NamedCounts,
    StageCounts,
    StageSnapshot,
    error_kind,
)
from gristmill.runs.books import RunResult


def distinct(offset):
    """Counts in which every field has a value of its own, so that one left out is seen."""
    counts = StageCounts()
    for number, name in enumerate(counts.__struct_fields__):
        value = getattr(counts, name)
        own = {7: offset + number} if name == "observed" else offset + number
        setattr(counts, name, {"a": own} if isinstance(value, dict) else type(value)(own))
    return counts


def number(value):
    """The one number in a field, however deep."""
    return number(next(iter(value.values()))) if isinstance(value, dict) else value


def test_every_field_is_added_and_taken_back():
    one, other = distinct(100), distinct(1_000)
    total = copy.deepcopy(one)
    total.add(other)
    for name in total.__struct_fields__:
        first, second, summed = [number(getattr(counts, name)) for counts in (one, other, total)]
        assert first + second == summed, name

    total.subtract(other)
    assert total == one
    total.subtract(one)
    assert total == StageCounts()


def test_what_is_added_stays_the_others():
    total, other = StageCounts(), distinct(1)
    total.add(other)
    total.add(other)

    assert other == distinct(1)


def test_every_field_survives_the_ledger_and_the_wire():
    counts = distinct(7)
    line = msgspec.json.encode(NamedCounts.of(counts))

    assert msgspec.json.decode(line, type=NamedCounts).plain() == counts
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(counts), type=StageCounts) == counts


def test_a_field_is_among_the_metrics_without_any_further_edit():
    """Adding a metric is two edits: the field, and where it is counted."""
    counts = distinct(1)
    numbers = {name for name in counts.__struct_fields__ if not isinstance(getattr(counts, name), dict)}

    assert set(counts.numbers()) == numbers
    assert numbers <= set(RunResult([], {"s": counts}).stage_metrics["s"])
    assert set(StageSnapshot("s", 0).with_counts(counts).metrics) == {*(numbers - SHOWN), "a"}
    assert numbers > SHOWN


def test_zeros_and_empty_tallies_are_taken_back_like_anything_else():
    total, nothing = StageCounts(), StageCounts(counted={"x": 0, "y": -1}, observed={"z": {}}, dropped={"r": 0})
    for _ in range(3):
        total.add(nothing)
    assert (total.counted, total.observed) == ({"x": 0, "y": -3}, {"z": {}})
    for _ in range(3):
        total.subtract(nothing)
    assert total == StageCounts()


def test_names_without_end_are_bounded_and_nothing_is_lost():
    total = StageCounts()
    for number in range(5 * MAX_METRICS):
        total.add(StageCounts(counted={f"host-{number}": 2}, observed={f"host-{number}": {1: 3}}))

    assert len(total.counted) == len(total.observed) == MAX_METRICS + 1
    assert sum(total.counted.values()) == 10 * MAX_METRICS
    assert total.observed["other"] == {1: 12 * MAX_METRICS}


def test_errors_are_named_by_what_they_have_in_common():
    assert (
        error_kind("ValueError", "ValueError: line 17: expected 'text'\nand more") == "ValueError: line …: expected …"
    )
    assert error_kind("broken_csv", "expected 3 fields; got 4") == "broken_csv: expected … fields; got …"
    assert error_kind("KeyError", "KeyError") == "KeyError: KeyError"
    assert len(error_kind("ValueError", "x" * 10_000)) == MAX_KIND_CHARS


def test_the_commonest_error_is_known_and_what_is_kept_is_bounded():
    counts, total = StageCounts(), StageCounts()
    for number in range(3 * MAX_KINDS):
        counts.note_error("rare" * number, 1)
    counts.note_error("rare", 5)
    total.add(counts)
    total.add(counts)

    assert counts.commonest_error == "rare"
    assert len(total.errors) == MAX_KINDS + 1
    assert sum(total.errors.values()) == 2 * (3 * MAX_KINDS + 5)
    assert total.errors[OTHERS] > total.errors["rare"]
    total.subtract(counts)
    assert total == counts
    assert StageCounts().commonest_error == ""
