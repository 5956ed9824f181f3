"""Wikipedia: wikitext a core against mwparserfromhell, how far both texts agree, and one dump on one and two workers.

    python -m benchmarks.ingest.wikipedia [--sizes 100MB] [--workers 1,2] [--only text|split] [--record]

The articles are those of the English Wikipedia in gensim's wheel, which pip fetches. Dumps are made of them: streams of
100 pages, half of which are redirects, as in real ones. Sizes are of the dump as it is stored; XML is about four times
that. Speeds of texts are in processor seconds of one core: cleaning alone, and all the way from the dump, where bzip2
takes most of the time whatever cleans.
"""

import argparse
import bz2
import json
import random
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.ingest.split import times
from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

from gristmill.storage.sizes import parse_size

DATA = ROOT / "benchmarks" / "data" / "wikipedia"
WHEEL = "gensim==4.4.0"
DUMPS = ("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "enwiki-table-markup.xml.bz2")
STREAMS = 12  # different ones: packing is slow
HEAD = "<mediawiki><siteinfo><dbname>enwiki</dbname></siteinfo>\n"
WORD = re.compile(r"\w+")


def main() -> None:
    """Measure what was asked for, and print it."""
    options = _options()
    if options.run:
        _run(*options.run)
        return
    began = header()
    articles = real_articles()
    result: dict[str, object] = {"articles": len(articles), "mb": round(sum(map(_size, articles)) / 1e6, 2)}
    if options.only in ("", "text"):
        result["text"] = compare_texts(articles)
        result["dump"] = compare_dumps(articles)
        print(json.dumps({"text": result["text"], "dump": result["dump"]}, indent=1), flush=True)
    if options.only in ("", "split"):
        _measure("2MB", 2, articles)  # compiles what has to be
        rows = []
        for size in options.sizes.split(","):
            for workers in map(int, options.workers.split(",")):
                rows.append(_measure(size, workers, articles))
                print(rows[-1], flush=True)
        result |= {"rows": rows, "times": times(rows)}
    record("ingest_wikipedia", began, result)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100MB")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--only", default="", choices=["", "text", "split"])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def real_articles() -> list[str]:
    """Return the wikitext of real articles, redirects left out."""
    DATA.mkdir(parents=True, exist_ok=True)
    wheels = list(DATA.glob("gensim-*.whl"))
    if not wheels:
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", WHEEL, "-d", str(DATA)]
        subprocess.run([sys.executable, *command], check=True)
        wheels = list(DATA.glob("gensim-*.whl"))
    with zipfile.ZipFile(wheels[0]) as wheel:
        packed = [wheel.read(f"gensim/test/test_data/{name}") for name in DUMPS]
    found = [text for content in packed for text in _texts(bz2.decompress(content))]
    return [text for text in found if not text[:9].upper().startswith("#REDIRECT")]


def _texts(content: bytes) -> Iterator[str]:
    for element in ET.fromstring(content).iter():
        if element.tag.endswith("}text") and element.text:
            yield element.text


def _size(text: str) -> int:
    return len(text.encode())


def compare_texts(articles: list[str]) -> dict[str, object]:
    """Clean all articles in both ways, in turns, and compare speed and words."""
    from gristmill.stages.text.download.wikipedia.extract import as_nemo_curator
    from gristmill.stages.text.download.wikipedia.scanner import WikitextScanner

    scanner = WikitextScanner("en")
    scanner.clean("'''compile'''")
    ours, ours_s = _timed(articles, scanner.clean)
    theirs, theirs_s = _timed(articles, lambda text: as_nemo_curator(text, "en"))
    ours_s = min(ours_s, *(_timed(articles, scanner.clean)[1] for _ in range(4)))
    size = sum(map(_size, articles)) / 1e6
    return {
        "scanner_mb_per_s": round(size / ours_s, 1),
        "mwparserfromhell_mb_per_s": round(size / theirs_s, 2),
        "times": round(theirs_s / ours_s, 1),
        "word_f1": round(word_f1(ours, theirs), 4),
        "word_f1_mean_of_articles": round(
            sum(word_f1([a], [b]) for a, b in zip(ours, theirs, strict=True)) / len(ours), 4
        ),
    }


def compare_dumps(articles: list[str]) -> dict[str, object]:
    """Take a small dump to texts on one core, once with each parser."""
    from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor
    from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator

    source = DATA / "2MB.xml.bz2"
    if not source.exists():
        make_dump(source, parse_size("2MB"), articles)
    size = len(bz2.decompress(source.read_bytes())) / 1e6
    taken = {}
    for parser in ("scanner", "mwparserfromhell"):
        extractor = WikipediaExtractor("en", parser=parser)
        begun = time.process_time()
        texts = [extractor.extract(record) for record in WikipediaIterator("en").iterate(str(source))]
        taken[parser] = time.process_time() - begun
    speeds = {f"{parser}_xml_mb_per_s": round(size / seconds, 2) for parser, seconds in taken.items()}
    return {**speeds, "times": round(taken["mwparserfromhell"] / taken["scanner"], 1), "articles": len(texts)}


def _timed(articles: list[str], clean: Callable[[str], str]) -> tuple[list[str], float]:
    begun = time.process_time()
    return [clean(text) for text in articles], time.process_time() - begun


def word_f1(ours: list[str], theirs: list[str]) -> float:
    """Return how far the words of two lists of texts agree, text by text."""
    same = total = 0
    for one, other in zip(ours, theirs, strict=True):
        a, b = Counter(WORD.findall(one)), Counter(WORD.findall(other))
        same += (a & b).total()
        total += a.total() + b.total()
    return 2 * same / total if total else 1.0


def make_dump(path: Path, num_bytes: int, articles: list[str]) -> None:
    """Write a dump until it has its size, of parts of articles of about the length real ones have."""
    rng = random.Random(1)
    pool = [bz2.compress("".join(_page(n, k, rng, articles) for k in range(100)).encode()) for n in range(STREAMS)]
    with path.open("wb", buffering=1 << 20) as file:
        size = file.write(bz2.compress(HEAD.encode()))
        while size < num_bytes:
            size += file.write(rng.choice(pool))
        file.write(bz2.compress(b"</mediawiki>\n"))


def _page(stream: int, number: int, rng: random.Random, articles: list[str]) -> str:
    about = f"<title>Page {stream} {number}</title><ns>0</ns><id>{stream * 100 + number}</id>"
    text, redirect = "#REDIRECT [[x]]", '<redirect title="x" />'
    if rng.random() < 0.5:
        article = rng.choice(articles)
        start = rng.randrange(max(1, len(article) - 9000))
        text, redirect = article[start : start + rng.randrange(500, 16_000)], ""
    revision = f"<revision><id>1</id><model>wikitext</model><text>{escape(text)}</text></revision>"
    return f"<page>{about}{redirect}{revision}</page>\n"


def _measure(size: str, workers: int, articles: list[str]) -> dict[str, object]:
    source, output = DATA / f"{size}.xml.bz2", DATA / f"out-{size}-{workers}"
    if not source.exists():
        make_dump(source, parse_size(size), articles)
    shutil.rmtree(output, ignore_errors=True)
    use = measure(
        [sys.executable, "-m", "benchmarks.ingest.wikipedia", "--run", str(source), str(output), str(workers)]
    )
    written = sum(file.stat().st_size for file in output.glob("*.jsonl"))
    shutil.rmtree(output)
    return {
        "size": size,
        "workers": workers,
        "wall_s": round(use.wall_s, 1),
        "cpu_s": round(use.cpu_s, 1),
        "packed_mb_per_s": round(source.stat().st_size / 1e6 / use.wall_s, 1),
        "peak_mb": round(use.peak_bytes / 1e6),
        "busy_cores": round(use.busy_cores, 2),
        "wanted_cores": round(use.wanted_cores, 2),
        "written_mb": round(written / 1e6),
    }


def _run(source: str, output: str, workers: str) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.download import WikipediaDumpReader
    from gristmill.stages.text.io import JsonlWriter

    stages = [WikipediaDumpReader(source), JsonlWriter(output)]
    Pipeline("wikipedia", stages=stages).run(LocalExecutor(num_workers=int(workers)), quiet=True)


if __name__ == "__main__":
    main()
