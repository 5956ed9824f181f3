"""The program that is killed while it takes a crawl to documents.

    python -m tests.fault.crawl [--quick] URL WORK [--workers N]

It stops where a file WORK/hold-extract or WORK/hold-write says so, and leaves its process id in WORK/at-extract or
WORK/at-write: then a test may kill it, or the worker that waits.
"""

import argparse
import json
import os
from pathlib import Path

from tests.fault.processes import pause

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import CommonCrawlDownloadExtractStage, TransferOptions
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.stages.text.io import JsonlWriter

PLACE = "GRISTMILL_CRAWL_WORK"


def wait_here(phase):
    """Leave the process id and wait, as long as a file says so."""
    work = Path(os.environ[PLACE])
    while (work / f"hold-{phase}").exists():
        (work / f"at-{phase}").write_text(str(os.getpid()))
        pause(0.01)


class Paragraphs(HTMLExtractorAlgorithm):
    uses_stop_words = False

    def extract_text(self, html, stop_words, language):
        wait_here("extract")
        return [piece.partition("</p>")[0] for piece in html.split("<p>")[1:]]


class QuickParagraphs(Paragraphs):
    """The same in the process that reads and writes."""

    is_quick = True


class Writer(JsonlWriter):
    def encode(self, batch):
        wait_here("write")
        return super().encode(batch)


def build(url, work, *, quick=False):
    extraction = QuickParagraphs() if quick else Paragraphs()
    crawl = CommonCrawlDownloadExtractStage(
        "2025-18", "2025-21", f"{work}/downloads", html_extraction=extraction, data_prefix=url, index_prefix=url,
        transfer=TransferOptions(timeout=60),
    )  # fmt: skip
    crawl.iterator.block_bytes = 30_000  # so that a small file has several parts
    return Pipeline("crawl", stages=[crawl, Writer(f"{work}/out")])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("work")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    os.environ[PLACE] = given.work
    result = build(given.url, given.work, quick=given.quick).run(LocalExecutor(num_workers=given.workers), quiet=True)
    print(json.dumps(result.to_json()))


if __name__ == "__main__":
    main()
