"""The program that is killed while it reads a source: `python -m tests.fault.sources SOURCE URL WORK`.

It waits where `tests.fault.crawl` does; a source of one's own also at "download", with half a file copied. The URL of
that one is a directory. Chosen records are those of the rows in WORK/rows.
"""

import argparse
import json
import os
from pathlib import Path

from tests.fault.crawl import PLACE, Writer, wait_here
from tests.own_source import Copies, FilesOf, LinesOf, Shouts

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import (
    ArxivDownloadExtractStage,
    CommonCrawlWARCReader,
    DocumentDownloadExtractStage,
    TransferOptions,
    WikipediaDownloadExtractStage,
)
from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.modifiers import DocumentModifier
from gristmill.stages.text.modules import Modify

OPTIONS = TransferOptions(timeout=60)


class Articles(WikipediaExtractor):
    def extract(self, record):
        wait_here("extract")
        return super().extract(record)


class Papers(ArxivExtractor):
    def extract(self, record):
        wait_here("extract")
        return super().extract(record)


class HalfCopies(Copies):
    """Copies half of a file, waits, and copies the rest."""

    def _download_to_path(self, url, path):
        with Path(self.log).open("a") as log:
            log.write(f"{url}\n")
        content = Path(url).read_bytes()
        with Path(path).open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            wait_here("download")
            file.write(content[len(content) // 2 :])
        return True, None


class Speaks(Shouts):
    batch_deadline_s = 60.0  # it waits here to be killed

    def extract(self, record):
        wait_here("extract")
        return super().extract(record)


class AsText(DocumentModifier):
    def modify_document(self, text):
        return text.decode()


def wikipedia(url, work):
    stage = WikipediaDownloadExtractStage("en", f"{work}/downloads", wikidumps_index_prefix=url, transfer=OPTIONS)
    stage.iterator.block_bytes = 4000  # so that a small file has several parts
    stage.extractor = Articles("en")
    return [stage]


def arxiv(url, work):
    os.environ |= {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    stage = ArxivDownloadExtractStage(f"{work}/downloads", requester_pays=True, transfer=OPTIONS)
    stage.iterator.block_bytes = 4000
    stage.extractor = Papers()
    return [stage]


def own(url, work):
    downloader = HalfCopies(f"{work}/downloads", log=f"{work}/log")
    return [DocumentDownloadExtractStage(FilesOf(url), downloader, LinesOf(), Speaks())]


def records(url, work):
    rows = JsonlReader(f"{work}/rows", files_per_partition=1)
    return [rows, CommonCrawlWARCReader(data_prefix=url, timeout=60), Modify(AsText(), input_fields="binary_content")]


SOURCES = {"wikipedia": wikipedia, "arxiv": arxiv, "own": own, "records": records}


def build(source, url, work):
    return Pipeline(source, stages=[*SOURCES[source](url, work), Writer(f"{work}/out")])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("url")
    parser.add_argument("work")
    given = parser.parse_args()
    os.environ[PLACE] = given.work
    result = build(given.source, given.url, given.work).run(LocalExecutor(num_workers=2), quiet=True)
    print(json.dumps(result.to_json()))


if __name__ == "__main__":
    main()
