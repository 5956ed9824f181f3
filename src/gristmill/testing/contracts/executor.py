"""`ExecutorContract`: what every executor promises, as tests.

    class TestMyExecutor(ExecutorContract):
        @classmethod
        def make_executor(cls):
            return MyExecutor()

What is right is said by `LocalExecutor(num_workers=0)`, which runs everything in the test's own process: the executor
under test has to write the same bytes and give the same account. Only pytest is needed, and no timing is judged.
"""

import asyncio
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from gristmill.backends.base import BaseExecutor
from gristmill.backends.chrome_trace import chrome_trace
from gristmill.backends.local import LocalExecutor
from gristmill.backends.schedules import RunSchedule
from gristmill.engine.plan import AnyTask
from gristmill.engine.spans import Span
from gristmill.errors import ConfigError, InputsChanged, TooManyQuarantined
from gristmill.metrics.exporter import MetricsOptions
from gristmill.metrics.observation_files import encode_observations, load_observations
from gristmill.metrics.pace import NUM_SLOTS
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.runs.directory import ON_DISK
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch

FILES, ROWS = 2, 120
POISON = 17  # one document in each file
MIN_WORDS = 3


class _SplitsInTwo(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Not fused with its neighbours, so that tasks have to travel, two for each that comes."""

    name = "splits_in_two"
    fusible = False

    def process(self, task: DocumentBatch) -> list[DocumentBatch]:
        half = (task.num_items + 1) // 2
        return [part for part in (task.slice(0, half), task.slice(half, half)) if part.num_items]


class _FailsOnPoison(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises for some documents. `nodes` is a directory in which every machine leaves a note that it was set up."""

    name = "fails_on_poison"

    def __init__(self, nodes: str) -> None:
        self._nodes = nodes

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        node = node_info.node_id if node_info is not None else "?"
        with (Path(self._nodes) / node).open("a") as note:
            note.write("set up\n")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        self.context.count("looked_at", task.num_items)  # before it fails: what is tried again must not count twice
        if task.num_items:
            self.context.observe("numbers", task.column("n"))
        bad = [n for n in task.column("n").to_pylist() if n % ROWS == POISON]
        if bad:
            raise ValueError(f"cannot do {bad}")
        return task


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


@dataclass
class Curated:
    """One run of the pipeline most tests look at."""

    result: RunResult
    out: Path
    nodes: Path
    run: Path
    snapshots: list[RunSnapshot]
    metrics: str  # as Prometheus reads them

    def outputs(self) -> dict[str, bytes]:
        return visible_files(self.out)

    def quarantine(self) -> list[dict[str, object]]:
        """Quarantined documents in order, without tracebacks: their frames below the stage are the executor's own."""
        files = sorted((self.run / "quarantine").iterdir())
        entries = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [{key: value for key, value in entry.items() if key != "traceback"} for entry in entries]


def visible_files(directory: Path) -> dict[str, bytes]:
    """The files below a directory that a user sees, by relative name."""
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    named = {path.relative_to(directory): path for path in paths}
    return {
        str(name): path.read_bytes() for name, path in named.items() if not any(p.startswith(".") for p in name.parts)
    }


def write_corpus(directory: Path) -> Path:
    """Documents of 0 to 10 words, one malformed line in every file."""
    directory.mkdir(parents=True)
    for file in range(FILES):
        documents = [{"n": ROWS * file + row, "text": "wörd, " * (row % 11), "site": row % 7} for row in range(ROWS)]
        lines = [json.dumps(document, ensure_ascii=False) for document in documents]
        lines.insert(5, '{"n": ')
        (directory / f"part-{file}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def curation(corpus: Path, out: Path, nodes: Path) -> Pipeline:
    """Read in pieces, filter, travel, fail on some, write."""
    nodes.mkdir(parents=True, exist_ok=True)
    stages: list[object] = [
        JsonlReader(str(corpus), blocksize="2KB"),
        ScoreFilter(WordCountFilter(min_words=MIN_WORDS), score_field="words"),
        _SplitsInTwo(),
        _FailsOnPoison(str(nodes)),
        JsonlWriter(str(out)),
    ]
    return Pipeline("curation", stages=stages)  # type: ignore[arg-type]  # stages of documents are stages


def curate(executor: BaseExecutor, corpus: Path, where: Path) -> Curated:
    """Run the pipeline of this contract in a directory of its own."""
    snapshots: list[RunSnapshot] = []
    out, nodes, run = where / "out", where / "nodes", where / "run"
    metrics = MetricsOptions(file=where / "metrics.prom")
    result = curation(corpus, out, nodes).run(
        executor, rejects_path=out / "rejects", checkpoint_path=run, observer=snapshots.append, metrics=metrics
    )
    return Curated(result, out, nodes, run, snapshots, (where / "metrics.prom").read_text(encoding="utf-8"))


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
        # The one that is poisoned is tried again, alone; then nothing is left to be tried.
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
        schedule = RunSchedule(curated.run)
        spans = [shown for shown in schedule if isinstance(shown, Span)]
        tasks = [span for span in spans if span.kind == "task"]
        booked_s = sum(counts.process_s for counts in curated.result.counts.values())

        assert sum(sum(span.process_s) for span in tasks) == pytest.approx(booked_s, rel=0.01)
        trace = json.loads(b"".join(chrome_trace(schedule, schedule.groups, name="p")))["traceEvents"]
        written_s = sum(event["args"].get("process s", 0) for event in trace if event.get("cat") == "task")
        assert written_s == pytest.approx(booked_s, rel=0.01)
        assert (
            sum(span.documents_in for span in tasks if span.group == 1)
            == curated.result.counts["splits_in_two"].documents_in
        )
        for _, row in itertools.groupby(sorted(spans, key=_row), lambda span: _row(span)[:3]):
            assert all(first.end_s <= second.start_s for first, second in itertools.pairwise(row))

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
        stages = [_SplitsInTwo(), _AddsTheSetUp()]
        result = Pipeline("tasks", stages=stages).run(executor, initial_tasks=given)  # type: ignore[arg-type]

        assert [_numbers(task) for task in result] == [[n] * k for n in range(5) for k in (2, 1)]
        assert {task._metadata["word"] for task in result} == {"ready"}

    def test_too_many_quarantined_documents_stop_the_run(
        self, executor: BaseExecutor, corpus: Path, tmp_path: Path
    ) -> None:
        stages = [JsonlReader(str(corpus)), _FailsOnPoison(str(tmp_path)), JsonlWriter(str(tmp_path / "out"))]

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
