"""A script for arXiv written for another package runs when the package name in it is changed and the bill accepted."""

import inspect
import json

import pytest
from tests.arxiv_archives import PAPER, TEXT, manifest, single, tar_of

from gristmill.testing.file_server import MisbehavingFileServer

ARCHIVES = {"arXiv_src_0704_001.tar": tar_of({f"0704/0704.000{k}.gz": single(PAPER) for k in range(3)})}


@pytest.mark.slow
def test_papers_of_the_first_archives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {f"arxiv/src/{name}": content for name, content in ARCHIVES.items()}
    with MisbehavingFileServer(files | {"arxiv/src/arXiv_src_manifest.xml": manifest(ARCHIVES)}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        from gristmill.pipeline import Pipeline
        from gristmill.stages.text.download import ArxivDownloadExtractStage
        from gristmill.stages.text.io.writer import JsonlWriter

        pipeline = Pipeline(name="arxiv_pipeline", description="Download and process arXiv LaTeX sources")
        arxiv_stage = ArxivDownloadExtractStage(
            download_dir="./arxiv_downloads",
            url_limit=5,
            record_limit=2,
            add_filename_column=True,
            verbose=True,
            requester_pays=True,  # the one word that is new: somebody pays for what is fetched
        )
        pipeline.add_stage(arxiv_stage)
        pipeline.add_stage(JsonlWriter(path="./arxiv_output"))
        pipeline.run()

    [output] = (tmp_path / "arxiv_output").glob("*.jsonl")
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [d["id"] for d in found] == ["0704.0000", "0704.0001"]
    assert found[0]["text"] == TEXT.partition(" \\section{Proof}")[0]


SIGNATURES = {
    "stage.ArxivDownloadExtractStage": """download_dir='./arxiv_downloads', url_limit=None, record_limit=None,
        add_filename_column=True, log_frequency=1000, verbose=False""",
    "download.ArxivDownloader": "download_dir, verbose=False",
    "iterator.ArxivIterator": "log_frequency=1000",
    "extract.ArxivExtractor": "",
    "url_generation.ArxivUrlGenerator": "",
}


@pytest.mark.parametrize("path", SIGNATURES)
def test_parameters_and_defaults_are_those_users_know(path):
    import importlib

    module, _, name = path.partition(".")
    found = getattr(importlib.import_module(f"gristmill.stages.text.download.arxiv.{module}"), name)
    parameters = inspect.signature(found).parameters.values()
    positional = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    shown = [each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in positional]
    assert shown == [part.strip() for part in SIGNATURES[path].split(",") if part.strip()]


def test_columns_are_those_users_know_and_more():
    from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
    from gristmill.stages.text.download.arxiv.iterator import ArxivIterator

    assert ArxivIterator().output_columns() == ["id", "source_id", "content"]
    assert ArxivExtractor(compat=True).output_columns() == ["text"]
    assert ArxivExtractor().output_columns() == ["text", "id", "source_id", "title", "abstract"]
