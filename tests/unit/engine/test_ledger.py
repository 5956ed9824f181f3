"""A ledger line is what was committed; a torn line never was; a later line holds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.metrics.snapshot import StageCounts
from gristmill.runs.ledger import CommitRecord, decode, encode, replay
from gristmill.tasks import StagedFile

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(0, 2**53)
files = st.lists(st.builds(StagedFile, text, text, numbers, numbers, text), max_size=2).map(tuple)
counts = st.builds(StageCounts, read=numbers, written=numbers, dropped=st.dictionaries(text, st.integers(1, 9)))
said = st.recursive(st.none() | numbers | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner))
facts = said.map(msgspec.json.encode)
records = st.builds(
    CommitRecord,
    root=numbers,
    name=text,
    files=files,
    side_files=files,
    counts=st.dictionaries(text, counts, max_size=3).map(lambda found: tuple(found.items())),
    facts=st.lists(st.tuples(text, facts), max_size=2).map(tuple),
)


def record(root, name="a"):
    return CommitRecord(root, name, (), (), (("read", StageCounts(read=3)),), ())


@given(records)
def test_a_record_is_one_line_and_comes_back_whole(made):
    line = encode(made)

    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert decode(line) == made


def test_a_person_can_read_a_line():
    line = encode(record(7, "zürich.jsonl"))

    assert line.startswith('{"root":7,"name":"zürich.jsonl",')
    assert '"counts":{"read":{"read":3}}' in line


@pytest.mark.parametrize("kept", [1, 10, -1])
def test_a_torn_last_line_was_never_written(kept):
    whole, torn = encode(record(0)), encode(record(1))[:kept]

    assert replay([whole, torn]) == ({0: record(0)}, 0)


def test_a_partition_committed_twice_counts_once_and_the_later_line_holds():
    assert replay([encode(record(0, "old")), encode(record(1)), encode(record(0, "new"))]).records == {
        0: record(0, "new"),
        1: record(1),
    }


def test_partitions_come_back_in_order_of_their_numbers():
    assert list(replay([encode(record(2)), encode(record(0)), encode(record(1))]).records) == [0, 1, 2]


@given(records, st.data())
def test_a_line_with_any_character_changed_was_never_written(made, data):
    line = encode(made)
    place = data.draw(st.integers(0, len(line) - 2))
    other = data.draw(st.characters(exclude_characters=[line[place], "\n"]))

    assert replay([line[:place] + other + line[place + 1 :]]) == ({}, 1)


def test_an_empty_ledger_is_no_partitions():
    assert replay([]) == ({}, 0)
