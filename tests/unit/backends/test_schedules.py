"""The schedule of a run is read from its directory, and written as a trace that viewers accept."""

import itertools
import json
import shutil

import pytest
from typer.testing import CliRunner

from gristmill.backends.chrome_trace import chrome_trace
from gristmill.backends.delegated.registrar import Registrar
from gristmill.backends.delegated.task_times import TaskTime, TaskTimes
from gristmill.backends.local import LocalExecutor
from gristmill.backends.schedules import RunSchedule, ScheduledGroup
from gristmill.cli.main import app
from gristmill.cli.run_readers import read_timeline
from gristmill.dashboard.timeline import workers
from gristmill.engine.spans import Level, Mark, Span
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.virtual_run import group


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The run directory of a run with an exchange, in this process."""
    home = tmp_path_factory.mktemp("run")
    (home / "in").mkdir()
    for part in range(3):
        lines = [json.dumps({"id": f"{part}-{n}", "site": n % 2, "text": "a b c"}) for n in range(50)]
        (home / "in" / f"{part}.jsonl").write_text("\n".join(lines))
    stages = [JsonlReader(str(home / "in")), Exchange("site", 2), JsonlWriter(str(home / "out"))]
    result = Pipeline("p", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=home / "run")
    return home / "run", result


def read(path):
    """The events of a trace; raises what a strict reader would."""
    trace = json.loads(path.read_text())
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "name"} <= event.keys()
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
        elif event["ph"] == "i":
            assert event["s"] in "tpg"
    return trace["traceEvents"]


def is_nested(row):
    """Whether spans of a thread lie inside or behind each other, which is all that viewers can show."""
    open_ends = []
    for event in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1] <= event["ts"] + 0.001:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + 0.001:
            return False
        open_ends.append(end)
    return True


def test_a_trace_shows_all_segments_on_one_clock_and_every_second_of_the_books(finished, tmp_path):
    run, result = finished
    target = tmp_path / "t.json"
    said = CliRunner().invoke(app, ["trace", str(run), "-o", str(target)])
    events = read(target)
    tasks = [e for e in events if e["ph"] == "X" and e["cat"] == "task"]
    booked_s = sum(counts.process_s for counts in result.counts.values())

    assert said.exit_code == 0, said.output
    assert "Open it at https://ui.perfetto.dev" in said.output
    assert sum(e["args"]["process s"] for e in tasks) == pytest.approx(booked_s, rel=0.01)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len(names) == 3
    assert [name.endswith(f"(segment {n})") for n, name in enumerate(names.values()) if n] == [True, True]
    first, second = (min(e["ts"] for e in tasks if e["pid"] == pid) for pid in (1, 2))
    assert first < second
    for _, row in itertools.groupby(
        sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["pid"], e["tid"])),
        lambda e: (e["pid"], e["tid"]),
    ):
        assert is_nested(list(row))


def test_a_part_of_a_run_is_what_touches_it(finished):
    whole = [shown for shown in RunSchedule(finished[0]) if isinstance(shown, Span)]
    middle = sorted(span.end_s for span in whole)[len(whole) // 2]
    part = list(RunSchedule(finished[0]).within(middle, middle))

    assert part
    assert all(span.start_s <= middle <= span.end_s for span in part if isinstance(span, Span))
    assert len(part) < len(whole)


def test_an_earlier_session_is_asked_for_by_its_number_and_a_missing_one_says_which_there_are(finished, tmp_path):
    run = tmp_path / "out" / ".gristmill"
    run.mkdir(parents=True)
    shutil.copy(finished[0] / "segment-1" / "events.log", run / "events.1.log")

    assert [span for span in RunSchedule(tmp_path / "out", session=1) if isinstance(span, Span)]
    with pytest.raises(ConfigError, match=r"with events\.log in it; got .*; there are events\.1\.log"):
        RunSchedule(tmp_path / "out")


def test_a_log_that_is_damaged_is_shown_as_far_as_it_can_be_read(finished, tmp_path):
    log = bytearray((finished[0] / "segment-1" / "events.log").read_bytes())
    log[len(log) // 2] ^= 255
    (tmp_path / "events.log").write_bytes(log)
    schedule = RunSchedule(tmp_path)

    assert list(schedule)
    assert "damaged" in schedule.problem


def test_where_another_engine_schedules_the_times_of_tasks_are_the_schedule(tmp_path):
    path = tmp_path / "tasks.jsonl"
    TaskTimes(path, [group(0)]).add([TaskTime(0, "n-1", "old", 5.0, 6.0, 1.0, 1, 1, 1, (1.0,))])
    times = TaskTimes(path, [group(0), group(1, lanes=2)])
    times.add([TaskTime(0, "n-1", "p", 10.0, 14.0, 3.0, 9, 8, 70, (3.0,))])
    times.add([TaskTime(0, "n-1", "q", 10.0, 14.0, 1.0, 9, 8, 70, (1.0,))])
    times.add([TaskTime(1, "n-2", name, 12.0, 15.0, 2.0, 1, 1, 1, (2.0,)) for name in ("x", "y")])
    with path.open("a") as file:
        file.write('[0,"n-1","cut')

    found = list(RunSchedule(tmp_path))
    spans = [(s.item_id, s.worker, s.lane, s.start_s, s.end_s) for s in found if isinstance(s, Span)]
    assert spans == [("p", 0, 0, 0.0, 3.0), ("q", 0, 0, 3.0, 4.0), ("x", 1, 0, 3.0, 5.0), ("y", 1, 1, 3.0, 5.0)]
    assert [m.text for m in found if isinstance(m, Mark)] == ["n-1", "n-2"]
    assert [s.item_id for s in RunSchedule(tmp_path, session=1) if isinstance(s, Span)] == ["old"]
    with pytest.raises(ConfigError, match="expected one of its 1 earlier sessions, 1 the latest; got 2"):
        RunSchedule(tmp_path, session=2)


def test_a_process_that_is_given_tasks_of_two_groups_is_a_worker_of_each(tmp_path):
    times = TaskTimes(tmp_path / "tasks.jsonl", [group(0), group(1, lanes=2)])
    times.add([TaskTime(0, "n-1", "p", 10.0, 11.0, 1.0, 9, 8, 70, (1.0,))])
    times.add([TaskTime(1, "n-1", name, 11.0, 13.0, 2.0, 1, 1, 1, (2.0,)) for name in ("x", "y")])
    timeline = read_timeline(str(tmp_path))

    busy = [(worker.group, worker.tasks, timeline.names[worker.number]) for worker in workers(timeline, is_live=False)]
    assert busy == [(0, 1, "n-1"), (1, 2, "n-1")]
    assert list(timeline.lane) == [0, 0, 1]  # as many as its own group has


def test_the_registrar_notes_when_a_task_was_begun_and_done_by_its_own_clock():
    from gristmill.backends.delegated.envelope import Receipt
    from gristmill.metrics.snapshot import StageCounts

    clock = iter([5.0, 9.0])
    registrar = Registrar(lambda: next(clock))
    registrar.begin(0, "node-77-3", [(0, "p")])
    counts = (StageCounts(documents_in=4, bytes_in=40, process_s=0.5), StageCounts(documents_out=3, process_s=0.25))
    registrar.finish([Receipt(0, 0, "p", 1, counts, (), (), (), useful_s=1.0)])

    assert registrar.take().times == (TaskTime(0, "node-77", "p", 5.0, 9.0, 1.0, 4, 3, 40, (0.5, 0.25)),)
    assert registrar.take().times == ()


def test_names_with_quotes_and_control_characters_stay_inside_their_strings():
    hostile = '"]}</script>\u0000\u202e\n'
    shown = [
        Span("task", 0, 0, 0.0, 1.0, item_id=hostile, process_s=(0.4, 0.7), note=hostile),
        Mark("message", 1.0, hostile),
        Level("memory", 1.0, 5, 0, 0),
    ]
    text = b"".join(chrome_trace(shown, [ScheduledGroup(hostile, ("a", hostile), 0)], name=hostile))
    events = json.loads(text)["traceEvents"]

    assert [e["name"] for e in events if e["ph"] == "X"] == [hostile, "a", hostile]
    assert is_nested([e for e in events if e["ph"] == "X"])
    assert text.isascii() or "\u0000" not in text.decode()


def test_a_directory_without_a_run_is_refused_with_what_was_expected(tmp_path):
    with pytest.raises(ConfigError, match=r"expected the directory of a run with events\.log in it"):
        RunSchedule(tmp_path)
