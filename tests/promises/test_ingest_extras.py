"""What a source needs and is not installed is named with the command that installs it, before anything starts."""

import importlib.util
import subprocess
import sys

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import MissingDependency
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import (
    CommonCrawlDownloadExtractStage,
    CommonCrawlIndexReader,
    CommonCrawlUrlLookup,
    CommonCrawlWARCReader,
    WarcReader,
)
from gristmill.stages.text.download.common_crawl import CommonCrawlHTMLExtractor
from gristmill.stages.text.io import JsonlReader, JsonlWriter

HERE = LocalExecutor(num_workers=0)
NEW = ("pycurl", "fastwarc", "warcio", "resiliparse", "trafilatura", "justext", "lxml", "pypdfium2", "mwparserfromhell")


@pytest.fixture
def without(monkeypatch):
    """Pretend that some packages are not there."""
    missing = set()
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name in missing else found(name, *more)
    )
    return missing


def plan(*stages):
    return Pipeline("p", stages=[*stages, JsonlWriter("out")]).plan(HERE)


def sources(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"warc_filename": "a", "warc_record_offset": 1, "warc_record_length": 2}\n')
    return {
        "crawl": [CommonCrawlDownloadExtractStage("2025-18", "2025-21", "d", html_extraction="resiliparse")],
        "index": [CommonCrawlIndexReader("CC-MAIN-2025-21")],
        "lookup": [CommonCrawlUrlLookup(["https://example.org/"], "CC-MAIN-2025-21")],
        "records": [JsonlReader(str(tmp_path / "a.jsonl")), CommonCrawlWARCReader()],
    }


@pytest.mark.parametrize("name", ["crawl", "index", "lookup", "records"])
def test_downloads_without_pycurl_are_refused_by_the_plan(tmp_path, without, name):
    without.add("pycurl")
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[fetch\]'"):
        plan(*sources(tmp_path)[name])


def test_pages_without_their_packages_are_refused_by_the_plan_and_warc_files_need_none(tmp_path, without):
    from tests.warc_files import crawl

    (tmp_path / "a.warc.gz").write_bytes(b"".join(crawl(2)))
    without.update(NEW)
    assert plan(WarcReader(str(tmp_path))).sources
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[html\]'"):
        plan(WarcReader(str(tmp_path), extractor=CommonCrawlHTMLExtractor("resiliparse")))


def test_importing_sources_loads_none_of_the_new_packages():
    program = (
        "import sys, gristmill, gristmill.stages.text.download, gristmill.stages.text.download.common_crawl; "
        f"print([name for name in {NEW} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
