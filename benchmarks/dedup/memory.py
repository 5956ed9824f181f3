"""Memory of fuzzy deduplication for many short documents, and what each costs.

    python -m benchmarks.dedup.memory [--documents 1000000] [--workers 2] [--limit 10m]

Documents of about 20 words, one in five a near-duplicate. Prints documents, seconds, peak memory of the process tree.
"""

import argparse
import random
import shutil
import sys

from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

DATA = ROOT / "benchmarks" / "data" / "dedup_memory"
FILE_DOCUMENTS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _run(options.workers)
        return
    began = header()
    shutil.rmtree(DATA, ignore_errors=True)
    make_documents(options.documents)
    arguments = ["--run", "--workers", str(options.workers)]
    use = measure([sys.executable, "-m", "benchmarks.dedup.memory", *arguments])
    row = {
        "documents": options.documents,
        "wall_s": round(use.wall_s, 1),
        "cpu_s": round(use.cpu_s, 1),
        "peak_mb": use.peak_bytes // 10**6,
        "peak_bytes_per_document": round(use.peak_bytes / options.documents),
    }
    print(row)
    record("dedup_memory", began, row)
    shutil.rmtree(DATA)


def make_documents(count: int) -> None:
    """Write short documents of random words."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(5000)]
    (DATA / "in").mkdir(parents=True)
    before = rng.choices(words, k=20)
    for first in range(0, count, FILE_DOCUMENTS):
        with (DATA / "in" / f"{first:09d}.jsonl").open("w") as file:
            for _ in range(min(FILE_DOCUMENTS, count - first)):
                text = [*before, "more"] if rng.random() < 0.2 else rng.choices(words, k=20)
                file.write('{"text": "' + " ".join(text) + '"}\n')
                before = text


def _run(workers: int) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow

    workflow = FuzzyDeduplicationWorkflow(None, str(DATA / "out"), str(DATA / "in"), "jsonl")
    result = workflow.run(executor=LocalExecutor(num_workers=workers, memory_limit="1GB"))
    print(result.metadata)


if __name__ == "__main__":
    main()
