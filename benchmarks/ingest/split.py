"""One WARC file: how much faster two workers are than one, and memory that does not depend on the file's size.

    python -m benchmarks.ingest.split [--sizes 256MB,1GB] [--workers 1,2] [--rounds 1] [--extraction resiliparse]
                                      [--images 0] [--record]

Makes the archive (seeded pages, about 20 KB packed), reads it and makes texts of its pages, samples the processes ten
times a second. Sizes are of the archive as it is stored. `--images 0.9` lets that share of the bytes be responses that
are not pages, of up to 1 MiB, which are read and dropped: for archives so large that extracting would take an hour.
With several rounds the numbers of workers take turns, and the quickest run of each counts.
"""

import argparse
import gzip
import random
import shutil
import sys
from pathlib import Path

from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

from gristmill.storage.sizes import parse_size

DATA = ROOT / "benchmarks" / "data" / "ingest"
POOL, IMAGES = 400, 60  # different pages and images


def main() -> None:
    """Measure every size with every number of workers, and print how they compare."""
    options = _options()
    if options.run:
        _run(*options.run)
        return
    began = header()
    DATA.mkdir(parents=True, exist_ok=True)
    _measure("8MB", 2, options)  # compiles what has to be
    rows = []
    for size in options.sizes.split(","):
        for _ in range(options.rounds):
            for workers in map(int, options.workers.split(",")):
                rows.append(_measure(size, workers, options))
                print(rows[-1], flush=True)
    result = {"extraction": options.extraction, "images": options.images, "rows": rows, "times": times(rows)}
    print(result["times"])
    record("ingest_split", began, result)
    if not options.keep:
        shutil.rmtree(DATA)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="256MB,1GB")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--extraction", default="resiliparse")
    parser.add_argument("--images", type=float, default=0.0)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def times(rows: list[dict[str, object]]) -> dict[str, float]:
    """How many times faster than with one worker, by size and number."""
    quickest: dict[tuple[object, object], float] = {}
    for row in rows:
        key, wall_s = (row["size"], row["workers"]), float(str(row["wall_s"]))
        quickest[key] = min(wall_s, quickest.get(key, wall_s))
    return {
        f"{size} on {workers}": round(quickest[size, 1] / wall_s, 2)
        for (size, workers), wall_s in quickest.items()
        if workers != 1 and (size, 1) in quickest
    }


def _measure(size: str, workers: int, options: argparse.Namespace) -> dict[str, object]:
    source, output = DATA / f"{size}.warc.gz", DATA / f"out-{size}-{workers}"
    if not source.exists():
        make_archive(source, parse_size(size), options.images)
    shutil.rmtree(output, ignore_errors=True)
    given = [str(source), str(output), str(workers), options.extraction]
    use = measure([sys.executable, "-m", "benchmarks.ingest.split", "--run", *given])
    written = sum(file.stat().st_size for file in output.glob("*.jsonl"))
    files = len(list(output.glob("*.jsonl")))
    shutil.rmtree(output)
    return {
        "size": size,
        "workers": workers,
        "wall_s": round(use.wall_s, 1),
        "packed_mb_per_s": round(source.stat().st_size / 1e6 / use.wall_s, 1),
        "peak_mb": round(use.peak_bytes / 1e6),
        "busy_cores": round(use.busy_cores, 2),
        "written_mb": round(written / 1e6),
        "files": files,
    }


def make_archive(path: Path, num_bytes: int, images: float = 0.0) -> None:
    """Write an archive of pages, each with its request and its metadata, until it has its size."""
    rng = random.Random(3)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(rng.choices(letters, k=rng.randint(1, 11))) for _ in range(20_000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    pool = [_members(number, _page(number, rng, words, weights)) for number in range(POOL)]
    others = [_members(number, rng.randbytes(rng.randint(1, 1 << 20)), b"image/jpeg") for number in range(IMAGES)]
    size = of_images = 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < num_bytes:
            is_image = of_images < images * size
            size += (added := file.write(rng.choice(others if is_image else pool)))
            of_images += added * is_image


def _page(number: int, rng: random.Random, words: list[str], weights: list[float]) -> bytes:
    pieces = [f"<!DOCTYPE html><html><head><title>Page {number}</title></head><body><div id='nav'>"]
    pieces += [f"<a class='link link-{n % 5}' href='/section/{n}'>{rng.choice(words)}</a>" for n in range(60)]
    pieces.append("</div>")
    for _ in range(rng.choice((5, 20, 60, 120))):
        text = " ".join(rng.choices(words, weights, k=rng.randint(20, 120)))
        pieces.append(f"<div class='row'><p class='text'>{text}.</p></div>\n")
    return "".join([*pieces, "</body></html>"]).encode()


def _members(number: int, page: bytes, kind: bytes = b"text/html; charset=utf-8") -> bytes:
    url = f"https://host-{number}.example/{number}"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n"
    blocks = {"request": b"GET / HTTP/1.1\r\n\r\n", "response": head + page, "metadata": b"fetchTimeMs: 5\r\n"}
    made = []
    for named, block in blocks.items():
        lines = (
            f"WARC/1.0\r\nWARC-Type: {named}\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\nWARC-Target-URI: {url}\r\n"
            f"Content-Type: application/http; msgtype={named}\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        made.append(gzip.compress(lines.encode() + block + b"\r\n\r\n", 6, mtime=0))
    return b"".join(made)


def _run(source: str, output: str, workers: str, extraction: str) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.download import WarcReader
    from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
    from gristmill.stages.text.io import JsonlWriter

    kwargs = {} if extraction in ("justext", "cascade") else {"required_stopword_density": 0}
    extractor = CommonCrawlHTMLExtractor(extraction, kwargs)
    stages = [WarcReader(source, extractor=extractor), JsonlWriter(output)]
    Pipeline("split", stages=stages).run(LocalExecutor(num_workers=int(workers)), quiet=True)


if __name__ == "__main__":
    main()
