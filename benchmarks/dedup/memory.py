"""Memory of deduplication, and what each document costs.

    python -m benchmarks.dedup.memory                                    1,000,000 documents of 20 words, fuzzy
    python -m benchmarks.dedup.memory --kind exact --documents 750000 --words 400 --limit 500MB      2 GB of text

One document in five is a near-duplicate, for `exact` a copy. Prints seconds and the peak memory of all processes.
"""

import argparse
import random
import shutil
import sys
from pathlib import Path

from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

DATA = ROOT / "benchmarks" / "data"
FILE_BYTES = 15_000_000  # of a document's words, about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["fuzzy", "exact"], default="fuzzy")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    directory = DATA / f"dedup_memory_{options.kind}"
    if options.run:
        _run(options.kind, directory, options.workers, options.limit)
        return
    began = header()
    shutil.rmtree(directory, ignore_errors=True)
    num_bytes = make_documents(directory / "in", options.documents, options.words, exact=options.kind == "exact")
    arguments = ["--run", "--kind", options.kind, "--workers", str(options.workers), "--limit", options.limit]
    use = measure([sys.executable, "-m", "benchmarks.dedup.memory", *arguments])
    row = {
        "kind": options.kind,
        "documents": options.documents,
        "input_mb": num_bytes // 10**6,
        "limit": options.limit,
        "wall_s": round(use.wall_s, 1),
        "cpu_s": round(use.cpu_s, 1),
        "peak_mb": use.peak_bytes // 10**6,
        "peak_bytes_per_document": round(use.peak_bytes / options.documents),
    }
    print(row)
    record("dedup_memory", began, row)
    shutil.rmtree(directory)


def make_documents(directory: Path, count: int, num_words: int, *, exact: bool) -> int:
    """Write documents of random words; return their size."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(5000)]
    directory.mkdir(parents=True)
    in_file = max(1, FILE_BYTES // (7 * num_words))
    before = rng.choices(words, k=num_words)
    for first in range(0, count, in_file):
        with (directory / f"{first:09d}.jsonl").open("w") as file:
            for _ in range(min(in_file, count - first)):
                again = before if exact else [*before, "more"]
                text = again if rng.random() < 0.2 else rng.choices(words, k=num_words)
                file.write('{"text": "' + " ".join(text) + '"}\n')
                before = text
    return sum(file.stat().st_size for file in directory.iterdir())


def _run(kind: str, directory: Path, workers: int, limit: str) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
    from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow

    source, output = str(directory / "in"), str(directory / "out")
    exact = ExactDeduplicationWorkflow(output, source, "jsonl")
    workflow = exact if kind == "exact" else FuzzyDeduplicationWorkflow(None, output, source, "jsonl")
    print(workflow.run(executor=LocalExecutor(num_workers=workers, memory_limit=limit)).metadata)


if __name__ == "__main__":
    main()
