"""The run directory: one driver at a time, what is committed is found again, another plan is refused."""

import contextlib
import json
import re
import resource
import shutil
from pathlib import Path

import pytest
from tests.jsonl_files import write_documents
from tests.unit.runs.records import plan, record

from gristmill.backends.local import LocalExecutor
from gristmill.backends.scheduled.kept_records import read_frames
from gristmill.engine.replay import read_header
from gristmill.errors import ConfigError, MachineError, ResumeRefused
from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.books import RunResult
from gristmill.runs.directory import RunDirectory
from gristmill.runs.ledger import CommitRecord, encode, replay, sealed
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import StagedFile

RUN_OF_FORM_2 = Path(__file__).parents[2] / "data" / "run-format-2"


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

    with pytest.raises(ResumeRefused, match=r"have format 3; this one has format None, written by 0\.1.*fresh=True"):
        opened()


def test_a_directory_whose_ledger_counts_lines_is_refused_and_left_as_it_is(tmp_path):
    """Form 2 had `lines_read` where there are facts now. The run was made by the last version that wrote it."""
    run = tmp_path / "run"
    shutil.copytree(RUN_OF_FORM_2, run)
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    pipeline = Pipeline("old", stages=[JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))])
    told = "has format 2, written by 0.1, and was left as it is. Continue it with the version that began it"
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
        pytest.raises(ConfigError, match="event log: expected format 5; got 2"),
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


def test_the_header_says_what_the_run_is(opened, tmp_path):
    opened()
    header = json.loads((tmp_path / "run" / "header.json").read_text())

    assert header["fingerprint"] == plan().fingerprint
    assert [name for name, _ in header["stages"]] == ["word_count"]
