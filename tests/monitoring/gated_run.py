"""A run that goes as far as its test lets it: `python -m tests.monitoring.gated_run DIRECTORY TARGETS [HOG_BYTES]`.

DIRECTORY has `in/` with one file for each partition, whose documents say their partition's number, and `open`, a file
with a number: so many partitions pass the first stage, whichever come first, and the others stand still. Prints the
counts of the run as JSON.
"""

import json
import select
import sys
from pathlib import Path

import msgspec

from gristmill.backends.local import LocalExecutor
from gristmill.metrics.exporter import MetricsOptions
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

STEP_S = 0.01
DOCUMENTS = 40  # of a partition; in every ten one is short, and with poison one cannot be processed


def write_input(directory, partitions, *, poison=True):
    (directory / "in").mkdir(parents=True)
    let(directory, 0)
    for part in range(partitions):
        lines = [
            json.dumps(
                {
                    "id": f"{part}-{n}",
                    "part": part,
                    "poison": poison and n % 10 == 1,
                    "text": "word " * (2 if n % 10 == 2 else 80),
                }
            )
            for n in range(DOCUMENTS)
        ]
        (directory / "in" / f"{part:03}.jsonl").write_text("\n".join(lines) + "\n")


def let(directory, partitions):
    """Let so many partitions pass the gate."""
    (directory / "new").write_text(str(partitions))
    (directory / "new").replace(directory / "open")


class MonitoredGate(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "gate"

    def __init__(self, file, hog_bytes=0):
        self.file = Path(file)
        self.hog_bytes = hog_bytes

    def inputs(self):
        return ["data"], ["part"]

    def outputs(self):
        return ["data"], []

    def setup(self, worker_metadata=None):
        self.held = b"x" * self.hog_bytes

    def process(self, task):
        mine = self.file.with_name(f"passed-{task.to_pyarrow()['part'][0].as_py()}")
        while not mine.exists() and not self._has_room():
            select.select([], [], [], STEP_S)
        mine.touch()  # what is tried again, a document at a time, has passed already
        return task

    def _has_room(self):
        for number in range(int(self.file.read_text())):
            try:
                self.file.with_name(f"taken-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False


class Choke(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "choke"

    def inputs(self):
        return ["data"], ["poison"]

    def outputs(self):
        return ["data"], []

    def process(self, task):
        if any(task.to_pyarrow()["poison"].to_pylist()):
            raise ValueError("a document that cannot be swallowed")
        return task


def gated_pipeline(directory, hog_bytes=0):
    return Pipeline(
        "gated",
        stages=[
            JsonlReader(str(directory / "in")),
            MonitoredGate(str(directory / "open"), hog_bytes),
            ScoreFilter(WordCountFilter(min_words=10), text_field="text"),
            Choke(),
            JsonlWriter(str(directory / "out")),
        ],
    )


def books(result):
    """The counts of a run as JSON: those of the whole, and of each stage."""
    return {
        "read": result.read,
        "written": result.written,
        "stages": {
            name: {
                "out": counts.documents_out or counts.written,
                "quarantined": counts.quarantined,
                "dropped": msgspec.to_builtins(counts.dropped),
            }
            for name, counts in result.counts.items()
        },
    }


def main(directory, targets, hog_bytes=0, memory_limit=None):
    done = gated_pipeline(Path(directory), int(hog_bytes)).run(
        LocalExecutor(num_workers=1 if hog_bytes else 2, memory_limit=memory_limit),
        max_quarantined=None,
        metrics=MetricsOptions(discovery=targets, linger_s=60),
    )
    print(json.dumps(books(done)))


if __name__ == "__main__":
    main(*sys.argv[1:])
