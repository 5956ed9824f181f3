"""Wikipedia and arXiv from a server that fails in every way it can: documents are right, and losses are on record."""

import json
from pathlib import Path

import pytest
from tests.arxiv_archives import PAPER, manifest, single, tar_of
from tests.wiki_dumps import dump_server_files, page, streams

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import (
    ArxivDownloadExtractStage,
    TransferOptions,
    WikipediaDownloadExtractStage,
)
from gristmill.stages.text.download.arxiv.iterator import ArxivIterator
from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.testing.file_server import Fault, MisbehavingFileServer

pytestmark = pytest.mark.slow
HERE = LocalExecutor(num_workers=0)
QUICK = TransferOptions(max_retries=1, timeout=1)
DOCUMENTS = 30  # in each of two files
PER_FILE = DOCUMENTS + 2  # that are read: two of each file are dropped


def dump(first):
    pages = [page(k, f"Article '''{k}''' has a text.") for k in range(first, first + DOCUMENTS)]
    pages[5:5] = [page(1000 + first, "#REDIRECT [[x]]", redirect="x"), page(2000 + first, "a talk", ns=1)]
    return b"".join(streams(pages))


def archive(first):
    members = {
        f"0704/0704.{k:04d}.gz": single(PAPER.replace("remark", f"remark {k}").replace("On norms", f"On norm {k}"))
        for k in range(first, first + DOCUMENTS)
    }
    without = {f"0704/0704.9{first:03d}.pdf": b"%PDF-1.4", f"0704/0704.8{first:03d}.gz": single(b"%!PS-Adobe")}
    return tar_of(members | without)


class Wikipedia:
    names = ("enwiki-20240201-multistream1.xml-p1p30.bz2", "enwiki-20240201-multistream2.xml-p31p60.bz2")
    folder = "enwiki/20240201"
    iterator = WikipediaIterator
    dropped = (("redirect", 2), ("other_namespace", 2))

    def is_right(self, document):
        return document["text"] == f"Article {document['id']} has a text."

    def files(self):
        return dump_server_files(dumps={"20240201": {self.names[0]: dump(0), self.names[1]: dump(DOCUMENTS)}})

    def stage(self, server, directory, transfer=QUICK):
        return WikipediaDownloadExtractStage("en", str(directory), wikidumps_index_prefix=server.url, transfer=transfer)


class Arxiv:
    names = ("arXiv_src_0704_001.tar", "arXiv_src_0704_002.tar")
    folder = "arxiv/src"
    iterator = ArxivIterator
    dropped = (("no_source", 4),)

    def is_right(self, document):
        return document["title"] == f"On norm {int(document['id'][5:])}" and "bound" in document["text"]

    def files(self):
        archives = {self.names[0]: archive(0), self.names[1]: archive(DOCUMENTS)}
        listed = {f"arxiv/src/{name}": content for name, content in archives.items()}
        return listed | {"arxiv/src/arXiv_src_manifest.xml": manifest(archives)}

    def stage(self, server, directory, transfer=QUICK):
        return ArxivDownloadExtractStage(str(directory), requester_pays=True, transfer=transfer)


@pytest.fixture(scope="module", params=[Wikipedia(), Arxiv()], ids=["wikipedia", "arxiv"])
def serving(request):
    with MisbehavingFileServer(request.param.files()) as server:
        yield request.param, server


@pytest.fixture
def scene(serving, quick_downloads, monkeypatch, tmp_path):
    source, server = serving
    monkeypatch.setattr(source.iterator, "block_bytes", 2000)  # so that a small file has several parts
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    files = dict(server.files)
    server.forget()
    yield source, server
    server.files = files
    server.faults.clear()


def run(scene, work, executor=HERE, **options):
    source, server = scene
    stages = [source.stage(server, work / "downloads"), JsonlWriter(str(work / "out"))]
    return Pipeline("source", stages=stages).run(executor, quiet=True, **{"max_quarantined": None, **options})


def outputs(work):
    return {path.name: path.read_bytes() for path in sorted((work / "out").glob("*.jsonl"))}


def documents(work):
    return [json.loads(line) for content in outputs(work).values() for line in content.splitlines()]


REFUSALS = [Fault("status", status, retry_after=wait) for status in (403, 429, 503) for wait in ("", "0")]
FAULTS = [
    *REFUSALS, Fault("status", 416), Fault("status", 500), Fault("cut", at=700), Fault("stall", at=700),
    Fault("short", at=9), Fault("long", at=9), Fault("whole"), Fault("bomb"), Fault("garbled"),
]  # fmt: skip


def name_of(fault):
    return " ".join(map(str, filter(None, [fault.kind, fault.status * (fault.kind == "status"), fault.retry_after])))


@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_fault_that_passes_costs_no_document(scene, tmp_path, fault):
    source, server = scene
    server.faults[f"{source.folder}/{source.names[0]}"] = [fault]
    result = run(scene, tmp_path)
    assert (result.read, result.written, result.quarantined) == (2 * PER_FILE, 2 * DOCUMENTS, 0)
    [dropped] = result.dropped.values()
    assert dropped == dict(source.dropped)
    found = documents(tmp_path)
    assert len({document["id"] for document in found}) == 2 * DOCUMENTS
    assert all(map(source.is_right, found))


@pytest.mark.parametrize(
    "fault", [Fault("status", 503), Fault("short", at=9), Fault("garbled"), Fault("bomb")], ids=name_of
)
def test_a_fault_that_stays_costs_one_file_which_is_on_record(scene, tmp_path, fault):
    source, server = scene
    server.faults[f"{source.folder}/{source.names[0]}"] = [fault] * 50
    result = run(scene, tmp_path)

    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    [entry] = entries
    assert (entry["kind"], source.names[0] in json.dumps(entry)) == ("download_failed", True)
    assert result.balanced
    assert result.lost_parts == 1
    assert result.written == DOCUMENTS
    assert {document["source_id"].endswith(source.names[1]) for document in documents(tmp_path)} == {True}


def test_a_file_that_becomes_another_one_is_not_taken_for_the_one_that_was_listed(scene, tmp_path):
    source, server = scene
    server.faults[f"{source.folder}/{source.names[0]}"] = [Fault("cut", at=700), Fault("changed")]
    result = run(scene, tmp_path)
    assert (result.written, result.lost_parts, result.balanced) == (DOCUMENTS, 1, True)


def test_a_half_file_of_another_tool_is_not_taken_for_whole(scene, tmp_path):
    source, server = scene
    stage = source.stage(server, tmp_path / "downloads")
    (tmp_path / "downloads").mkdir()
    for name in source.names:
        path = f"{source.folder}/{name}"
        here = stage.downloader._get_output_filename(f"{server.url}/{path}")
        (tmp_path / "downloads" / here).write_bytes(server.files[path][:900])
    assert run(scene, tmp_path).written == 2 * DOCUMENTS


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_output_is_the_same_for_any_number_of_workers(scene, tmp_path, workers):
    run(scene, tmp_path / "here")
    result = run(scene, tmp_path / "workers", LocalExecutor(num_workers=workers))
    assert result.written == 2 * DOCUMENTS
    assert outputs(tmp_path / "workers") == outputs(tmp_path / "here")
