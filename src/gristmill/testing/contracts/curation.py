"""The run that most tests of `ExecutorContract` look at, and what is known of it afterwards."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gristmill.backends.base import BaseExecutor
from gristmill.cli.run_files import RunFiles
from gristmill.cli.run_readers import read_documents, read_history_points, read_timeline, read_trace
from gristmill.dashboard.runs_site import RunsSite
from gristmill.dashboard.shown_run import Readers, ShownRun
from gristmill.dashboard.watched_run import WatchedRun
from gristmill.metrics.exporter import MetricsOptions
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch

FILES, ROWS = 2, 120
POISON = 17  # one document in each file
MIN_WORDS, MOST_COMMAS = 3, 8


class SplitsInTwo(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Not fused with its neighbours, so that tasks have to travel, two for each that comes."""

    name = "splits_in_two"
    fusible = False

    def process(self, task: DocumentBatch) -> list[DocumentBatch]:
        half = (task.num_items + 1) // 2
        return [part for part in (task.slice(0, half), task.slice(half, half)) if part.num_items]


class FailsOnPoison(ProcessingStage[DocumentBatch, DocumentBatch]):
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


class FewCommas(DocumentFilter[int]):
    """A user's own filter, in five lines."""

    def score_document(self, text: str) -> int:
        return text.count(",")

    def bounds(self) -> tuple[None, int]:
        return None, MOST_COMMAS


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

    def dashboard(self, question: str, query: Mapping[str, str] | None = None) -> Any:
        """What the dashboard's page is told. Here nothing is read in another process, which would take a second."""
        place = str(self.run)
        run = RunFiles(place)
        readers = Readers(
            documents=partial(read_documents, place),
            history=partial(read_history_points, place),
            timeline=partial(read_timeline, place),
            trace=partial(read_trace, place),
            quarantine_files=run.quarantine_files,
        )
        site = RunsSite([ShownRun(WatchedRun(run), readers)])
        return json.loads(site.answer(f"/api/{question}", query or {}).body)


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
        ScoreFilter(FewCommas()),
        SplitsInTwo(),
        FailsOnPoison(str(nodes)),
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
