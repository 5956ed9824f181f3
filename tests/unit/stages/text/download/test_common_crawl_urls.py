"""Which files a crawl has is told by its lists; what is wrong with them is said, and never a shorter list used."""

import gzip
import json

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.download.common_crawl.url_generation import (
    MainCommonCrawlUrlGenerator,
    NewsCommonCrawlUrlGenerator,
)
from gristmill.testing.file_server import Fault, MisbehavingFileServer

CRAWLS = ["CC-MAIN-2025-21", "CC-MAIN-2025-18", "CC-MAIN-2025-05", "CC-MAIN-2013-20", "CC-MAIN-2009-2010"]


def paths(crawl, kind="warc", number=3):
    return "".join(f"crawl-data/{crawl}/segments/1/{kind}/{crawl}-{n:05d}.{kind}.gz\n" for n in range(number))


@pytest.fixture
def server(quick_downloads):
    files = {"collinfo.json": json.dumps([{"id": name, "name": name} for name in CRAWLS]).encode()}
    for crawl in CRAWLS:
        for kind in ("warc", "wet"):
            files[f"crawl-data/{crawl}/{kind}.paths.gz"] = gzip.compress(paths(crawl, kind).encode())
    for month in ("2024/12", "2025/01", "2025/02"):
        name = month.replace("/", "-")
        files[f"crawl-data/CC-NEWS/{month}/warc.paths.gz"] = gzip.compress(paths(f"CC-NEWS-{name}").encode())
    with MisbehavingFileServer(files) as server:
        yield server


def main(server, start, end, **options):
    return MainCommonCrawlUrlGenerator(start, end, server.url, index_prefix=server.url, **options)


def test_a_range_of_snapshots_is_the_files_of_all_crawls_in_it_the_newest_first(server):
    urls = main(server, "2025-18", "2025-21").generate_urls()

    assert len(urls) == 6
    assert urls[0] == f"{server.url}/crawl-data/CC-MAIN-2025-21/segments/1/warc/CC-MAIN-2025-21-00000.warc.gz"
    assert "2025-18-00002" in urls[-1]
    assert main(server, "2025-01", "2025-20", kind="wet").generate_urls()[0].endswith("-00000.wet.gz")


def test_a_limit_is_a_limit_and_no_more_lists_are_read_than_needed(server):
    assert len(main(server, "2025-01", "2025-30", limit=2).generate_urls()) == 2
    assert len([seen for seen in server.requests() if "paths.gz" in seen.path]) == 1


def test_news_is_by_month(server):
    urls = NewsCommonCrawlUrlGenerator("2024-12", "2025-02", server.url).generate_urls()

    assert len(urls) == 9
    assert "2025-02" in urls[0]
    assert "2024-12" in urls[-1]


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2025-19", "2025-20", "there is none. The nearest are CC-MAIN-2025-05, CC-MAIN-2025-18, CC-MAIN-2025-21"),
        ("2025-21", "2025-18", "expected a start that is not after the end"),
        ("2025-54", "2025-55", "year and week, such as '2025-18'; got '2025-54'"),
        ("2025", "2025-55", "got '2025'"),
        ("CC-MAIN-2025-18", "x", "got 'CC-MAIN-2025-18'"),
    ],
)
def test_a_wrong_snapshot_is_said_with_the_nearest_crawls(server, start, end, said):
    with pytest.raises(ConfigError, match=said):
        main(server, start, end).generate_urls()


def test_a_wrong_month_is_said_too(server):
    with pytest.raises(ConfigError, match="year and month, such as '2025-05'; got '2025-13'"):
        NewsCommonCrawlUrlGenerator("2025-13", "2025-14", server.url)
    with pytest.raises(ConfigError, match="status 404"):
        NewsCommonCrawlUrlGenerator("2025-02", "2025-03", server.url).generate_urls()
    with pytest.raises(ConfigError, match="news has no other files"):
        NewsCommonCrawlUrlGenerator("2025-02", "2025-03", server.url, kind="wet").generate_urls()


@pytest.mark.parametrize(
    "change",
    [
        lambda server: server.files.pop("crawl-data/CC-MAIN-2025-18/warc.paths.gz"),
        lambda server: server.files.update({"crawl-data/CC-MAIN-2025-18/warc.paths.gz": b"\x1f\x8b\x08broken"}),
        lambda server: server.files.update({"crawl-data/CC-MAIN-2025-18/warc.paths.gz": gzip.compress(b"")}),
        lambda server: server.files.update({"crawl-data/CC-MAIN-2025-18/warc.paths.gz": gzip.compress(b"\xff\xfe\n")}),
        lambda server: server.files.update({"collinfo.json": b"<html>"}),
        lambda server: server.files.update({"collinfo.json": b'[{"name": "x"}]'}),
        lambda server: server.faults.update({"collinfo.json": [Fault("status", 503)] * 9}),
    ],
)
def test_a_list_that_cannot_be_read_stops_the_plan(server, change):
    change(server)
    with pytest.raises(ConfigError, match="MainCommonCrawlUrlGenerator: expected"):
        main(server, "2025-18", "2025-21").generate_urls()


def test_a_list_that_is_refused_at_first_is_read_in_the_end(server):
    server.faults["crawl-data/CC-MAIN-2025-18/warc.paths.gz"] = [Fault("status", 503), Fault("cut", at=9)]
    assert len(main(server, "2025-18", "2025-18").generate_urls()) == 3


def test_what_lies_before_the_first_crawls_in_this_format_is_left_out_with_a_warning(server):
    with pytest.warns(UserWarning, match="earlier crawls are in ARC files"):
        assert len(main(server, "2009-01", "2014-01").generate_urls()) == 3
