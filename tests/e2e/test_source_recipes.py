"""Recipes that name Wikipedia and arXiv, as somebody would run them: what is said before, during and after."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.arxiv_archives import PAPER, manifest, single, tar_of
from tests.fault.processes import wait_until
from tests.wiki_dumps import dump_server_files, page, streams

from gristmill.testing.file_server import Fault, MisbehavingFileServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GRISTMILL = Path(sys.executable).with_name("gristmill")
DUMP = b"".join(streams([page(k, f"Article '''{k}''' has {k * 7919} words.") for k in range(60)]))
NAME = "enwiki-20240201-pages-articles-multistream.xml.bz2"
ARCHIVES = {"arXiv_src_0704_001.tar": tar_of({f"0704/0704.{k:04d}.gz": single(PAPER) for k in range(20)})}
PLACES = {"wikipedia": f"enwiki/20240201/{NAME}", "arxiv": "arxiv/src/arXiv_src_0704_001.tar"}
DATA = {PLACES["wikipedia"]: DUMP, PLACES["arxiv"]: ARCHIVES["arXiv_src_0704_001.tar"]}
UNFINISHED = dump_server_files("de", dumps={"20240201": {NAME: DUMP}}, finished=False)
FILES = {
    **dump_server_files(dumps={"20240201": {NAME: DUMP}}), **UNFINISHED, **DATA,
    "arxiv/src/arXiv_src_manifest.xml": manifest(ARCHIVES), "frwiki/": b"<html>nothing here</html>",
}  # fmt: skip
RECIPES = {
    "wikipedia": "WikipediaDownloadExtractStage: {{wikidumps_index_prefix: '{url}', download_dir: files{more}}}",
    "arxiv": "ArxivDownloadExtractStage: {{download_dir: files{more}}}",
}
FILTER = "  - ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 1}}, text_field: txt}\n"


@pytest.fixture
def server():
    with MisbehavingFileServer(dict(FILES)) as server:
        yield server


def command(server, work, source, *arguments, more="", between=""):
    work.mkdir(exist_ok=True)
    stage = RECIPES[source].format(url=server.url, more=f", {more}" if more else "")
    text = f"name: {source}\nstages:\n  - {stage}\n{between}  - JsonlWriter: {{path: out}}\n"
    (work / "recipe.yaml").write_text(text)
    keys = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    options = {"cwd": work, "env": {**os.environ, **keys}, "text": True}
    verb, *rest = arguments
    return [GRISTMILL, verb, "recipe.yaml", *rest], options


def gristmill(*arguments, expected=0, **more):
    told, options = command(*arguments, **more)
    done = subprocess.run(told, capture_output=True, check=False, **options)
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr
    return done


def fetched(server):
    return [seen.path for seen in server.requests() if seen.path in DATA and seen.method != "HEAD"]


PAYS = "requester_pays: true"


@pytest.mark.parametrize(("source", "more"), [("wikipedia", ""), ("arxiv", PAYS)])
def test_a_plan_says_files_and_bytes_and_price_and_fetches_none(server, tmp_path, source, more):
    size = len(DATA[PLACES[source]])
    said = gristmill(server, tmp_path, source, "plan", more=more).stdout
    assert f"to fetch: 1 file of {size / 1e9:,.3f} GB ({size:,} bytes), 0 of them there already" in said
    assert ("$0.00 outside of us-east-1" in said) == (source == "arxiv")
    assert fetched(server) == []
    assert not (tmp_path / "files").exists()


MISTAKES = {
    "nobody pays": ("arxiv", "", r"expected requester_pays=True", r"1,000.0 GB, $90.00"),
    "language": ("wikipedia", "language: enn", "expected the code of a language", "got 'enn'"),
    "unfinished": ("wikipedia", "language: de", "in-progress", "20240201"),
    "date": ("wikipedia", "dump_date: '20230101'", "expected a dump of 20230101", "there are dumps of 20240201"),
    "no list": ("wikipedia", "language: es", "expected a list at", "got status 404"),
    "no dumps": ("wikipedia", "language: fr", "frwiki", "expected"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_before_anything_is_fetched(server, tmp_path, name):
    source, more, *words = MISTAKES[name]
    said = gristmill(server, tmp_path, source, "run", more=more, expected=2).stderr
    assert all(word in said for word in words), said
    assert len(said.strip().splitlines()) == 1
    assert fetched(server) == []


@pytest.mark.parametrize("content", [b"<html>", manifest({})])
def test_a_list_of_archives_that_cannot_be_read_stops_the_plan(server, tmp_path, content):
    server.files["arxiv/src/arXiv_src_manifest.xml"] = content
    said = gristmill(server, tmp_path, "arxiv", "run", more=PAYS, expected=2).stderr
    assert "arXiv: expected" in said
    assert fetched(server) == []


def test_a_wrong_column_is_said_before_anything_is_fetched(server, tmp_path):
    said = gristmill(server, tmp_path, "wikipedia", "run", between=FILTER, expected=2).stderr
    assert "expected a column 'txt'" in said
    assert "did you mean 'text'?" in said
    assert fetched(server) == []


@pytest.mark.parametrize(("source", "more", "documents"), [("wikipedia", "", 60), ("arxiv", PAYS, 20)])
def test_ctrl_c_in_a_download_and_the_same_command_again(server, tmp_path, source, more, documents):
    path = PLACES[source]
    server.faults[path] = [Fault("stall", at=len(DATA[path]) // 2)]
    told, options = command(server, tmp_path, source, "run", more=more)
    with subprocess.Popen(told, start_new_session=True, stderr=subprocess.PIPE, **options) as program:
        wait_until(lambda: any((tmp_path / "files").glob(".*.part")), what="it downloads", program=program)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
    assert program.returncode == 130
    assert "Run the same command again to continue" in said

    gristmill(server, tmp_path, source, "run", more=more)
    found = [json.loads(line) for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert len({document["id"] for document in found}) == len(found) == documents
    assert not list((tmp_path / "files").glob(".*.part"))
