"""Downloads and ranges from real S3 servers, with signed requests."""

import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crawl_server import add_columnar_index, crawl_server, html

from gristmill.errors import ConfigError, DownloadFailed
from gristmill.stages.text.download import CommonCrawlWARCReader
from gristmill.stages.text.download.common_crawl.download import CommonCrawlWARCDownloader
from gristmill.storage import transfer
from gristmill.storage.download_notes import Note
from gristmill.storage.http_ranges import NotFetched, Piece, fetch_pieces
from gristmill.storage.transfer import RemoteFile, TransferOptions, fetch_file, locate
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.usefixtures("quick_downloads")]
CONTENT = os.urandom(300_000)
OPTIONS = TransferOptions(max_retries=1, timeout=20)


def test_an_object_is_fetched_continued_and_compared(store, tmp_path):
    store.put("a b/ü.bin", CONTENT)
    url = f"{store.url}/a b/ü.bin"
    note = Note(tmp_path / "ü.bin", url)
    file = RemoteFile(url, len(CONTENT), f"md5:{hashlib.md5(CONTENT).hexdigest()}")
    Path(note.part_path).write_bytes(CONTENT[:1000])
    note.tell(transfer.Told(url, len(CONTENT), "", file.version))

    assert Path(fetch_file(file, note, OPTIONS)).read_bytes() == CONTENT
    assert locate(file, OPTIONS).size == len(CONTENT)


def test_ranges_of_objects_and_what_is_missing(store):
    store.put("large.bin", CONTENT)
    asked = [Piece(f"{store.url}/large.bin", 5, 50), Piece(f"{store.url}/none.bin", 0, 9)]
    found, lost = fetch_pieces(asked, OPTIONS)
    assert found == CONTENT[5:50]
    assert isinstance(lost, NotFetched)


def test_a_wrong_key_is_refused_and_the_file_is_a_loss(seaweedfs, tmp_path, monkeypatch):
    for name, value in seaweedfs.environment.items():
        monkeypatch.setenv(name, value)
    seaweedfs.put("x", b"x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    note = Note(tmp_path / "x", f"{seaweedfs.url}/x")
    with pytest.raises(DownloadFailed, match="status 403"):
        fetch_file(RemoteFile(f"{seaweedfs.url}/x"), note, TransferOptions(max_retries=0))


def test_without_keys_it_is_said_before_the_run(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigError, match="S3: expected keys"):
        CommonCrawlWARCDownloader(str(tmp_path), use_aws_to_download=True).check_ready()


def test_pages_of_common_crawl_come_from_a_bucket(store):
    with crawl_server(1, 20, ("CC-MAIN-2025-21",)) as server:
        rows = add_columnar_index(server, "CC-MAIN-2025-21")
        for path, content in server.files.items():
            if "/warc/" in path:
                store.put(path.removeprefix("crawl-data/"), content)
    reader = CommonCrawlWARCReader(use_s3=True, s3_bucket=store.bucket, s3_key_prefix="crawl-data/")
    found = reader.process(DocumentBatch("b", pa.Table.from_pylist(rows)))
    contents = found.column("binary_content").to_pylist()
    assert contents == [html(int(row["url"].rpartition("/")[2])) for row in rows]
