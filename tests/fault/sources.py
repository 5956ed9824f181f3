"""The program that is killed while it reads Wikipedia or arXiv: `python -m tests.fault.sources SOURCE URL WORK`.

It waits where `tests.fault.crawl` does.
"""

import argparse
import json
import os

from tests.fault.crawl import PLACE, Writer, wait_here

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import ArxivDownloadExtractStage, TransferOptions, WikipediaDownloadExtractStage
from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor

OPTIONS = TransferOptions(timeout=60)


class Articles(WikipediaExtractor):
    def extract(self, record):
        wait_here("extract")
        return super().extract(record)


class Papers(ArxivExtractor):
    def extract(self, record):
        wait_here("extract")
        return super().extract(record)


def wikipedia(url, directory):
    stage = WikipediaDownloadExtractStage("en", directory, wikidumps_index_prefix=url, transfer=OPTIONS)
    stage.iterator.block_bytes = 4000  # so that a small file has several parts
    stage.extractor = Articles("en")
    return stage


def arxiv(url, directory):
    os.environ |= {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    stage = ArxivDownloadExtractStage(directory, requester_pays=True, transfer=OPTIONS)
    stage.iterator.block_bytes = 4000
    stage.extractor = Papers()
    return stage


SOURCES = {"wikipedia": wikipedia, "arxiv": arxiv}


def build(source, url, work):
    return Pipeline(source, stages=[SOURCES[source](url, f"{work}/downloads"), Writer(f"{work}/out")])


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
