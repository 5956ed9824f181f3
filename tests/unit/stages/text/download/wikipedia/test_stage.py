"""`WikipediaDownloadExtractStage` against a server that is like Wikimedia's: what it lists, fetches and refuses."""

import json

import pytest
from tests.wiki_dumps import dump_server_files, page, site, streams

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import TransferOptions, WikipediaDownloadExtractStage
from gristmill.stages.text.download.wikipedia.url_generation import WikipediaUrlGenerator
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.transfer import RemoteFile
from gristmill.testing.file_server import Fault, MisbehavingFileServer

HERE = LocalExecutor(num_workers=0)
QUICK = TransferOptions(max_retries=1, timeout=5)
FIRST = b"".join(streams([page(k, f"Article '''{k}'''.") for k in range(5)]))
SECOND = b"".join(streams([page(k, f"Article '''{k}'''.") for k in range(5, 8)]))
NAMES = ("enwiki-20240201-multistream1.xml-p1p5.bz2", "enwiki-20240201-multistream2.xml-p6p9.bz2")
DUMP = {NAMES[0]: FIRST, NAMES[1]: SECOND, "enwiki-20240201-multistream-index.txt.bz2": b"index"}


@pytest.fixture
def server():
    with MisbehavingFileServer(
        dump_server_files(dumps={"20240101": {"old.xml.bz2": FIRST}, "20240201": DUMP})
    ) as found:
        yield found


def generator(server, language="en", date=None):
    return WikipediaUrlGenerator(language, date, server.url, transfer=QUICK)


def test_the_newest_finished_dump_is_taken_with_sizes_and_checksums(server):
    first, second = generator(server).list_files()
    assert first.url == f"{server.url}/enwiki/20240201/{NAMES[0]}"
    assert (first.size, first.version[:5], second.size) == (len(FIRST), "sha1:", len(SECOND))
    assert generator(server).generate_urls() == [first.url, second.url]


def test_a_dump_that_is_not_finished_is_passed_over(server):
    files = dump_server_files(
        dumps={"20240101": {"old.xml.bz2": FIRST}, "20240201": DUMP}, finished={"20240101": True, "20240201": False}
    )
    server.files = files
    assert generator(server).generate_urls() == [f"{server.url}/enwiki/20240101/old.xml.bz2"]
    with pytest.raises(
        ConfigError, match=r"expected a finished dump; that of 20240201 is .in-progress.\. Name an earlier"
    ):
        generator(server, date="20240201").list_files()


def test_where_no_dump_is_finished_all_are_named(server):
    server.files = dump_server_files(dumps={"20240101": DUMP, "20240201": DUMP}, finished=False)
    with pytest.raises(ConfigError, match="got 20240201 is in-progress, 20240101 is in-progress"):
        generator(server).list_files()


def test_a_date_without_a_dump_is_said_with_those_there_are(server):
    with pytest.raises(ConfigError, match="expected a dump of 20230101; there are dumps of 20240101, 20240201"):
        generator(server, date="20230101").list_files()


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("germn", r"got 'germn'; did you mean 'de'\?"),
        ("English", r"got 'English'; did you mean 'en'\?"),
        ("xx", "got 'xx'"),
        ("zh_min_nan", "did you mean 'zh-min-nan'?"),
        ("simpel", "'simple'"),
    ],
)
def test_an_unknown_language_is_said_at_once_with_the_nearest(language, said):
    with pytest.raises(ConfigError, match=said):
        WikipediaDownloadExtractStage(language)


@pytest.mark.parametrize(("language", "database"), [("zh-min-nan", "zh_min_nanwiki"), ("yue", "zh_yuewiki")])
def test_dumps_have_names_of_their_own_for_some_languages(server, language, database):
    server.files = dump_server_files(dumps={"20240101": {"a.xml.bz2": FIRST}}, database=database)
    assert generator(server, language).generate_urls() == [f"{server.url}/{database}/20240101/a.xml.bz2"]


@pytest.mark.parametrize("date", ["2024", "20240101x", "latest"])
def test_a_date_that_is_none_is_said_at_once(date):
    with pytest.raises(ConfigError, match=f"expected dump_date as YYYYMMDD; got '{date}'"):
        WikipediaDownloadExtractStage(dump_date=date)


@pytest.mark.parametrize("content", [b"not JSON", b"[]", b'{"jobs": 3}', b'{"jobs": {"articlesmultistreamdump": 3}}'])
def test_a_state_that_cannot_be_read_is_an_error_with_its_place(server, content):
    server.files["enwiki/20240201/dumpstatus.json"] = content
    with pytest.raises(ConfigError, match=r"expected the state of a dump at .*/20240201/dumpstatus.json; got"):
        generator(server).list_files()


def run(server, work, **options):
    stage = WikipediaDownloadExtractStage(
        download_dir=str(work / "dumps"), wikidumps_index_prefix=server.url, transfer=QUICK, **options
    )
    pipeline = Pipeline("wikipedia", stages=[stage, JsonlWriter(str(work / "out"))])
    result = pipeline.run(HERE, quiet=True, max_quarantined=None)
    files = sorted((work / "out").glob("*.jsonl"))
    return result, [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_a_dump_is_fetched_and_becomes_documents(server, tmp_path):
    result, found = run(server, tmp_path)
    assert [(d["id"], d["text"], d["language"]) for d in found] == [(str(k), f"Article {k}.", "en") for k in range(8)]
    assert found[0]["file_name"] == f"enwiki-20240201-{NAMES[0]}"
    assert found[0]["source_id"] == found[0]["file_name"]
    assert (result.read, result.written, result.quarantined) == (8, 8, 0)
    assert "gristmill/" in server.log[0].user_agent


@pytest.mark.slow
def test_a_cut_connection_and_a_garbled_file_do_no_harm(server, tmp_path):
    server.faults[f"enwiki/20240201/{NAMES[0]}"] = [Fault("cut", at=100)]
    server.faults[f"enwiki/20240201/{NAMES[1]}"] = [Fault("garbled")]
    _, found = run(server, tmp_path)
    assert [d["id"] for d in found] == [str(k) for k in range(8)]


@pytest.mark.slow
def test_limits_are_kept(server, tmp_path):
    _, found = run(server, tmp_path, url_limit=1, record_limit=2, add_filename_column="from")
    assert [d["id"] for d in found] == ["0", "1"]
    assert found[0]["from"] == f"enwiki-20240201-{NAMES[0]}"


def test_two_files_are_fetched_at_a_time():
    stage = WikipediaDownloadExtractStage()
    assert stage.downloader.num_workers_per_node() == 2
    assert stage.name == "wikipedia_en_pipeline"
    assert stage.get_description() == "Wikipedia en pipeline for dump latest"


def test_the_names_of_files_say_which_dump_they_are_of():
    stage = WikipediaDownloadExtractStage()
    file = RemoteFile("https://dumps.wikimedia.org/enwiki/20240201/enwiki-20240201-x.xml.bz2")
    assert stage.downloader._get_output_filename(file.url) == "enwiki-20240201-enwiki-20240201-x.xml.bz2"


def test_names_of_namespaces_come_from_the_dump(server, tmp_path):
    head = site("szy", file="tangan", category="kakuniza")
    dump = b"".join(streams([page(1, "a[[tangan:b.png]]")], head=head))
    server.files = dump_server_files("szy", dumps={"20240101": {"szywiki.xml.bz2": dump}})
    _, [found] = run(server, tmp_path, language="szy")
    assert found["text"] == "a"
