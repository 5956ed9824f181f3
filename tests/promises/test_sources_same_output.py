"""What is fetched gives the same bytes for one, two and four workers: chosen records, texts, news, one's own source.

Pages of Common Crawl are in test_common_crawl.py, files that are there already in tests/fault/test_ingest.py.
"""

import pytest
from tests.crawl_server import add_columnar_index, crawl_server
from tests.own_source import Shouts, own_source, write_lines

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.runs import joined_files
from gristmill.stages.text.download import (
    CommonCrawlDownloadExtractStage,
    CommonCrawlIndexReader,
    CommonCrawlWARCReader,
)
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.modifiers import DocumentModifier
from gristmill.stages.text.modules import Modify

pytestmark = pytest.mark.slow
CRAWL = "CC-MAIN-2025-21"
FILES, PAGES = 3, 20


class Paragraphs(HTMLExtractorAlgorithm):
    uses_stop_words = False

    def extract_text(self, html, stop_words, language):
        return [piece.partition("</p>")[0] for piece in html.split("<p>")[1:]]


class Patient(Shouts):
    batch_deadline_s = 60.0  # nothing hangs here, and a busy machine may stand still for seconds


class AsText(DocumentModifier):
    def modify_document(self, text):
        return text.decode()


@pytest.fixture(scope="module")
def server():
    with crawl_server(FILES, PAGES, (CRAWL,)) as server:
        add_columnar_index(server, CRAWL, num_files=FILES)
        yield server


def crawl(server, work, start, block_bytes, **options):
    given = {"data_prefix": server.url, "index_prefix": server.url, **options}
    stage = CommonCrawlDownloadExtractStage(start, start, str(work / "downloads"), **given)
    stage.iterator.block_bytes = block_bytes  # so little that a small file has several parts
    return [stage]


def texts(server, work):
    return crawl(server, work, "2025-21", 1000, kind="wet")


def news(server, work):
    return crawl(server, work, "2025-05", 5000, crawl_type="news", html_extraction=Paragraphs())


def chosen_records(server, work):
    rows = CommonCrawlIndexReader(CRAWL, data_prefix=server.url)
    return [rows, CommonCrawlWARCReader(data_prefix=server.url), Modify(AsText(), input_fields="binary_content")]


def own(server, work):
    source = work.parent / "raw"
    return [own_source(source if source.exists() else write_lines(source, FILES, PAGES), work, extractor=Patient())]


def told(build, server, work, workers):
    work.mkdir()
    stages = [*build(server, work), JsonlWriter(str(work / "out"))]
    result = Pipeline("p", stages=stages).run(LocalExecutor(num_workers=workers), quiet=True)
    assert result.quarantined == 0
    return {path.name: path.read_bytes() for path in (work / "out").glob("*.jsonl")}


@pytest.mark.parametrize(("build", "files"), [(chosen_records, 6), (texts, 12), (news, 12), (own, 3)])
def test_the_output_is_the_same_for_any_number_of_workers(server, tmp_path, build, files, monkeypatch):
    monkeypatch.setattr(joined_files, "JOINED_BYTES", 300)
    alone = told(build, server, tmp_path / "1", 1)
    assert len(alone) >= files  # of three that were fetched, in parts where they can be cut
    for workers in (2, 4):
        assert told(build, server, tmp_path / f"{workers}", workers) == alone
