"""A ledger read line by line says what it would say if it were read as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.metrics.snapshot import StageCounts
from gristmill.runs import ledger
from gristmill.runs import ledger as ledger_file
from gristmill.runs.ledger import CommitRecord, read_ledger, whole_lines_end
from gristmill.tasks import StagedFile


def record(root, name):
    files = (StagedFile(f"tmp/{name}", f"out/{name}", root, 1, "xxh3:0"),)
    return CommitRecord(root, name, files, (), (("read", StageCounts(read=root)),), (("read", b"[1]"),))


good = st.builds(record, st.integers(0, 5), st.text(st.sampled_from("aé"), max_size=3)).map(ledger.encode)
bad = st.sampled_from(["{}\n", "\n", "not JSON\n", ledger.encode(record(1, "a")).replace("tmp", "tnp")])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("ledger") / "ledger.jsonl"


@given(lines=st.lists(good | bad), torn=st.sampled_from(["", "{", ledger.encode(record(2, "torn"))[:-1]]))
def test_what_is_read_is_what_is_replayed(path, lines, torn):
    path.write_text("".join(lines) + torn)
    expected = ledger.replay([*lines, torn])
    found = read_ledger(path)

    assert list(found.records.items()) == list(expected.records.items())
    assert (len(found.records), found.damaged) == (len(expected.records), expected.damaged)
    assert [root for root in range(-1, 8) if root in found.records] == list(expected.records)
    assert "a" not in found.records
    odd = [root for root in expected.records if root % 2]
    if isinstance(found.records, ledger_file.LedgerRecords):
        assert found.records.only(odd) == {root: expected.records[root] for root in odd}


def test_what_is_added_later_changes_nothing_that_was_read(path):
    path.write_text(ledger.encode(record(0, "a")))
    found = read_ledger(path).records
    with path.open("a") as file:
        file.write(ledger.encode(record(0, "b")))

    assert found == {0: record(0, "a")}
    assert read_ledger(path).records == {0: record(0, "b")}
    with pytest.raises(KeyError):
        found[1]


def test_a_ledger_that_is_not_there_says_nothing(tmp_path):
    assert read_ledger(tmp_path / "ledger.jsonl") == ({}, 0)


@given(content=st.binary(max_size=20).map(lambda found: found.replace(b"a", b"\n")), block=st.integers(1, 5))
def test_the_end_of_the_last_whole_line_is_found_from_behind(path, content, block):
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_file, "BLOCK_BYTES", block)
        assert whole_lines_end(path) == content.rfind(b"\n") + 1
