"""One large JSONL file: both cores busy, and memory that does not depend on the file's size.

    python -m benchmarks.large_file [--sizes 1GB,4GB] [--memory-limit 1GB] [--workers 2] [--keep] [--record]

Makes the files (seeded, about 4 KB a document), reads, drops documents of few words, writes; samples the process tree
ten times a second. Needs about twice the largest size on the disk of `benchmarks/data`.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

from gristmill.storage.sizes import parse_size

DATA = ROOT / "benchmarks" / "data" / "large_file"
WORDS = 20_000
POOL_DOCUMENTS = 4_000
MIN_WORDS = 100
WARM_UP = "50MB"  # the first run ever compiles kernels, for which the compiler wants 100 MB of its own


def main() -> None:
    """Measure every size and print how they compare."""
    options = _options()
    if options.run:
        _run(*options.run, workers=options.workers, memory_limit=options.memory_limit)
        return
    began = header()
    DATA.mkdir(parents=True, exist_ok=True)
    _measure(WARM_UP, options)
    rows = []
    for size in options.sizes.split(","):
        rows.append(_measure(size, options))
        print(rows[-1], flush=True)
    peaks = [row["peak_mb"] for row in rows]
    spread = max(peaks) / min(peaks) - 1
    record("large_file", began, {"memory_limit": options.memory_limit, "rows": rows, "peak_spread": round(spread, 3)})
    if not options.keep:
        shutil.rmtree(DATA)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1GB,4GB")
    parser.add_argument("--memory-limit", default="1GB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(size: str, options: argparse.Namespace) -> dict[str, object]:
    source, output = DATA / f"{size}.jsonl", DATA / f"out-{size}"
    if not source.exists():
        make_file(source, parse_size(size))
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.large_file", "--run", str(source), str(output)]
    command += ["--workers", str(options.workers), "--memory-limit", options.memory_limit]
    use = measure(command)
    written = sum(file.stat().st_size for file in output.glob("*.jsonl"))
    shutil.rmtree(output)
    if not options.keep:
        source.unlink()
    return {
        "size": size,
        "wall_s": round(use.wall_s, 1),
        "mb_per_s": round(parse_size(size) / 1e6 / use.wall_s, 1),
        "peak_mb": round(use.peak_bytes / 1e6, 1),
        "busy_cores": round(use.busy_cores, 2),
        "wanted_cores": round(use.wanted_cores, 2),
        "processes": use.most_processes,
        "written_mb": round(written / 1e6),
    }


def make_file(path: Path, num_bytes: int) -> None:
    """Write documents of a seeded vocabulary with word frequencies as in prose, until the file has its size."""
    rng = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(1, 11))) for _ in range(WORDS)]
    weights = [1 / (rank + 3) for rank in range(WORDS)]
    texts = [
        " ".join(rng.choices(vocabulary, weights, k=rng.choice((40, 300, 700, 1500)))) for _ in range(POOL_DOCUMENTS)
    ]
    size, number = 0, 0
    with path.open("w", encoding="utf-8", buffering=1 << 20) as file:
        while size < num_bytes:
            document = {"id": f"doc-{number}", "text": rng.choice(texts), "source": "made", "quality": rng.random()}
            line = json.dumps(document) + "\n"
            size += file.write(line)
            number += 1


def _run(source: str, output: str, *, workers: int, memory_limit: str) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.filters import ScoreFilter
    from gristmill.stages.text.filters.heuristic import WordCountFilter
    from gristmill.stages.text.io import JsonlReader, JsonlWriter

    stages = [JsonlReader(source), ScoreFilter(WordCountFilter(min_words=MIN_WORDS)), JsonlWriter(output)]
    Pipeline("large_file", stages=stages).run(LocalExecutor(num_workers=workers, memory_limit=memory_limit))


if __name__ == "__main__":
    main()
