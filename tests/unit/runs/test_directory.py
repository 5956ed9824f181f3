"""The run directory: one driver at a time, what is committed is found again, another plan is refused."""

import contextlib
import json
import os
import re
import resource
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.backends.scheduled.kept_records import read_frames
from gristmill.engine.replay import read_header
from gristmill.errors import ConfigError, MachineError, ResumeRefused, RunFailed
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.books import Books, RunResult
from gristmill.runs.directory import ON_DISK, RunDirectory
from gristmill.runs.ledger import CommitRecord, encode, replay, sealed
from gristmill.runs.segment import Commits
from gristmill.runs.sinks import machine_start
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.atomic_write import publish, stage_file
from gristmill.tasks import DocumentBatch, StagedFile

RUN_OF_FORM_2 = Path(__file__).parents[2] / "data" / "run-format-2"
TASKS = [DocumentBatch("b", pa.table({"text": ["a"]}))] * 3


FOUR_X = f"xxh3:{xxhash.xxh3_128_hexdigest(b'xxxx')}"


def plan(min_words=5):
    return compile_chain("p", [ScoreFilter(WordCountFilter(min_words))], TASKS)


def record(root, *files, side_files=()):
    return CommitRecord(root, f"part-{root:05d}", files, side_files, (("word_count", StageCounts(read=root)),), ())


@pytest.fixture
def opened(tmp_path):
    """Open the directory as a driver does; all that were opened are closed at the end."""
    directories = []

    def open_directory(the_plan=None, session="one", *, durable=False):
        for earlier in directories:
            earlier.close()
        directory = RunDirectory(tmp_path / "run", session=session, durable=durable)
        directories.append(directory)
        directory.acquire()
        return directory, directory.resume(the_plan or plan(), rejects_path=None)

    yield open_directory
    for directory in directories:
        directory.close()


def test_what_was_appended_is_found_by_the_next_run(opened):
    first, found = opened()
    assert found == {}
    first.append([record(1), record(0)])

    assert opened()[1] == {0: record(0), 1: record(1)}


def test_a_torn_last_line_is_as_if_it_had_never_been_written(opened, tmp_path):
    opened()[0].append([record(0), record(1)])
    ledger = tmp_path / "run" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-10])
    directory, found = opened()
    assert list(found) == [0]
    directory.append([record(1)])

    assert list(opened()[1]) == [0, 1]


def test_lines_that_cannot_be_written_are_as_if_they_had_never_been(opened, tmp_path):
    """A limit on the size of files is the nearest to a full disk that needs no disk."""
    directory, _ = opened()
    directory.append([record(0)])
    size = (tmp_path / "run" / "ledger.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with pytest.raises(MachineError, match=r"run/ledger.jsonl: File too large .*ulimit -f.*same command again"):
            directory.append([record(1)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "run" / "ledger.jsonl").stat().st_size == size
    directory.append([record(2)])

    assert list(opened()[1]) == [0, 2]


def test_a_file_half_written_by_a_run_that_was_killed_is_removed(opened, tmp_path):
    opened()
    (tmp_path / "run" / ".status.json.tmp").write_text("{")
    opened()

    assert not (tmp_path / "run" / ".status.json.tmp").exists()


def test_a_partition_committed_again_counts_once_as_it_was_last(opened):
    again = CommitRecord(0, "part-00000", (), (), (("word_count", StageCounts(read=7)),), ())
    opened()[0].append([record(0), again])

    assert opened()[1] == {0: again}


def test_two_drivers_cannot_hold_one_directory(opened, tmp_path):
    opened()
    other = RunDirectory(tmp_path / "run", session="two")

    with pytest.raises(ConfigError, match=r"expected no other run here; process \d+ is running in it$"):
        other.acquire()


def test_a_changed_threshold_is_refused_in_words(opened):
    opened()[0].append([record(0)])

    said = r"stage word_count: filter_obj\.min_words 5 then, 6 now\n.*start over with fresh=True"
    with pytest.raises(ResumeRefused, match=said):
        opened(plan(min_words=6))


def test_a_changed_input_is_refused_in_words(opened, tmp_path):
    stages = [JsonlReader(str(tmp_path / "in")), ScoreFilter(WordCountFilter())]
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    done = record(0)._replace(name="a", counts=())
    opened(compile_chain("p", stages, None))[0].append([done])
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "changed"}])
    write_documents(tmp_path / "in" / "b.jsonl", [{"text": "b"}])

    with pytest.raises(ResumeRefused) as refused:
        opened(compile_chain("p", stages, None))
    assert "a.jsonl: has changed (size or modification time)" in str(refused.value)
    assert "b.jsonl: is new" in str(refused.value)


def test_clearing_forgets_everything_of_an_earlier_run(opened, tmp_path):
    directory, _ = opened()
    directory.append([record(0)])
    directory.quarantine.mkdir()
    directory.clear()

    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["lock"]


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
    assert "looked at those of 1 source partitions; 1 are done again" in directory.messages[0]
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


@pytest.mark.parametrize("left", ["", None, '{"version'], ids=["empty", "missing", "cut"])
def test_a_ledger_whose_header_was_lost_belongs_to_nobody(opened, tmp_path, left):
    opened()[0].append([record(0)])
    header = tmp_path / "run" / "header.json"
    header.unlink() if left is None else header.write_text(left)

    with pytest.raises(ResumeRefused, match=r"expected header\.json to say what was run here; .*fresh=True"):
        opened()


def test_a_run_that_has_committed_nothing_can_do_without_the_header_it_lost(opened, tmp_path):
    opened()
    (tmp_path / "run" / "header.json").write_text("")

    assert opened()[1] == {}
    assert json.loads((tmp_path / "run" / "header.json").read_text())["fingerprint"] == plan().fingerprint


def test_a_report_that_was_lost_is_none(opened, tmp_path):
    directory, _ = opened()
    directory.write_report(RunResult([], {}))
    assert directory.has_report()

    (tmp_path / "run" / "report.json").write_text("")
    assert not directory.has_report()


def test_a_line_of_the_ledger_that_was_lost_with_the_machine_is_as_if_never_written(opened, tmp_path):
    opened()[0].append([record(0), record(1), record(2)])
    ledger = tmp_path / "run" / "ledger.jsonl"
    first, second, third = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + b"\0" * (len(second) - 10) + b'\xff"0"}}}}}\n' + third)

    assert list(opened()[1]) == [0, 2]


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "{}",
        "5",
        "[" * 100_000,
        "\udcff",
        encode(record(1)).replace('"root":1', '"root":2'),
        sealed('{"root":1}'),
        sealed('{"root":"1","name":"part-00001","files":[],"side_files":[],"counts":{},"facts":[]}'),
        encode(record(1)._replace(root=99)),
        encode(record(1)._replace(root=-1)),
        encode(record(1)._replace(root=2)),
        encode(record(1)._replace(counts=(("another stage", StageCounts()),))),
    ],
    ids=lambda line: line[:12],
)
def test_a_line_that_is_not_of_this_run_is_as_if_never_written_and_is_told(opened, tmp_path, line):
    opened()[0].append([record(0)])
    path = tmp_path / "run" / "ledger.jsonl"
    path.write_text(f"{line.rstrip()}\n{path.read_text()}", errors="surrogateescape")
    directory, found = opened()

    assert found == {0: record(0)}
    assert "ledger.jsonl: 1 line is damaged; its partition is done again" in directory.messages[0]


def test_nobody_is_told_of_damage_that_was_made_good(opened, tmp_path):
    opened()[0].append([record(0), record(1), record(2)])
    path = tmp_path / "run" / "ledger.jsonl"
    path.write_text("damaged\n" + path.read_text())

    assert opened()[0].messages == []


def test_another_pipeline_may_start_where_nothing_is_committed(opened, tmp_path):
    opened()
    opened(plan(min_words=6))
    header = json.loads((tmp_path / "run" / "header.json").read_text())

    assert header["fingerprint"] == plan(min_words=6).fingerprint


def test_a_directory_of_an_older_version_is_refused_in_words(opened, tmp_path):
    opened()[0].append([record(0)])
    path = tmp_path / "run" / "header.json"
    header = json.loads(path.read_text())
    del header["format"], header["xxh3"]
    path.write_text(json.dumps({**header, "version": "0.1"}, indent=1))

    with pytest.raises(ResumeRefused, match=r"have form 3; this one has form None, of a version 0\.1.*fresh=True"):
        opened()


def test_a_directory_whose_ledger_counts_lines_is_refused_and_left_as_it_is(tmp_path):
    """Form 2 had `lines_read` where there are facts now. The run was made by the last version that wrote it."""
    run = tmp_path / "run"
    shutil.copytree(RUN_OF_FORM_2, run)
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    pipeline = Pipeline("old", stages=[JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))])
    told = "has form 2, of a version 0.1, and was left as it is. Continue it with the version that began it"
    with pytest.raises(ResumeRefused, match=re.escape(told)):
        pipeline.run(LocalExecutor(num_workers=0), checkpoint_path=run, quiet=True)

    files = [path.relative_to(RUN_OF_FORM_2) for path in RUN_OF_FORM_2.rglob("*") if path.is_file()]
    assert {file: (run / file).read_bytes() for file in files} == {
        file: (RUN_OF_FORM_2 / file).read_bytes() for file in files
    }
    assert pipeline.run(LocalExecutor(num_workers=0), checkpoint_path=run, fresh=True, quiet=True).written == 1


def test_starting_over_in_a_directory_of_an_earlier_form_removes_what_that_run_wrote(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(RUN_OF_FORM_2, run)
    lines = (run / "ledger.jsonl").read_text().replace("/data/", f"{tmp_path}/").splitlines()
    bodies = [line.partition(',"xxh3":')[0] + "}" for line in lines]
    (run / "ledger.jsonl").write_text("".join(map(sealed, bodies)))
    outputs = [Path(file["final"]) for line in bodies for file in json.loads(line)["files"]]
    for path in outputs:
        write_documents(path, [{"text": "of the earlier run"}])
    write_documents(out / "mine.jsonl", [{"text": "of somebody else"}])
    write_documents(tmp_path / "in" / "z.jsonl", [{"text": "x"}])
    pipeline = Pipeline("new", stages=[JsonlReader(str(tmp_path / "in")), JsonlWriter(str(out))])
    pipeline.run(LocalExecutor(num_workers=0), checkpoint_path=run, fresh=True, quiet=True)

    assert len(outputs) > 1
    assert sorted(path.name for path in out.glob("*.jsonl")) == ["mine.jsonl", "z.jsonl"]
    assert not list((run / "quarantine").glob("*.jsonl"))


def test_starting_over_removes_nothing_a_damaged_line_names(opened, tmp_path):
    kept, gone = tmp_path / "kept.jsonl", tmp_path / "gone.jsonl"
    for path in (kept, gone):
        path.write_text("x")
    directory, _ = opened()
    directory.append([record(0, StagedFile("t", str(gone), 1, 1, ""))])
    damaged = encode(record(1, StagedFile("t", str(tmp_path / "kepX.jsonl"), 1, 1, ""))).replace("kepX", "kept")
    others = [damaged, "[]\n", "7\n", '"xxh3"\n', '{"files":3,"side_files":[]}\n', '{"files":[{"final":1}]}\n', "{\n"]
    with (tmp_path / "run" / "ledger.jsonl").open("a") as ledger:
        ledger.writelines(others)

    assert directory.clear() == [str(gone)]
    assert kept.exists()
    assert not gone.exists()


def test_no_line_of_an_older_ledger_is_taken_for_one_of_this(opened, tmp_path):
    """Whoever puts such a ledger under a header of today has every partition done again."""
    lines = (RUN_OF_FORM_2 / "ledger.jsonl").read_text()
    opened()
    (tmp_path / "run" / "ledger.jsonl").write_text(lines)

    assert replay(lines.splitlines(keepends=True)) == ({}, lines.count("\n"))
    assert opened()[1] == {}


def test_an_event_log_of_another_form_is_refused():
    with (
        (RUN_OF_FORM_2 / "events.log").open("rb") as log,
        pytest.raises(ConfigError, match="event log: expected format 4; got 2"),
    ):
        read_header(read_frames(log))


@pytest.mark.parametrize("name", ["start", "report.json", "header.json"])
def test_a_byte_that_is_not_utf8_is_not_a_raw_error(opened, tmp_path, name):
    directory, _ = opened()
    directory.append([record(0)])
    directory.write_report(RunResult([], {}))
    path = tmp_path / "run" / name
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    refused = pytest.raises(ResumeRefused) if name == "header.json" else contextlib.nullcontext()

    with refused:
        directory, found = opened()
        assert directory.finish_publication(found) == {0: record(0)}
        assert directory.has_report() == (name == "start")


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_ledger_that_is_no_longer_there_takes_no_line(opened, tmp_path, how):
    directory, _ = opened()
    path = tmp_path / "run" / "ledger.jsonl"
    path.rename(tmp_path / "elsewhere") if how == "moved" else path.unlink()
    if how == "replaced":
        path.write_text("")

    with pytest.raises(MachineError, match=r"ledger\.jsonl: .*run the same command again to go on"):
        directory.append([record(0)])


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
            ConfigError, match=rf"{name}: expected no other run into this directory; process {os.getpid()} "
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


def test_the_header_says_what_the_run_is(opened, tmp_path):
    opened()
    header = json.loads((tmp_path / "run" / "header.json").read_text())

    assert header["fingerprint"] == plan().fingerprint
    assert [name for name, _ in header["stages"]] == ["word_count"]


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
