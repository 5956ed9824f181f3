"""The books of a stage add up field by field, whatever fields there are."""

import copy

import msgspec

from gristmill.metrics.error_counts import MAX_KIND_CHARS, MAX_KINDS, OTHERS, error_kind
from gristmill.metrics.stage_counts import NamedCounts, StageCounts


def distinct(offset):
    """Counts in which every field has a value of its own, so that one left out is seen."""
    counts = StageCounts()
    for number, name in enumerate(counts.__struct_fields__):
        value = getattr(counts, name)
        setattr(counts, name, {"a": offset + number} if isinstance(value, dict) else type(value)(offset + number))
    return counts


def test_every_field_is_added_and_taken_back():
    one, other = distinct(100), distinct(1_000)
    total = copy.deepcopy(one)
    total.add(other)
    for name in total.__struct_fields__:
        both = [getattr(counts, name) for counts in (one, other, total)]
        first, second, summed = [value["a"] if isinstance(value, dict) else value for value in both]
        assert first + second == summed, name

    total.subtract(other)
    assert total == one


def test_every_field_survives_the_ledger():
    counts = distinct(7)
    line = msgspec.json.encode(NamedCounts.of(counts))

    assert msgspec.json.decode(line, type=NamedCounts).plain() == counts


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
