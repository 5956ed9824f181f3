"""`ExecutorContract`: what every executor promises, as tests.

    class TestMyExecutor(ExecutorContract):
        @classmethod
        def make_executor(cls):
            return MyExecutor()

`LocalExecutor(num_workers=0)`, which runs everything in the test's own process, says what is right: the executor under
test has to write the same bytes and give the same account. Only pytest is needed, and no timing is judged.
"""

import asyncio
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from gristmill.backends.base import BaseExecutor
from gristmill.backends.chrome_trace import chrome_trace
from gristmill.backends.local import LocalExecutor
from gristmill.backends.schedules import RunSchedule
from gristmill.cli.run_files import RunFiles
from gristmill.dashboard.report import Report
from gristmill.dashboard.run_data import read_run
from gristmill.engine.plan import AnyTask
from gristmill.engine.spans import Span
from gristmill.errors import ConfigError, InputsChanged, TooManyQuarantined
from gristmill.metrics.observation_files import encode_observations, load_observations
from gristmill.metrics.pace import NUM_SLOTS
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.runs.directory import ON_DISK
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.testing.contracts.curation import (
    FILES,
    ROWS,
    Curated,
    FailsOnPoison,
    SplitsInTwo,
    curate,
    curation,
    visible_files,
    write_corpus,
)


class _TouchesAnInput(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Changes a file after the run was planned and before anything is read: not one of its parts may be read."""

    name = "touches_an_input"

    def __init__(self, path: str) -> None:
        self._path = path

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        os.utime(self._path, ns=(1, 1))

    def process(self, task: DocumentBatch) -> DocumentBatch:
        return task


class _AddsTheSetUp(ProcessingStage[AnyTask, AnyTask]):
    """Uses what `setup` made, as a stage with a model does."""

    name = "adds_the_set_up"

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._word = "ready" if worker_metadata is not None else "told nothing"

    def process(self, task: AnyTask) -> AnyTask:
        task._metadata["word"] = self._word
        return task


class _MeetsAnother(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Answers no call before another is under way, and raises on one document: calls of it have to overlap."""

    name = "meets_another"
    lanes = 4

    async def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:  # type: ignore[override]
        self._here = 0
        self._both = asyncio.Event()

    async def process(self, task: DocumentBatch) -> DocumentBatch:  # type: ignore[override]
        self._here += 1
        if self._here > 1:
            self._both.set()
        await asyncio.wait_for(self._both.wait(), 30)
        if 3 in task.column("n").to_pylist():
            raise ValueError("three")
        return task

    def num_workers(self) -> int | None:
        return 1


class ExecutorContract:
    """Tests any executor has to pass. Define `make_executor`; all tests use one, kept ready between their runs."""

    outlives_machines: ClassVar[bool] = True  # whether a run goes on when one of its machines stops

    @classmethod
    def make_executor(cls) -> BaseExecutor:
        """Return the executor under test."""
        raise NotImplementedError(f"{cls.__name__}: expected make_executor to be defined")

    @pytest.fixture(scope="class")
    @classmethod
    def corpus(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return write_corpus(tmp_path_factory.mktemp("contract") / "in")

    @pytest.fixture(scope="class")
    @classmethod
    def expected(cls, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Curated:
        return curate(LocalExecutor(num_workers=0), corpus, tmp_path_factory.mktemp("expected"))

    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls) -> Iterator[BaseExecutor]:
        with cls.make_executor().kept_ready() as ready:
            yield ready

    @pytest.fixture(scope="class")
    @classmethod
    def curated(cls, executor: BaseExecutor, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Curated:
        return curate(executor, corpus, tmp_path_factory.mktemp("curated"))

    def test_the_outputs_and_rejects_are_byte_for_byte_those_of_one_process(
        self, curated: Curated, expected: Curated
    ) -> None:
        assert curated.outputs() == expected.outputs()
        assert any(name.startswith("rejects/") for name in curated.outputs())

    def test_what_is_recorded_about_documents_is_byte_for_byte_that_of_one_process(
        self, curated: Curated, expected: Curated
    ) -> None:
        seen = load_observations(curated.run)
        tally, counts = seen.tally("word_count", "word_count"), curated.result.counts["word_count"]

        assert encode_observations(seen) == encode_observations(load_observations(expected.run))
        assert tally.kept.num_documents == counts.documents_out
        assert tally.refused.num_documents == counts.dropped["word_count"]
        assert tally.nearest[0].refused

    def test_every_document_that_was_read_is_accounted_for(self, curated: Curated) -> None:
        result = curated.result

        assert result.read == FILES * (ROWS + 1)
        assert result.read == result.written + result.dropped_total + result.quarantined

    def test_the_books_are_those_of_one_process(self, curated: Curated, expected: Curated) -> None:
        assert counts_of(curated.result) == counts_of(expected.result)
        assert curated.result.dropped == expected.result.dropped

    def test_what_a_stage_counts_is_counted_once_however_often_it_was_tried(
        self, curated: Curated, expected: Curated
    ) -> None:
        counts, last = curated.result.counts["fails_on_poison"], curated.snapshots[-1].stages[-2]

        assert counts.counted == {"looked_at": counts.documents_out}
        assert counts.observed == expected.result.counts["fails_on_poison"].observed
        assert curated.result.observed["fails_on_poison"]["numbers"].num_values == counts.documents_out
        assert last.metrics["looked_at"] == counts.documents_out
        assert last.observed["numbers"]["values"] == counts.documents_out

    def test_a_document_that_breaks_a_stage_is_quarantined_and_no_other(
        self, curated: Curated, expected: Curated
    ) -> None:
        errors = [str(entry["error"]) for entry in curated.quarantine()]

        assert sum("cannot do" in error for error in errors) == FILES
        assert curated.quarantine() == expected.quarantine()

    def test_a_stage_is_set_up_once_on_every_machine(self, curated: Curated) -> None:
        notes = {path.name: path.read_text() for path in curated.nodes.iterdir()}

        assert notes
        assert set(notes.values()) == {"set up\n"}

    def test_whoever_watches_sees_the_run_end_with_its_final_numbers(self, curated: Curated) -> None:
        last, result = curated.snapshots[-1], curated.result

        assert last.state == "finished"
        assert (last.read, last.written, last.quarantined) == (result.read, result.written, result.quarantined)
        assert last.partitions_done == last.partitions_total

    def test_metrics_say_what_the_books_say(self, curated: Curated) -> None:
        samples = [line.rpartition(" ") for line in curated.metrics.splitlines() if not line.startswith("#")]
        total = Counter[str]()
        for series, _, value in samples:
            total[series.partition("{")[0]] += float(value)  # type: ignore[assignment]  # all of them are whole numbers

        result = curated.result
        assert total["gristmill_read_documents_total"] == result.read
        assert total["gristmill_written_documents_total"] == result.written
        assert total["gristmill_created_documents_total"] == result.created
        assert total["gristmill_dropped_documents_total"] == result.dropped_total
        assert total["gristmill_task_duration_seconds_count"] >= len(result.counts)
        failed = [float(value) for series, _, value in samples if 'outcome="quarantined"' in series]
        assert sum(failed) == result.quarantined

    def test_the_dashboard_says_what_the_books_say(self, curated: Curated) -> None:
        counts = curated.result.counts
        state, funnel = curated.dashboard("run"), curated.dashboard("funnel")
        rows = {row["stage"]: row for row in funnel["rows"] if row["rule"] is None}
        reasons = {(row["stage"], row["rule"]): row["dropped"] for row in funnel["rows"] if row["dropped"]["documents"]}

        assert state["run"] == "finished"
        for name in ("read", "created", "written", "quarantined"):
            assert state["snapshot"][name] == funnel["books"][name] == getattr(curated.result, name)
        assert state["snapshot"]["dropped"] == funnel["books"]["dropped"] == curated.result.dropped_total
        assert list(rows) == [stage["name"] for stage in state["snapshot"]["stages"]] == list(counts)
        for name, own in counts.items():
            lost = {"documents": own.dropped_total, "bytes": sum(own.dropped_bytes.values())}
            assert rows[name]["in"]["documents"] == (own.documents_in or own.read)
            assert rows[name]["out"] == {"documents": own.documents_out or own.written, "bytes": own.bytes_out}
            assert (rows[name]["dropped"], rows[name]["failed"]) == (lost, {"documents": own.quarantined})
            for reason, number in own.dropped.items():
                assert reasons[name, reason] == {"documents": number, "bytes": own.dropped_bytes[reason]}

    def test_the_dashboard_shows_the_rules_and_the_schedule_of_the_run(self, curated: Curated) -> None:
        counts, schedule = curated.result.counts, curated.dashboard("schedule")
        stages = curated.dashboard("run")["snapshot"]["stages"]

        for name in ("word_count", "few_commas"):
            rule = curated.dashboard("rule", {"stage": name, "rule": name})
            assert (rule["num_kept"], rule["num_refused"]) == (counts[name].documents_out, counts[name].dropped[name])
        done = Counter[int]()
        for worker in schedule["busy"]:
            done[worker["group"]] += worker["tasks"]
        assert done == {stage["group"]: sum(stage["latency"]) for stage in stages}
        assert schedule["spans"]["kind"].count(schedule["kinds"].index("task")) == sum(done.values())
        assert not schedule["problem"]

    def test_a_filter_of_a_users_own_shows_up_wherever_a_run_is_shown(self, curated: Curated) -> None:
        own, report = curated.result.counts["few_commas"], Report.of([read_run(RunFiles(str(curated.run)))])
        [flow] = [flow for flow in report.runs[0].run.documents.funnel if flow.stage == "few_commas"]
        [measured] = [rule for rule in report.runs[0].run.documents.rules if rule.stage == "few_commas"]
        series = [line for line in curated.metrics.splitlines() if 'reason="few_commas"' in line]
        dropped = own.dropped["few_commas"]

        assert dropped
        assert [(reason.reason, reason.documents) for reason in flow.reasons] == [("few_commas", dropped)]
        assert (measured.name, measured.kept, measured.refused) == ("few_commas", own.documents_out, dropped)
        assert "few_commas" in report.to_html()
        assert [float(line.rpartition(" ")[2]) for line in series if "documents" in line] == [dropped]
        assert curated.dashboard("rule", {"stage": "few_commas", "rule": "few_commas"})["high"] == measured.high
        assert {"stage": "few_commas", "reason": "few_commas", "documents": dropped} in curated.dashboard("reasons")

    def test_whoever_watches_learns_how_stages_and_machines_are_doing(self, curated: Curated) -> None:
        last, result = curated.snapshots[-1], curated.result

        assert last.started_at <= last.made_at
        assert last.fingerprint
        for stage in last.stages:
            assert stage.reasons == result.counts[stage.name].dropped
            assert len(stage.latency) == NUM_SLOTS
            assert sum(stage.latency) >= 1
            assert stage.last_progress_at is not None
            assert last.started_at <= stage.last_progress_at <= last.made_at + 1.0
        # The poisoned one is tried again, alone; then nothing is left to try.
        assert {stage.name for stage in last.stages if stage.retries} == {"fails_on_poison"}
        assert last.peak_memory_bytes >= last.memory_bytes > 0
        assert last.nodes
        for node in last.nodes:
            assert 0 < node.memory_bytes <= node.memory_total_bytes
            assert node.cpu_s > 0
            assert node.sampled_at <= last.made_at + 1.0

    def test_files_are_on_disk_before_they_count_where_a_run_may_outlive_the_machine_that_wrote_them(
        self, curated: Curated
    ) -> None:
        assert ((curated.run / "start").read_text() == ON_DISK) is self.outlives_machines

    def test_the_schedule_holds_every_second_of_the_books_and_no_worker_is_at_two_things(
        self, curated: Curated
    ) -> None:
        spans = [shown for shown in RunSchedule(curated.run) if isinstance(shown, Span)]
        tasks = [span for span in spans if span.kind == "task"]
        booked_s = sum(counts.process_s for counts in curated.result.counts.values())

        assert sum(sum(span.process_s) for span in tasks) == pytest.approx(booked_s, rel=0.01)
        assert (
            sum(span.documents_in for span in tasks if span.group == 1)
            == curated.result.counts["splits_in_two"].documents_in
        )
        for _, row in itertools.groupby(sorted(spans, key=_row), lambda span: _row(span)[:3]):
            assert all(first.end_s <= second.start_s for first, second in itertools.pairwise(row))

    def test_a_trace_draws_every_second_of_the_books_once(self, curated: Curated) -> None:
        schedule = RunSchedule(curated.run)
        trace = json.loads(b"".join(chrome_trace(schedule, schedule.groups, name="p")))["traceEvents"]
        drawn = sorted((event for event in trace if event["ph"] == "X"), key=_thread)
        tasks, stages = ([event for event in drawn if event["cat"] == cat] for cat in ("task", "stage"))
        counts = curated.result.counts

        for name, own in counts.items():
            drawn_s = sum(event["dur"] for event in stages if event["name"] == name) / 1e6
            assert drawn_s == pytest.approx(own.process_s, rel=0.01)
        booked_s = sum(own.process_s for own in counts.values())
        assert sum(event["args"].get("process s", 0) for event in tasks) == pytest.approx(booked_s, rel=0.01)
        for events in (stages, [event for event in drawn if event["cat"] != "stage"]):
            for _, row in itertools.groupby(events, lambda event: _thread(event)[:2]):
                assert all(a["ts"] + a["dur"] <= b["ts"] + 0.002 for a, b in itertools.pairwise(row))  # rounded to ns

    def test_a_finished_run_is_not_done_again(self, executor: BaseExecutor, corpus: Path, curated: Curated) -> None:
        times = _times(curated.out)
        pipeline = curation(corpus, curated.out, curated.nodes)
        again = pipeline.run(executor, rejects_path=curated.out / "rejects", checkpoint_path=curated.run)

        assert again.already_finished
        assert not curated.result.already_finished
        assert counts_of(again) == counts_of(curated.result)
        assert _times(curated.out) == times

    def test_a_run_without_a_writer_returns_its_tasks_in_the_order_of_their_sources(
        self, executor: BaseExecutor
    ) -> None:
        given = [DocumentBatch("given", pa.table({"n": [n] * 3, "text": ["x" * 50] * 3})) for n in range(5)]
        stages = [SplitsInTwo(), _AddsTheSetUp()]
        result = Pipeline("tasks", stages=stages).run(executor, initial_tasks=given)  # type: ignore[arg-type]

        assert [_numbers(task) for task in result] == [[n] * k for n in range(5) for k in (2, 1)]
        assert {task._metadata["word"] for task in result} == {"ready"}

    def test_too_many_quarantined_documents_stop_the_run(
        self, executor: BaseExecutor, corpus: Path, tmp_path: Path
    ) -> None:
        stages = [JsonlReader(str(corpus)), FailsOnPoison(str(tmp_path)), JsonlWriter(str(tmp_path / "out"))]

        with pytest.raises(TooManyQuarantined, match="expected at most 1 document in quarantine"):
            Pipeline("limited", stages=stages).run(executor, max_quarantined=1)  # type: ignore[arg-type]

    def test_an_input_that_changed_is_named_and_the_rest_is_done(self, executor: BaseExecutor, tmp_path: Path) -> None:
        corpus, out = write_corpus(tmp_path / "in"), tmp_path / "out"
        changed = corpus / "part-1.jsonl"
        stages = [JsonlReader(str(corpus)), _TouchesAnInput(str(changed)), JsonlWriter(str(out))]

        with pytest.raises(InputsChanged, match=r"part-1\.jsonl"):
            Pipeline("changed", stages=stages).run(executor)  # type: ignore[arg-type]
        assert list(visible_files(out)) == ["part-0.jsonl"]

    def test_rows_meet_at_an_exchange(self, executor: BaseExecutor, corpus: Path, tmp_path: Path) -> None:
        for name, where in (("here", LocalExecutor(num_workers=0)), ("there", executor)):
            stages = [JsonlReader(str(corpus)), Exchange("site", 2), JsonlWriter(str(tmp_path / name))]
            Pipeline("meet", stages=stages).run(where)  # type: ignore[arg-type]

        assert visible_files(tmp_path / "there") == visible_files(tmp_path / "here")
        assert visible_files(tmp_path / "there")

    def test_calls_of_a_stage_with_lanes_overlap_and_fail_alone(self, executor: BaseExecutor) -> None:
        """`lanes`: one worker has several calls under way, and one that fails costs one document."""
        tasks = [DocumentBatch(dataset_name="n", data=pa.table({"n": [n]})) for n in range(12)]
        pipeline = Pipeline("lanes", stages=[_MeetsAnother()])
        result = pipeline.run(executor, initial_tasks=tasks)
        assert [number for task in result for number in _numbers(task)] == [n for n in range(12) if n != 3]
        assert counts_of(result)["meets_another"]["quarantined"] == 1

    def test_an_unknown_option_is_an_error_that_lists_the_known_ones(self) -> None:
        kind = type(self.make_executor())

        with pytest.raises(ConfigError, match=f"^{kind.__name__}: expected one of its options .*; got 'n_workrs'"):
            kind.from_options({"n_workrs": 3})


def _thread(event: dict[str, Any]) -> tuple[int, int, float]:
    return event["pid"], event["tid"], event["ts"]


def _row(span: Span) -> tuple[int, int, int, float]:
    return span.group, span.worker, span.lane, span.start_s


def _times(directory: Path) -> dict[Path, int]:
    """When each file was written. A directory changes with the lock that is made in it and removed again."""
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


def _numbers(task: AnyTask) -> list[int]:
    if not isinstance(task, DocumentBatch):
        raise TypeError(f"expected a DocumentBatch; got {task!r}")
    return list(task.column("n").to_pylist())


def counts_of(result: RunResult) -> dict[str, dict[str, object]]:
    """The account of every stage in documents; seconds, and bytes in memory, depend on where and how it ran."""
    counts = {name: own.to_json() for name, own in result.counts.items()}
    apart = ("process_s", "bytes_in")
    return {name: {key: value for key, value in own.items() if key not in apart} for name, own in counts.items()}
