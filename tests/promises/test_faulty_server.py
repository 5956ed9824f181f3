"""Whatever a server does, on every source: no document is wrong, and none is missing that is not in the books."""

import contextlib
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.arxiv_archives import PAPER, PROOF, manifest, project, single, tar_of
from tests.crawl_server import add_columnar_index, crawl_server
from tests.own_source import LinesOf, Shouts
from tests.wiki_dumps import dump_server_files, page, streams

from gristmill.backends.local import LocalExecutor
from gristmill.engine.policies import retry
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import (
    ArxivDownloadExtractStage,
    CommonCrawlDownloadExtractStage,
    CommonCrawlIndexReader,
    CommonCrawlWARCReader,
    DocumentDownloadExtractStage,
    TransferOptions,
    URLGenerator,
    WikipediaDownloadExtractStage,
)
from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.modifiers import DocumentModifier
from gristmill.stages.text.modules import Modify
from gristmill.storage import rate
from gristmill.storage.transfer import RemoteFile
from gristmill.testing.file_server import Fault, MisbehavingFileServer

pytestmark = pytest.mark.slow
HERE = LocalExecutor(num_workers=0)
CRAWL = "CC-MAIN-2025-21"
QUICK = TransferOptions(max_retries=2, timeout=3)
SILENT = ("stall", "stall for good")

# What a server does to a file, and then does no more: it costs nothing.
PASSING = {
    "cut": [Fault("cut", at=300)],
    "stall": [Fault("stall", at=300)],
    "403": [Fault("status", 403)],
    "429 with a time": [Fault("status", 429, retry_after="0")],
    "503": [Fault("status", 503), Fault("status", 503, retry_after="0.01")],
}
# What it does whenever it is asked, so that nothing of the file can be had.
LASTING = {
    "cut for good": [Fault("cut", at=0)],
    "stall for good": [Fault("stall", at=0)],
    "403 for good": [Fault("status", 403)],
    "429 for good": [Fault("status", 429)],
    "503 for good": [Fault("status", 503, retry_after="0")],
}
# What depends on how a file is read, and on what was published about it.
OTHERS = {
    "too short": [Fault("short", at=40)] * 100,
    "too long": [Fault("long", at=40)] * 100,
    "another version half-way": [Fault("cut", at=300), Fault("changed")],
    "whole for a range": [Fault("cut", at=300), *[Fault("whole")] * 100],
    "416": [Fault("cut", at=300), Fault("status", 416)],
    "bomb": [Fault("bomb")] * 100,
}
FAULTS = PASSING | {name: faults * 100 for name, faults in LASTING.items()} | OTHERS


@pytest.fixture(autouse=True)
def _quick(quick_downloads, monkeypatch):
    # A file that is read where it is, and cannot be had, is asked for ten times: four minutes.
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.01)
    monkeypatch.setattr(retry, "MAX_TRANSIENT", 2)
    monkeypatch.setattr(rate, "FIRST", 1e6)


class Paragraphs(HTMLExtractorAlgorithm):
    uses_stop_words = False

    def extract_text(self, html, stop_words, language):
        return [piece.partition("</p>")[0] for piece in html.split("<p>")[1:]]


LINES = {f"part-{f}.txt": "".join(f"{f}-{n} text of {n}\n" for n in range(40)).encode() for f in range(3)}


class Listed(URLGenerator):
    """Publishes sizes and checksums: of lines of text nobody could say otherwise that some are missing."""

    def __init__(self, prefix):
        self.prefix = prefix

    def generate_urls(self):
        return [file.url for file in self.list_files()]

    def list_files(self):
        return [
            RemoteFile(f"{self.prefix}/{name}", len(content), f"sha1:{hashlib.sha1(content).hexdigest()}")
            for name, content in LINES.items()
        ]


class AsText(DocumentModifier):
    def modify_document(self, text):
        return text.decode()


def own(server, work, transfer):
    downloader = TransferDownloader(work, transfer=transfer)
    return [DocumentDownloadExtractStage(Listed(server.url), downloader, LinesOf(), Shouts())]


def crawl(server, work, transfer):
    options = {"transfer": transfer, "data_prefix": server.url, "index_prefix": server.url}
    return [CommonCrawlDownloadExtractStage("2025-21", "2025-21", work, html_extraction=Paragraphs(), **options)]


def streamed_crawl(server, work, transfer):
    del work
    return crawl(server, None, transfer)


def chosen_records(server, work, transfer):
    del work
    limits = {"timeout": transfer.timeout, "max_retries": transfer.max_retries}
    columns = ["url", "warc_filename", "warc_record_offset", "warc_record_length"]
    rows = CommonCrawlIndexReader(CRAWL, columns=columns, data_prefix=server.url, transfer=transfer)
    reading = CommonCrawlWARCReader(data_prefix=server.url, **limits)
    return [rows, reading, Modify(AsText(), input_fields="binary_content")]


def wikipedia(server, work, transfer):
    return [WikipediaDownloadExtractStage("en", work, wikidumps_index_prefix=server.url, transfer=transfer)]


def arxiv(server, work, transfer):
    del server
    return [ArxivDownloadExtractStage(work, requester_pays=True, transfer=transfer)]


def lines_server():
    return MisbehavingFileServer(dict(LINES))


def indexed_crawl_server():
    server = crawl_server(2, 12, (CRAWL,))
    add_columnar_index(server, CRAWL)
    return server


def wikipedia_server():
    dumps = [b"".join(streams([page(k, f"Article {k}. " * 30) for k in range(n, n + 5)])) for n in (0, 5)]
    names = ("enwiki-20240201-multistream1.xml-p1p5.bz2", "enwiki-20240201-multistream2.xml-p6p9.bz2")
    return MisbehavingFileServer(dump_server_files(dumps={"20240201": dict(zip(names, dumps, strict=True))}))


def arxiv_server():
    first = tar_of({"0704/0704.0001.gz": project(main=PAPER, proof=PROOF), "0704/0704.0002.pdf": b"%PDF"})
    archives = {"arXiv_src_0704_001.tar": first, "arXiv_src_0705_001.tar": tar_of({"0705/0705.0001.gz": single(PAPER)})}
    files = {f"arxiv/src/{name}": content for name, content in archives.items()}
    return MisbehavingFileServer(files | {"arxiv/src/arXiv_src_manifest.xml": manifest(archives)})


# How a source is built, its server, and the end of the name of the file that comes to harm.
SOURCES = {
    "own": (own, lines_server, "part-1.txt"),
    "Common Crawl": (crawl, crawl_server, f"{CRAWL}-00001.warc.gz"),
    "Common Crawl, streamed": (streamed_crawl, crawl_server, f"{CRAWL}-00001.warc.gz"),
    "chosen records": (chosen_records, indexed_crawl_server, f"{CRAWL}-00001.warc.gz"),
    "Wikipedia": (wikipedia, wikipedia_server, "multistream1.xml-p1p5.bz2"),
    "arXiv": (arxiv, arxiv_server, "arXiv_src_0704_001.tar"),
}


def run(build, server, work, transfer=QUICK):
    stages = [*build(server, str(work / "downloads"), transfer), JsonlWriter(str(work / "out"))]
    result = Pipeline("p", stages=stages).run(HERE, quiet=True, max_quarantined=None)
    files = sorted(Path(work / "out").glob("*.jsonl"))
    return result, [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture(scope="module", params=SOURCES)
def source(request, tmp_path_factory):
    build, serve, victim = SOURCES[request.param]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serve())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        [path] = [path for path in server.files if path.endswith(victim)]
        result, documents = run(build, server, tmp_path_factory.mktemp("right"))
        assert result.quarantined == 0
        assert 0 < len([each for each in documents if is_of(path, each)]) < len(documents)
        yield build, server, path, documents


def is_of(path, document):
    """Whether a document comes from a file of the server."""
    return document.get("warc_filename", document.get("file_name")).endswith(path.rpartition("/")[2])


def patience(name):
    """Somebody has to wait as long as it takes to know that a server is silent, again and again if it stays so."""
    if name not in SILENT:
        return QUICK
    return replace(QUICK, timeout=0.7) if name in PASSING else replace(QUICK, timeout=0.7, max_retries=1)


@pytest.mark.parametrize("name", FAULTS)
def test_no_document_is_wrong_and_none_is_missing_without_a_word(source, tmp_path, name):
    build, server, path, right = source
    before = dict(server.files)
    server.faults[path] = list(FAULTS[name])
    try:
        result, documents = run(build, server, tmp_path, patience(name))
    finally:
        server.files = before
        server.faults.clear()

    missing = [document for document in right if document not in documents]
    assert [document for document in right if document not in missing] == documents  # none is wrong, none is twice
    assert all(is_of(path, document) for document in missing)
    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert all(entry["source"].endswith(path.rpartition("/")[2]) for entry in entries)
    assert result.balanced
    assert len(entries) == result.quarantined + result.lost_parts
    assert len(missing) == result.quarantined or result.lost_parts  # of a part nobody knows how many it had
    if name in PASSING:
        assert (missing, entries) == ([], [])
    if name in LASTING:
        assert len(missing) == sum(is_of(path, document) for document in right)
        assert {entry["kind"] for entry in entries} in ({"download_failed"}, {"not_fetched"})
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "downloads", "rates"}
