"""`gristmill fetch`, and `gristmill plan` of a recipe that fetches: what they print, fetch, and leave alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.crawl_server import crawl_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GRISTMILL = Path(sys.executable).with_name("gristmill")
RECIPE = """
name: crawl
stages:
  - CommonCrawlDownloadExtractStage:
      start_snapshot: 2025-18
      end_snapshot: 2025-21
      download_dir: {work}/downloads
      html_extraction: resiliparse
      data_prefix: {url}
      index_prefix: {url}
      transfer: {{max_retries: 1, keep_files: false}}
  - JsonlWriter:
      path: {work}/out
"""


@pytest.fixture(scope="module")
def server():
    with crawl_server(2, 10) as server:
        yield server


@pytest.fixture
def recipe(server, tmp_path):
    server.forget()
    path = tmp_path / "crawl.yaml"
    path.write_text(RECIPE.format(work=tmp_path, url=server.url))
    return path


def gristmill(*arguments, cwd, expected=0):
    done = subprocess.run([GRISTMILL, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == expected, done.stderr
    return done


def fetched_data(server):
    return [seen for seen in server.requests() if "/segments/" in seen.path and seen.method != "HEAD"]


def test_a_plan_says_how_many_files_and_bytes_and_fetches_none(server, recipe, tmp_path):
    sizes = [len(content) for path, content in server.files.items() if "/warc/" in path and "MAIN" in path]
    said = gristmill("plan", recipe, cwd=tmp_path).stdout
    told = json.loads(gristmill("plan", recipe, "--json", cwd=tmp_path).stdout)["to_fetch"]

    assert f"to fetch: 4 files of {sum(sizes) / 1e9:,.3f} GB ({sum(sizes):,} bytes), 0 of them there already" in said
    assert f"first: {server.url}/crawl-data/CC-MAIN-2025-21" in said
    assert (told["num_files"], told["num_bytes"], told["is_exact"]) == (4, sum(sizes), True)
    assert fetched_data(server) == []
    assert not (tmp_path / "downloads").exists()


def test_fetching_a_recipe_downloads_its_files_and_they_stay(server, recipe, tmp_path):
    dry = gristmill("fetch", recipe, "--dry-run", cwd=tmp_path).stdout
    assert "to fetch: 4 files" in dry
    assert fetched_data(server) == []

    done = gristmill("fetch", recipe, cwd=tmp_path)
    assert "4 of 4 files are there" in done.stdout
    files = sorted((tmp_path / "downloads").glob("crawl-data-*.warc.gz"))
    assert [file.read_bytes() for file in files] == [
        content for path, content in sorted(server.files.items()) if "/warc/" in path and "MAIN" in path
    ]
    assert not (tmp_path / "out").exists()
    server.forget()
    assert "4 of them there already" in gristmill("plan", recipe, cwd=tmp_path).stdout
    gristmill("fetch", recipe, cwd=tmp_path)
    assert fetched_data(server) == []


def test_urls_are_fetched_into_a_directory_and_a_missing_one_is_told_with_exit_1(server, recipe, tmp_path):
    names = [path for path in server.files if path.endswith("paths.gz") and "2025-21" in path]
    urls = [f"{server.url}/{name}" for name in names]
    done = gristmill("fetch", *urls, "--to", "lists", "--json", cwd=tmp_path)
    assert [Path(path).name for path in json.loads(done.stdout)["fetched"]] == ["warc.paths.gz", "wet.paths.gz"]
    assert (tmp_path / "lists" / "warc.paths.gz").read_bytes() == server.files[names[0]]

    done = gristmill("fetch", urls[0], f"{server.url}/nothing.gz", "--to", "more", cwd=tmp_path, expected=1)
    assert "1 of 2 files are there" in done.stdout
    assert "status 404" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["basic-english", "-i", "in", "-o", "out"], "it downloads nothing"),
        (["http://127.0.0.1:9/dir/"], "expected URLs of files"),
        (["one", "two"], "expected one recipe"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_and_exit_2(tmp_path, arguments, said):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "x"}\n')
    done = gristmill("fetch", *arguments, cwd=tmp_path, expected=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


OWN = """
from gristmill.stages.text.download import DocumentDownloader, DocumentIterator, URLGenerator


class Three(URLGenerator):
    def generate_urls(self):
        return ["a", "b", "c"]


class Breaks(DocumentDownloader):
    def _get_output_filename(self, url):
        return url

    def _download_to_path(self, url, path):
        raise RuntimeError(f"cannot fetch {url}")


class Nothing(DocumentIterator):
    def iterate(self, file_path):
        return iter(())

    def output_columns(self):
        return []
"""
OWN_RECIPE = """
name: own
stages:
  - DocumentDownloadExtractStage:
      url_generator: {_target_: own.Three}
      downloader: {_target_: own.Breaks, download_dir: downloads}
      iterator: {_target_: own.Nothing}
  - JsonlWriter: {path: out}
"""


def test_a_downloader_of_ones_own_that_raises_ends_the_command_with_its_words(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own.yaml").write_text(OWN_RECIPE)
    done = gristmill("fetch", "own.yaml", "--allow-module", "own", cwd=tmp_path, expected=1)

    assert "RuntimeError: cannot fetch" in done.stderr


def test_a_full_disk_is_named_with_its_path_and_how_to_go_on(server, tmp_path):
    warc = max((path for path in server.files if "/warc/" in path), key=lambda path: len(server.files[path]))
    assert len(server.files[warc]) > 1024
    program = f"ulimit -f 1; exec {GRISTMILL} fetch {server.url}/{warc} --to {tmp_path}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 1
    assert "OSError" not in done.stderr
    assert f"{tmp_path}/.{Path(warc).name}.part: File too large" in done.stderr
    assert "run the same command again" in done.stderr


def test_a_file_that_is_not_there_leaves_nothing_behind(server, tmp_path):
    gristmill("fetch", f"{server.url}/nowhere.bin", "--to", tmp_path / "got", cwd=tmp_path, expected=1)
    assert list((tmp_path / "got").iterdir()) == []
