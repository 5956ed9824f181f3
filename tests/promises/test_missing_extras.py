"""Sources and formats without their packages: the plan names the command that installs them, and nothing is asked."""

import importlib.util
import subprocess
import sys

import pytest
from tests.pdf_files import of_text
from tests.wiki_dumps import page, write_dump

from gristmill.backends.local import LocalExecutor
from gristmill.errors import MissingDependency
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import (
    ArxivDownloadExtractStage,
    WikipediaDownloadExtractStage,
    WikipediaDumpReader,
)
from gristmill.stages.text.io import HuggingFaceReader, JsonlReader, JsonlWriter, LanceReader, LanceWriter
from gristmill.stages.text.io import MegatronTokenizerWriter as MegatronWriter
from gristmill.stages.text.pdf import PdfExtractStage, PdfReader
from gristmill.stages.text.rules import ApplyRules, DclmGopherQuality, DclmGopherRepetition
from gristmill.testing.file_server import MisbehavingFileServer
from gristmill.testing.tiny_models import write_tiny_tokenizer

HERE = LocalExecutor(num_workers=0)
NEW = (
    "pycurl", "obstore", "fastwarc", "warcio", "resiliparse", "trafilatura", "justext", "lxml", "cchardet", "pypdfium2",
    "mwparserfromhell", "lance", "huggingface_hub", "tokenizers", "transformers",
)  # fmt: skip
MODULES = (
    "gristmill", "gristmill.stages.text.download", "gristmill.stages.text.download.wikipedia",
    "gristmill.stages.text.download.arxiv", "gristmill.stages.text.pdf", "gristmill.stages.text.io",
    "gristmill.stages.math.download.extract", "gristmill.stages.math.modifiers", "gristmill.utils.merge_file_prefixes",
)  # fmt: skip


@pytest.fixture
def without(monkeypatch):
    """Pretend that a package is not there."""
    found = importlib.util.find_spec

    def pretend(missing):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == missing else found(name, *more)
        )
        for name in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
            monkeypatch.setitem(sys.modules, name, None)

    return pretend


@pytest.fixture
def server(monkeypatch):
    with MisbehavingFileServer({}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield server
        assert server.requests() == []


def pdf_file(work):
    (work / "a.pdf").write_bytes(of_text("x"))
    return str(work / "a.pdf")


def rows(work):
    (work / "a.jsonl").write_text('{"text": "x", "binary_content": "x"}\n')
    return JsonlReader(str(work / "a.jsonl"))


def tokenizer(work):
    (work / "t").mkdir()
    write_tiny_tokenizer(work / "t", ["a"])
    return str(work / "t")


# What is missing, what the plan says, and the stages that need it.
CASES = {
    "wikipedia": ("pycurl", "fetch", lambda w, url: [WikipediaDownloadExtractStage(wikidumps_index_prefix=url)]),
    "arxiv": ("pycurl", "fetch", lambda w, url: [ArxivDownloadExtractStage(requester_pays=True)]),
    "mwparserfromhell": (
        "mwparserfromhell", "wikipedia",
        lambda w, url: [WikipediaDumpReader(write_dump(w / "a.xml.bz2", [page(1, "x")]), parser="mwparserfromhell")],
    ),
    "pdf": ("pypdfium2", "pdf", lambda w, url: [PdfReader(pdf_file(w))]),
    "pdf in a column": ("pypdfium2", "pdf", lambda w, url: [rows(w), PdfExtractStage()]),
    "lance in": ("lance", "lance", lambda w, url: [LanceReader(str(w / "d"))]),
    "lance out": ("lance", "lance", lambda w, url: [rows(w), LanceWriter(str(w / "d"), str(w / "c"))]),
    "megatron": (
        "tokenizers", "models",
        lambda w, url: [rows(w), MegatronWriter(str(w / "m"), model_identifier=tokenizer(w))],
    ),
    "rules": ("uniseg", "dclm", lambda w, url: [rows(w), ApplyRules([DclmGopherQuality(), DclmGopherRepetition()])]),
    "hugging face": ("huggingface_hub", "hub", lambda w, url: [HuggingFaceReader("owner/name")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_missing_is_named_by_the_plan_with_the_command_and_nothing_is_asked(tmp_path, without, server, name):
    missing, extra, stages = CASES[name]
    made = stages(tmp_path, server.url)
    without(missing)
    if not made[-1].is_sink_stage():
        made.append(JsonlWriter(str(tmp_path / "out")))
    with pytest.raises(MissingDependency, match=rf"pip install 'gristmill\[{extra}\]'"):
        Pipeline("p", stages=made).plan(HERE)


@pytest.mark.slow
def test_importing_sources_and_formats_loads_none_of_their_packages():
    program = f"import sys, {', '.join(MODULES)}; print([name for name in {NEW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
