"""The files a run directory tells of: looked at after a restart, published in order, never taken from another."""

import json
import os

import pytest
import xxhash
from tests.jsonl_files import write_documents
from tests.unit.runs.records import plan, record

from gristmill.errors import ConfigError, RunFailed
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.books import Books
from gristmill.runs.directory import ON_DISK, RunDirectory
from gristmill.runs.segment import Commits
from gristmill.runs.sinks import machine_start
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.storage.atomic_write import publish, stage_file
from gristmill.tasks import StagedFile

FOUR_X = f"xxh3:{xxhash.xxh3_128_hexdigest(b'xxxx')}"


def staged(tmp_path, *, temporary=False, final=False, size=4):
    files = [tmp_path / "out.tmp", tmp_path / "out.jsonl"]
    for path, there in zip(files, (temporary, final), strict=True):
        if there:
            path.write_text("x" * 4)
    return StagedFile(str(files[0]), str(files[1]), size, 1, FOUR_X)


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"final": True}, True),
        ({"temporary": True}, True),
        ({}, False),
        ({"final": True, "size": 5}, False),
    ],
    ids=["published", "crashed before the rename", "vanished", "cut short"],
)
def test_only_records_whose_files_are_really_there_count_as_done(opened, tmp_path, state, kept):
    directory, _ = opened()
    done = record(0, staged(tmp_path, **state))
    directory.append([done])

    assert (directory.finish_publication({0: done}) == {0: done}) is kept
    assert (tmp_path / "out.jsonl").exists() is (kept or bool(state))


def committed(directory, home, text, *, beside=False):
    """Commit a file as a run does; return the record and the path."""
    written = stage_file(str(home / "out.tmp"), [text])
    path = home / "out.jsonl"
    file = StagedFile(written.path, str(path), written.num_bytes, text.count(b"\n"), written.checksum)
    done = record(0, side_files=(file,)) if beside else record(0, file)
    directory.append([done])
    publish(file.temporary, file.final)
    return done, path


def after_a_restart(tmp_path):
    (tmp_path / "run" / "start").write_text("the start before this one")


def test_after_a_restart_a_file_that_is_not_as_it_was_written_is_done_again(opened, tmp_path):
    done, path = committed(opened()[0], tmp_path, b"one\ntwo\n")
    path.write_bytes(b"one\n\0\0\0\0")  # as long, but its last page never reached the disk
    directory, found = opened()
    assert directory.finish_publication(found) == {0: done}  # no restart: nothing can be lost, and nobody looks

    after_a_restart(tmp_path)
    assert directory.finish_publication(found) == {}
    assert not path.exists()
    assert "checked those of 1 source partitions; 1 are done again" in directory.messages[0]
    # The ledger still names it. A run that starts now must not take it for whole because there was no restart since.
    assert directory.finish_publication(opened()[1]) == {}


def test_after_a_restart_a_whole_file_counts_and_is_not_looked_at_again(opened, tmp_path):
    done, path = committed(opened()[0], tmp_path, b"one\ntwo\n")
    after_a_restart(tmp_path)
    directory, found = opened()

    assert directory.finish_publication(found) == {0: done}
    assert (tmp_path / "run" / "start").read_text() == machine_start()
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_temporary_file_that_was_damaged_is_not_published(opened, tmp_path):
    directory, _ = opened()
    done = record(0, staged(tmp_path, temporary=True))
    (tmp_path / "out.tmp").write_text("xxyx")

    assert directory.finish_publication({0: done}) == {}
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("left", [b"", b"one\n", b"one\ntwo\nthree\n", None])
@pytest.mark.parametrize("where", ["quarantine", "rejects"])
def test_files_beside_the_output_have_the_size_they_were_written_with(opened, tmp_path, where, left):
    directory, _ = opened()
    home = directory.quarantine if where == "quarantine" else tmp_path / "rejects"
    home.mkdir()
    done, path = committed(directory, home, b"one\ntwo\n", beside=True)
    assert directory.finish_publication({0: done}) == {0: done}
    assert directory.messages == []
    path.unlink() if left is None else path.write_bytes(left)

    assert directory.finish_publication({0: done}) == {}
    assert "1 source partition is done again" in directory.messages[0]


@pytest.mark.parametrize(("where", "kept"), [("quarantine", False), ("exchange-1", False), ("../rejects", True)])
def test_the_content_of_what_is_in_the_run_directory_is_always_compared(opened, tmp_path, where, kept):
    directory, _ = opened()
    home = directory.path / where
    home.mkdir()
    done, path = committed(directory, home.resolve(), b"one\ntwo\n", beside=True)
    path.write_bytes(b"one\ntwO\n")

    assert (directory.finish_publication({0: done}) == {0: done}) is kept


def test_completed_records_are_committed_as_any_file_is(opened, tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    reading = compile_chain("p", [JsonlReader(str(tmp_path / "in"))], None)
    directory, _ = opened(reading)
    directory.quarantine.mkdir()
    entry = {"source": "f", "line": 2, "block_start": 100}
    done, path = committed(directory, directory.quarantine, json.dumps(entry).encode() + b"\n", beside=True)
    facts = (("jsonl_reader", b'["f",0,10]'), ("jsonl_reader", b'["f",100,5]'), ("another stage", b"[]"))
    done = done._replace(name="a", counts=(), facts=facts)
    directory.append([done])
    directory.complete_records(reading, {0: done})

    assert json.loads(path.read_text())["line"] == 12
    directory, found = opened(reading)
    assert directory.finish_publication(found) == found
    assert found[0].side_files[0].num_bytes == path.stat().st_size
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    directory.complete_records(reading, found)
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == before


def test_after_a_restart_a_file_that_cannot_be_read_is_done_again(opened, tmp_path):
    _, path = committed(opened()[0], tmp_path, b"one\ntwo\n", beside=True)
    path.unlink()
    path.mkdir()  # whoever reads it gets an OSError, as from a bad sector
    after_a_restart(tmp_path)
    directory, found = opened()

    assert directory.finish_publication(found) == {}


def test_files_that_were_forced_to_disk_are_not_looked_at(opened, tmp_path):
    done, path = committed(opened(durable=True)[0], tmp_path, b"one\ntwo\n")
    assert (tmp_path / "run" / "start").read_text() == ON_DISK
    path.write_bytes(b"two\none\n")  # as long: who looked would find it
    directory, found = opened(durable=True)

    assert directory.finish_publication(found) == {0: done}
    assert directory.messages == []


def test_files_of_a_run_that_was_forced_only_at_its_end_are_looked_at(opened, tmp_path):
    committed(opened()[0], tmp_path, b"one\ntwo\n")
    opened(durable=True)[0].append([record(1)])

    assert (tmp_path / "run" / "start").read_text() == machine_start()


def test_staging_of_dead_sessions_is_removed_and_ones_own_at_the_end(opened, tmp_path):
    (tmp_path / "out" / ".gristmill" / "tmp" / "dead").mkdir(parents=True)
    directory, _ = opened(session="alive")
    directory.claim_staging([str(tmp_path / "out")])
    directory.make_staging()
    assert [path.name for path in (tmp_path / "out" / ".gristmill" / "tmp").iterdir()] == ["alive"]
    directory.close()

    assert not (tmp_path / "out" / ".gristmill").exists()


def test_two_runs_into_one_output_are_refused_whatever_their_run_directories(opened, tmp_path):
    directory, _ = opened()
    directory.hold_outputs([str(tmp_path / "out"), str(tmp_path / "rejects")])
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for name in ("out", "rejects", "link"):
        other = RunDirectory(tmp_path / "another run", session="two")
        other.acquire()
        with pytest.raises(
            ConfigError, match=rf"{name}: expected no other run to write to this directory; process {os.getpid()} "
        ):
            other.hold_outputs([str(tmp_path / name)])
        other.close()
    directory.close()
    other.acquire()
    other.hold_outputs([str(tmp_path / "out")])
    other.close()


def test_an_output_may_be_named_twice_by_one_run(opened, tmp_path):
    directory, _ = opened()
    directory.hold_outputs([str(tmp_path / "out"), str(tmp_path / "out/"), str(tmp_path / "in" / ".." / "out")])


def test_a_run_that_is_refused_leaves_no_directory_behind(opened, tmp_path):
    directory, _ = opened()
    (tmp_path / "used").mkdir()
    directory.hold_outputs([str(tmp_path / "out"), str(tmp_path / "used")])
    directory.close()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "used"]
    assert list((tmp_path / "used").iterdir()) == []


def test_the_output_directory_of_a_run_that_wrote_nothing_stays(opened, tmp_path):
    directory, _ = opened()
    directory.hold_outputs([str(tmp_path / "out")])
    directory.claim_staging([str(tmp_path / "out")])
    directory.make_staging()
    directory.close()

    assert list((tmp_path / "out").iterdir()) == []


def test_an_output_that_cannot_be_written_to_is_refused_in_words(opened, tmp_path):
    (tmp_path / "out").write_text("a file")
    directory, _ = opened()

    with pytest.raises(ConfigError, match="out: expected a directory that can be written to; "):
        directory.hold_outputs([str(tmp_path / "out")])


def written(tmp_path, root, final="out/a.jsonl", content=b"xxxx"):
    """A record of one file that waits under a temporary name."""
    temporary = tmp_path / f"{root}.tmp"
    stage_file(str(temporary), [content])
    checksum = f"xxh3:{xxhash.xxh3_128_hexdigest(content)}"
    return record(root, StagedFile(str(temporary), str(tmp_path / final), len(content), 1, checksum))


def forced(directory, *records):
    commits = Commits(Books(plan(), {}), directory)
    for one in records:
        commits.add(one)
    return commits.force()


@pytest.mark.parametrize("content", [b"xxxx", b"other"], ids=["the same content", "other content"])
@pytest.mark.parametrize("final", ["out/a.jsonl", "run/quarantine/a.jsonl", "run/exchange-1/a"])
@pytest.mark.parametrize("how", ["together", "one by one", "after a new start"])
def test_a_file_of_one_partition_is_never_replaced_by_that_of_another(opened, tmp_path, how, final, content):
    first, second = written(tmp_path, 0, final), written(tmp_path, 2, final, content)
    directory, _ = opened()
    if how != "together":
        assert forced(directory, first) == [0]
    if how == "after a new start":
        directory, _ = opened(session="two")

    with pytest.raises(
        RunFailed, match=rf"{final}: expected one source partition .*'part-00000' and 'part-00002' both"
    ):
        forced(directory, *([first, second] if how == "together" else [second]))
    assert list(opened()[1]) == ([] if how == "together" else [0])
    assert how == "together" or (tmp_path / final).read_bytes() == b"xxxx"


def test_a_run_that_keeps_no_ledger_replaces_none_of_its_files_either(tmp_path):
    commits = Commits(Books(plan(), {}), None)
    commits.add(written(tmp_path, 0))
    assert commits.force() == [0]
    commits.add(written(tmp_path, 1, content=b"other"))

    with pytest.raises(RunFailed, match="'part-00000' and 'part-00001' both"):
        commits.force()
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == b"xxxx"


def test_a_partition_done_again_replaces_its_own_file_but_not_that_of_another(opened, tmp_path):
    """The file of partition 0 is gone; another one takes its name before 0 is done again."""
    forced(opened()[0], written(tmp_path, 0))
    (tmp_path / "out" / "a.jsonl").write_bytes(b"damaged")
    directory, records = opened(session="two")
    assert directory.finish_publication(records) == {}
    assert forced(directory, written(tmp_path, 1, content=b"other")) == [1]

    with pytest.raises(RunFailed, match="'part-00001' and 'part-00000' both"):
        forced(directory, written(tmp_path, 0))
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == b"other"


def test_a_file_whose_line_was_lost_is_taken_over(opened, tmp_path):
    forced(opened()[0], written(tmp_path, 0), written(tmp_path, 1, "out/b.jsonl"))
    (tmp_path / "run" / "ledger.jsonl").write_bytes(b"")

    assert forced(opened(session="two")[0], written(tmp_path, 0), written(tmp_path, 1, "out/b.jsonl")) == [0, 1]
