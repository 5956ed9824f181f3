"""Chosen pages of Common Crawl: found in its indexes, fetched by range, in the order of the rows; losses on record."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crawl_server import add_cdx_index, add_columnar_index, crawl_server, html

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import CommonCrawlIndexReader, CommonCrawlUrlLookup, CommonCrawlWARCReader
from gristmill.stages.text.download.common_crawl import url_lookup
from gristmill.stages.text.download.common_crawl.surt import host_key, path_key
from gristmill.stages.text.io.writer import ParquetWriter
from gristmill.storage import rate
from gristmill.storage.transfer import TransferOptions
from gristmill.tasks import DocumentBatch
from gristmill.testing.file_server import Fault

HERE = LocalExecutor(num_workers=0)
CRAWL = "CC-MAIN-2025-21"
PAGES = 60
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quick(quick_downloads, monkeypatch):
    monkeypatch.setattr(rate, "FIRST", 1e6)


@pytest.fixture(scope="module")
def serving():
    with crawl_server(2, PAGES, (CRAWL,)) as server:
        server.rows = add_columnar_index(server, CRAWL)
        add_cdx_index(server, CRAWL)
        yield server


@pytest.fixture
def server(serving):
    before = dict(serving.files)
    serving.forget()
    yield serving
    serving.files = before
    serving.faults.clear()


def number_of(url):
    return int(url.rpartition("/")[2])


def fetch(server, rows, **options):
    given = {"data_prefix": server.url, "timeout": 2, "max_retries": 2, **options}
    columns = ["url", "warc_filename", "warc_record_offset", "warc_record_length"]
    batch = DocumentBatch("b", pa.Table.from_pylist(rows).select(columns))
    stage = CommonCrawlWARCReader(**given)
    fetching = stage.decompose()[1]
    return fetching, fetching.process(batch)


def index(server, **options):
    given = {"data_prefix": server.url, "transfer": TransferOptions(timeout=5, max_retries=2), **options}
    return CommonCrawlIndexReader(CRAWL, **given)


def read(*stages, work):
    result = Pipeline("p", stages=[*stages, ParquetWriter(str(work))]).run(HERE, quiet=True, max_quarantined=None)
    import pyarrow.parquet as pq

    files = sorted(Path(work).glob("*.parquet"))
    return result, [row for file in files for row in pq.read_table(file).to_pylist()]


# Ranges


def test_each_row_gets_its_page_in_the_order_of_the_rows_and_neighbours_are_fetched_together(server):
    rows = server.rows[::3] + server.rows[1::3]
    stage, found = fetch(server, rows)

    assert [number_of(url) for url in found.column("url").to_pylist()] == [number_of(row["url"]) for row in rows]
    contents = found.column("binary_content").to_pylist()
    assert contents == [html(number_of(row["url"])) for row in rows]
    assert len(server.requests()) == 2  # two files, all pages near each other
    assert not stage.context.quarantined


def test_process_works_outside_a_pipeline(server):
    stage = CommonCrawlWARCReader(data_prefix=server.url)
    batch = DocumentBatch("b", pa.Table.from_pylist(server.rows[:2]))
    assert stage.process(batch).column("binary_content")[0].as_py().startswith(b"<html>")


LOSSES = {
    "no such file": ({"warc_filename": "crawl-data/none.warc.gz"}, "not_fetched", "status 404"),
    "beyond the end": ({"warc_record_offset": 10**9}, "not_fetched", "status 416"),
    "no length": ({"warc_record_length": None}, "not_fetched", "expected file, offset and length"),
    "negative": ({"warc_record_offset": -5}, "not_fetched", "expected file, offset and length"),
    "no file": ({"warc_filename": None}, "not_fetched", "expected file, offset and length"),
    "cut": ({"warc_record_length": 50}, "bad_record", "expected a whole gzip member"),
    "in between": ({"warc_record_offset": 7}, "bad_record", "expected"),
    "too large": ({"warc_record_length": 10**9}, "too_large", "at most 67,108,864 bytes"),
}


@pytest.mark.parametrize(("change", "kind", "said"), LOSSES.values(), ids=LOSSES)
def test_a_row_that_cannot_be_had_is_in_quarantine_with_its_reason_or_stays_without_content(server, change, kind, said):
    rows = [server.rows[0], server.rows[1] | change, server.rows[2]]
    stage, found = fetch(server, rows)

    assert found.column("url").to_pylist() == [rows[0]["url"], rows[2]["url"]]
    [lost] = stage.context.quarantined
    assert (lost.kind, lost.row) == (kind, 1)
    assert said in lost.error
    assert rows[1]["url"] in lost.document

    stage, kept = fetch(server, rows, drop_failed=False)
    assert [content is None for content in kept.column("binary_content").to_pylist()] == [False, True, False]
    assert not stage.context.quarantined


def test_refusals_are_tried_again_and_a_whole_file_for_a_range_is_a_loss(server):
    [first, second] = sorted({row["warc_filename"] for row in server.rows})
    server.faults[first] = [Fault("status", 503), Fault("status", 429, retry_after="0"), Fault("cut", at=10)]
    server.faults[second] = [Fault("whole")]
    stage, found = fetch(server, server.rows, max_retries=4)

    assert found.num_items == PAGES
    assert {lost.kind for lost in stage.context.quarantined} == {"not_fetched"}
    assert all("the whole file" in lost.error for lost in stage.context.quarantined)
    assert found.num_items + len(stage.context.quarantined) == len(server.rows)


def test_large_batches_are_cut_before_they_are_fetched(server, monkeypatch):
    from gristmill.stages.text.download.common_crawl import download

    monkeypatch.setattr(download, "MAX_BATCH_BYTES", 5_000)
    [cut, _] = CommonCrawlWARCReader().decompose()
    batch = DocumentBatch("b", pa.Table.from_pylist(server.rows))
    parts = cut.process(batch)

    assert sum(part.num_items for part in parts) == batch.num_items
    assert max(sum(part.column("warc_record_length").to_pylist()) for part in parts) <= 5_000
    monkeypatch.setattr(download, "MAX_BATCH_ROWS", 7)
    assert max(part.num_items for part in cut.process(batch)) == 7


# The columnar index


def test_rows_of_the_index_lead_to_their_pages_in_one_pipeline(server, tmp_path):
    result, rows = read(index(server), CommonCrawlWARCReader(data_prefix=server.url), work=tmp_path / "out")

    assert sorted(number_of(row["url"]) for row in rows) == list(range(2 * PAGES))
    assert all(row["binary_content"] == html(number_of(row["url"])) for row in rows)
    assert result.read == 2 * PAGES


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([("content_languages", "=", "eng")], lambda n: n % 2 == 1),
        ([("content_languages", "contains", "deu")], lambda n: n % 2 == 0),
        ([("url", "in", ["https://example.org/7", "https://example.org/none"])], lambda n: n == 7),
        ([("fetch_status", "!=", 200)], lambda n: False),
        ([("warc_record_offset", "<", 400), ("fetch_status", ">=", 200)], lambda n: n in (0, PAGES)),
    ],
)
def test_conditions_choose_rows(server, tmp_path, where, expected):
    _, rows = read(index(server, where=where, columns=["url"]), work=tmp_path / "out")

    assert sorted(number_of(row["url"]) for row in rows) == [n for n in range(2 * PAGES) if expected(n)]
    assert all(list(row) == ["url"] for row in rows)


def test_row_groups_that_cannot_have_such_rows_and_columns_nobody_wants_are_not_fetched(server, tmp_path):
    read(index(server, columns=["url"]), work=tmp_path / "all")
    everything = server.sent
    server.forget()
    _, rows = read(index(server, urls=["https://example.org/7"], columns=["url"]), work=tmp_path / "some")
    assert [row["url"] for row in rows] == ["https://example.org/7"]
    server.forget()
    _, rows = read(index(server, urls=["https://other.net/7"], columns=["url"]), work=tmp_path / "none")
    assert rows == []
    footers = sum(min(len(c), 1 << 16) for p, c in server.files.items() if p.endswith(".parquet"))
    assert everything >= server.sent
    assert server.sent <= footers + 5_000  # lists and footers, and no column


def test_an_index_on_a_disk_is_read_the_same_way(server, tmp_path):
    for path, content in server.files.items():
        if path.endswith(".parquet"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
    local = CommonCrawlIndexReader(CRAWL, [("content_languages", "=", "eng")], path=str(tmp_path / "cc-index"))
    _, rows = read(local, work=tmp_path / "out")
    assert len(rows) == PAGES
    assert "warc_record_offset" in rows[0]


def test_a_damaged_file_of_the_index_is_a_loss_on_record(server, tmp_path):
    name = next(path for path in server.files if path.endswith("part-00000.c000.gz.parquet") and "subset=warc" in path)
    server.files[name] = b"not parquet" * 1000
    result, rows = read(index(server), work=tmp_path / "out")

    assert len(rows) == PAGES
    assert result.lost_parts == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": [("url_tld", "=", "ch")]}, "did you mean 'url_host_tld'"),
        ({"columns": ["http_status"]}, "expected columns of the index; got 'http_status'"),
        ({"where": [("url", "like", "x")]}, "with an operator of"),
        ({"where": [("url", "=")]}, "with an operator of"),
    ],
)
def test_wrong_columns_and_conditions_are_said_at_once(server, options, said):
    with pytest.raises(ConfigError, match=said):
        index(server, **options)


def test_a_crawl_that_is_none_is_said(server):
    with pytest.raises(ConfigError, match="such as 'CC-MAIN-2025-21'; got '2025-21'"):
        CommonCrawlIndexReader("2025-21")
    missing = CommonCrawlIndexReader("CC-MAIN-2020-05", data_prefix=server.url, transfer=TransferOptions(max_retries=0))
    with pytest.raises(ConfigError, match="status 404"):
        Pipeline("p", stages=[missing, ParquetWriter("out")]).plan(HERE)


# Single URLs


@pytest.mark.parametrize("step", [64, 300, 1 << 14])
def test_urls_are_found_by_bisecting_the_sorted_index(server, tmp_path, monkeypatch, step):
    monkeypatch.setattr(url_lookup, "_STEP_BYTES", step)
    wanted = [f"https://example.org/{n}" for n in (0, 1, 59, 60, 99, 119, 7)]
    stage = CommonCrawlUrlLookup([*wanted, "https://example.org/none", "https://a.b/"], CRAWL, data_prefix=server.url)
    result, rows = read(stage, CommonCrawlWARCReader(data_prefix=server.url), work=tmp_path / "out")

    assert sorted(row["url"] for row in rows) == sorted(wanted)
    assert all(row["binary_content"] == html(number_of(row["url"])) for row in rows)
    assert result.dropped["common_crawl_url_lookup"] == {"not_in_index": 2}


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://www.Example.org/News/", "org,example)", "org,example)/news"),
        ("http://example.org", "org,example)", "org,example)/"),
        ("http://example.org:8080/a?b=1#c", "org,example:8080)", "org,example:8080)/a"),
        ("https://example.org:443/a", "org,example)", "org,example)/a"),
        ("http://10.0.0.1/x", "10.0.0.1)", "10.0.0.1)/x"),
        ("http://bücher.example/", "example,xn--bcher-kva)", "example,xn--bcher-kva)/"),
    ],
)
def test_keys_are_hosts_turned_round(url, host, path):
    assert host_key(url) == host
    assert path_key(url) == path


def test_the_lost_rows_are_in_the_books(server, tmp_path):
    del server.files[min(row["warc_filename"] for row in server.rows)]
    stages = [index(server), CommonCrawlWARCReader(data_prefix=server.url)]
    result, rows = read(*stages, work=tmp_path / "out")

    assert (result.read, result.written, result.quarantined) == (2 * PAGES, PAGES, PAGES)
    entries = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert {entry["kind"] for entry in entries} == {"not_fetched"}
    assert len(rows) == result.written
