"""Common Crawl from its lists to documents: stored or streamed, main or news, pages or texts; and what is on record."""

import json
from pathlib import Path

import pytest
from tests.crawl_server import crawl_server
from tests.own_source import LinesOf

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.runs import joined_files
from gristmill.stages.text.download import (
    CommonCrawlDownloadExtractStage,
    DocumentDownloadExtractStage,
    TransferOptions,
)
from gristmill.stages.text.download.common_crawl.download import CommonCrawlWARCDownloader
from gristmill.stages.text.download.common_crawl.url_generation import MainCommonCrawlUrlGenerator
from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.file_server import Fault

HERE = LocalExecutor(num_workers=0)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_downloads")]
FILES, PAGES = 2, 40


class Paragraphs(HTMLExtractorAlgorithm):
    """What stands between <p> and </p>: this page is about where pages come from."""

    uses_stop_words = False

    def extract_text(self, html, stop_words, language):
        return [piece.partition("</p>")[0] for piece in html.split("<p>")[1:]]


@pytest.fixture(scope="module")
def serving():
    with crawl_server(FILES, PAGES) as server:
        yield server


@pytest.fixture
def server(serving):
    before = dict(serving.files)
    serving.forget()
    yield serving
    serving.files = before
    serving.faults.clear()


def source(server, directory, start="2025-18", end="2025-21", **options):
    given = {
        "html_extraction": Paragraphs(),
        "transfer": TransferOptions(max_retries=2, timeout=5),
        "data_prefix": server.url,
        "index_prefix": server.url,
        **options,
    }
    return CommonCrawlDownloadExtractStage(start, end, None if directory is None else str(directory), **given)


def run(stage, out, executor=HERE, **options):
    stages = [stage, JsonlWriter(str(out))]
    return Pipeline("cc", stages=stages).run(executor, quiet=True, **{"max_quarantined": None, **options})


def documents(out):
    files = sorted(Path(out).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def numbers(out):
    return sorted(int(d["url"].rpartition("/")[2]) for d in documents(out))


def test_pages_of_a_range_of_crawls_become_documents(server, tmp_path):
    result = run(source(server, tmp_path / "d"), tmp_path / "out")

    assert numbers(tmp_path / "out") == list(range(4 * PAGES))
    assert (result.read, result.written) == (4 * PAGES, 4 * PAGES)
    first = documents(tmp_path / "out")[0]
    assert set(first) == {"url", "warc_id", "source_id", "language", "text", "file_name"}
    assert first["file_name"] == first["source_id"]
    assert first["source_id"].startswith("crawl-data-CC-MAIN-2025-")
    assert first["language"] == "ENGLISH"
    assert len(list((tmp_path / "d").glob("crawl-data-*.warc.gz"))) == 4


@pytest.mark.parametrize("kind", ["warc", "wet"])
def test_without_a_directory_nothing_is_stored_and_the_documents_are_the_same(server, tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = {"kind": kind, "html_extraction": Paragraphs() if kind == "warc" else None, "add_filename_column": False}
    run(source(server, tmp_path / "d", **chosen), tmp_path / "stored")
    before = set(tmp_path.rglob("*.gz"))
    for path in server.files:
        if "/segments/" in path and f"/{kind}/" in path:
            server.faults[path] = [Fault("cut", at=500), Fault("status", 503)]
    run(source(server, None, **chosen), tmp_path / "streamed")

    def told(out):
        return sorted((d["url"], d["text"]) for d in documents(out))

    assert told(tmp_path / "streamed") == told(tmp_path / "stored")
    assert len(told(tmp_path / "streamed")) == 4 * PAGES
    assert set(tmp_path.rglob("*.gz")) == before


def test_news_and_limits(server, tmp_path):
    stage = source(server, tmp_path / "d", "2025-05", "2025-05", crawl_type="news", url_limit=1, record_limit=7)
    run(stage, tmp_path / "out")
    assert numbers(tmp_path / "out") == list(range(4 * PAGES, 4 * PAGES + 7))


def test_details_lead_back_to_the_place_in_the_file(server, tmp_path):
    import gzip

    run(source(server, tmp_path / "d", url_limit=1, details=True), tmp_path / "out")
    for document in documents(tmp_path / "out")[:5]:
        content = (tmp_path / "d" / document["source_id"]).read_bytes()
        start, length = document["warc_offset"], document["warc_length"]
        assert document["url"].encode() in gzip.decompress(content[start : start + length])
        assert (document["http_status"], document["truncated"]) == (200, None)


def test_everything_that_is_lost_is_in_the_books(server, tmp_path):
    """A missing file, a damaged one, a cut one: read = written + dropped + quarantined, and each loss has a record."""
    names = sorted(path for path in server.files if "/warc/" in path and "MAIN" in path)
    del server.files[names[0]]
    damaged = bytearray(server.files[names[1]])
    damaged[len(damaged) // 2] ^= 0xFF
    server.files[names[1]] = bytes(damaged)
    server.files[names[2]] = server.files[names[2]][:-100]

    result = run(source(server, tmp_path / "d"), tmp_path / "out")

    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert sorted(entry["kind"] for entry in entries) == ["damaged", "damaged", "download_failed"]
    assert result.balanced
    assert result.lost_parts == 3
    assert 3 * PAGES - 2 <= result.written <= 3 * PAGES


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_output_is_the_same_for_any_number_of_workers(server, tmp_path, workers, monkeypatch):
    monkeypatch.setattr(CommonCrawlWarcIterator, "block_bytes", 20_000)
    monkeypatch.setattr(joined_files, "JOINED_BYTES", 3_000)
    out = tmp_path / f"out-{workers}"
    run(source(server, tmp_path / "d", "2025-21"), out, LocalExecutor(num_workers=workers))
    run(source(server, tmp_path / "d", "2025-21"), tmp_path / "here")

    def told(directory):
        return {path.name: path.read_bytes() for path in directory.glob("*.jsonl")}

    assert told(out) == told(tmp_path / "here")
    assert len({name.rpartition(".")[0].rpartition(".")[0] for name in told(out)}) >= 4  # files were cut into parts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"crawl_type": "images"}, "expected crawl_type to be one of"),
        ({"kind": "wat"}, "did you mean 'wet'"),
        ({"kind": "wet"}, "no html_extraction and no details"),
        ({"html_extraction": "resiliparse2"}, "did you mean 'resiliparse'"),
        ({"start": "2025-60"}, "year and week"),
    ],
)
def test_mistakes_are_said_when_the_stage_is_made(server, tmp_path, options, said):
    with pytest.raises(ConfigError, match=said):
        source(server, tmp_path, **options)


def test_what_the_plan_needs_and_has_not_is_said_before_anything_is_downloaded(server, tmp_path):
    for start, said in (("2025-01", None), ("2024-01", "there is none. The nearest are")):
        stage = source(server, tmp_path / "d", start, start if said else "2025-21")
        if said is None:
            assert len(Pipeline("p", stages=[stage, JsonlWriter(str(tmp_path / "o"))]).plan(HERE).sources) == 4
            continue
        with pytest.raises(ConfigError, match=said):
            Pipeline("p", stages=[stage, JsonlWriter(str(tmp_path / "o"))]).plan(HERE)
    assert not [seen for seen in server.requests() if "/segments/" in seen.path]


def test_an_iterator_that_needs_files_says_so_if_none_are_stored(server):
    generator = MainCommonCrawlUrlGenerator("2025-18", "2025-21", server.url, index_prefix=server.url)
    stage = DocumentDownloadExtractStage(generator, CommonCrawlWARCDownloader(None), LinesOf())
    with pytest.raises(ConfigError, match="LinesOf: expected files to be stored"):
        Pipeline("p", stages=[stage]).plan(HERE)
