"""How fuzzy deduplication grows: processor seconds, memory and disk at 1, 5 and 20 GB of text.

    python -m benchmarks.dedup.growth                     needs 70 GB of disk, and half an hour of two cores
    python -m benchmarks.dedup.growth --gigabytes 0.2,1   smaller

Documents have about 2.7 kB of words that follow Zipf's law; one in five is a near-duplicate of the one before it. Every
size is a corpus of its own, read, searched, verified and written with the same memory limit.
"""

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

DATA = ROOT / "benchmarks" / "data" / "dedup_growth"
VOCABULARY = 30_000
WORDS = 450  # of a document
FILE_BYTES = 64 * 1000**2
LIMIT = "4GB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", default="1,5,20")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _run(options.workers)
        return
    began = header()
    rows = [_measure(float(size), options.workers) for size in options.gigabytes.split(",")]
    record("dedup_growth", began, {"limit": LIMIT, "workers": options.workers, "rows": rows})


def _measure(gigabytes: float, workers: int) -> dict[str, object]:
    shutil.rmtree(DATA, ignore_errors=True)
    documents, num_bytes = make_corpus(DATA / "in", int(gigabytes * 1e9))
    arguments = ["--run", "--workers", str(workers)]
    use = measure([sys.executable, "-m", "benchmarks.dedup.growth", *arguments])
    kept = sum(path.stat().st_size for path in (DATA / "out").rglob("*.jsonl"))
    row: dict[str, object] = {
        "gigabytes": round(num_bytes / 1e9, 2),
        "documents": documents,
        "wall_s": round(use.wall_s, 1),
        "cpu_s": round(use.cpu_s, 1),
        "cpu_s_a_gigabyte": round(use.cpu_s / (num_bytes / 1e9), 2),
        "busy_cores": round(use.busy_cores, 2),
        "wanted_cores": round(use.wanted_cores, 2),
        "peak_mb": use.peak_bytes // 10**6,
        "kept_share": round(kept / num_bytes, 4),
    }
    print(row, flush=True)
    shutil.rmtree(DATA)
    return row


def make_corpus(directory: Path, num_bytes: int) -> tuple[int, int]:
    """Write files of documents until they have so many bytes; return how many documents and bytes there are."""
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    words = np.array([rng.choice(letters, rng.integers(2, 10)).tobytes().decode() for _ in range(VOCABULARY)])
    shares = 1 / np.arange(1, VOCABULARY + 1)
    shares /= shares.sum()
    directory.mkdir(parents=True)
    documents = written = number = 0
    before = words[rng.choice(VOCABULARY, WORDS, p=shares)]
    while written < num_bytes:
        with (directory / f"{number:05d}.jsonl").open("w") as file:
            size = 0
            while size < min(FILE_BYTES, num_bytes - written):
                lengths = rng.integers(WORDS // 2, WORDS * 3 // 2, 256)
                drawn = words[rng.choice(VOCABULARY, int(lengths.sum()), p=shares)]
                for text, repeats in zip(np.split(drawn, np.cumsum(lengths)[:-1]), rng.random(256) < 0.2, strict=True):
                    current = np.append(before, text[0]) if repeats else text
                    size += file.write(f'{{"id": "{documents}", "text": "{" ".join(current)}"}}\n')
                    documents += 1
                    before = current
        written += size
        number += 1
    return documents, written


def _run(workers: int) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow

    workflow = FuzzyDeduplicationWorkflow(
        str(DATA / "cache"), str(DATA / "out"), str(DATA / "in"), "jsonl", perform_removal=True
    )
    print(workflow.run(executor=LocalExecutor(num_workers=workers, memory_limit=LIMIT)).metadata, flush=True)


if __name__ == "__main__":
    main()
