"""The program the fault tests disturb: `python -m tests.fault.curate INPUT WORK [--workers N] [--block-s S]`.

Everything it makes is below WORK: out/, rejects/, run/ (the run directory). Its groups run in several processes, it
drops, rejects and quarantines, and waits where a test wants to hit it (`hold.py`).
"""

import argparse
import hashlib
import json

from tests.fault.hold import wait_while_held

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

ROUNDS_PER_MS = 1500  # of PBKDF2-SHA256, roughly


class Labour(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Keeps a core busy for a while; cannot cope with one kind of document."""

    name = "labour"
    fusible = False

    def __init__(self, work_ms=10):
        self.work_ms = work_ms

    def process(self, task):
        for text in task.column("text").to_pylist():
            if text == "cannot be worked on":
                raise ValueError(f"will not do: {text}")
        wait_while_held()
        hashlib.pbkdf2_hmac("sha256", b"labour", b"salt", self.work_ms * ROUNDS_PER_MS)
        return task


def build(source, work, *, min_words=3, work_ms=10, mode="ignore"):
    return Pipeline(
        "curate",
        stages=[
            JsonlReader(file_paths=str(source)),
            Labour(work_ms),
            ScoreFilter(WordCountFilter(min_words=min_words)),
            JsonlWriter(path=f"{work}/out", mode=mode),
        ],
    )


def run(source, work, *, workers=2, fresh=False, observer=None, **options):
    executor = LocalExecutor(num_workers=workers)
    paths = {"checkpoint_path": f"{work}/run", "rejects_path": f"{work}/rejects"}
    return build(source, work, **options).run(executor, fresh=fresh, observer=observer, **paths)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("work")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--work-ms", type=int, default=10)
    options = parser.parse_args()
    result = run(options.source, options.work, workers=options.workers, work_ms=options.work_ms)
    print(json.dumps(result.to_json()))


if __name__ == "__main__":
    main()
