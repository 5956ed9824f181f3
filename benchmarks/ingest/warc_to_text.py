"""From a WARC file to text, processor seconds on one core, beside NeMo Curator's own classes in the same run.

    python -m benchmarks.ingest.warc_to_text [--record]      (make bench-peers installs the peer)

The pages are those of `gold.py`, in random order, each a few times under another address. Both sides take turns, and
the quickest turn of each counts.
"""

import gzip
import json
import random
import subprocess
import time
from pathlib import Path

from benchmarks.ingest.gold import web_pages
from benchmarks.record import header, record

from gristmill.stages.context import Quarantined
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator

OUT = Path(__file__).parents[1] / "out"
PEER = OUT / "venvs" / "nemo-curator" / "bin" / "python"
COPIES = 4
ROUNDS = 2
WITHOUT_RULE = {"required_stopword_density": 0}
OURS = {
    "resiliparse": ("resiliparse", WITHOUT_RULE),
    "resiliparse, stop words at 0.32": ("resiliparse", None),
    "cascade": ("cascade", None),
    "trafilatura, stop words at 0.32": ("trafilatura", None),
    "justext": ("justext", None),
}
THEIRS = {"default (jusText)": [], "resiliparse": ["resiliparse"], "trafilatura": ["trafilatura"]}


def archive() -> tuple[Path, int]:
    """Write the file; return it and the bytes of HTML in it."""
    pages = web_pages() * COPIES
    random.Random(3).shuffle(pages)
    path = OUT / "pages.warc.gz"
    with path.open("wb") as file:
        for number, page in enumerate(pages):
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\n"
                f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012d}>\r\n"
                f"WARC-Target-URI: https://pages.example/{number}\r\nWARC-Date: 2025-05-12T04:26:40Z\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0))
    return path, sum(map(len, pages))


def ours(path: Path, algorithm: str, options: dict[str, object] | None) -> dict[str, float]:
    iterator, extractor = CommonCrawlWarcIterator(details=True), CommonCrawlHTMLExtractor(algorithm, options)
    iterator.setup()
    extractor.setup()
    next(iter([extractor.extract(each) for _, each in zip(range(5), iterator.iterate(str(path)), strict=False)]))
    started = time.process_time()
    made = [extractor.extract(each) for each in iterator.iterate(str(path))]
    seconds = time.process_time() - started
    kept = [each for each in made if isinstance(each, dict)]
    lost = sum(isinstance(each, Quarantined) for each in made)
    counts = {"pages": len(made), "kept": len(kept), "quarantined": lost}
    return {"cpu_s": seconds, **counts, "chars": sum(len(each["text"]) for each in kept)}


def theirs(path: Path, arguments: list[str]) -> dict[str, float]:
    script = Path(__file__).with_name("warc_with_nemo_curator.py")
    said = subprocess.run([str(PEER), str(script), str(path), *arguments], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def keep_quickest(found: dict[str, dict[str, float]], name: str, told: dict[str, float]) -> None:
    if name not in found or told["cpu_s"] < found[name]["cpu_s"]:
        found[name] = told


def main() -> None:
    began = header()
    path, num_bytes = archive()
    result: dict[str, object] = {"html_mb": round(num_bytes / 1e6, 1)}
    peers: dict[str, dict[str, float]] = {}
    own: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for name, arguments in THEIRS.items() if PEER.is_file() else ():
            keep_quickest(peers, name, theirs(path, arguments))
        for name, given in OURS.items():
            keep_quickest(own, name, ours(path, *given))
    for side, found in (("nemo-curator", peers), ("gristmill", own)):
        for name, told in found.items():
            result[f"{side}: {name}"] = {
                **told,
                "cpu_s": round(told["cpu_s"], 2),
                "mb_per_cpu_s": round(num_bytes / 1e6 / told["cpu_s"], 1),
            }
    if peers:
        anchor = peers["default (jusText)"]["cpu_s"]
        result["times NeMo Curator's default"] = {name: round(anchor / told["cpu_s"], 1) for name, told in own.items()}
        same = {"resiliparse": "resiliparse, stop words at 0.32", "trafilatura": "trafilatura, stop words at 0.32"}
        result["the same extractor"] = {
            theirs_: round(peers[theirs_]["cpu_s"] / own[mine]["cpu_s"], 1) for theirs_, mine in same.items()
        }
    record("ingest_warc_to_text", began, result)


if __name__ == "__main__":
    main()
