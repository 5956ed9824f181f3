"""A script for Wikipedia written for another package runs when the package name in it is changed."""

import inspect
import json

import pytest
from tests.wiki_dumps import dump_server_files, page, streams

from gristmill.testing.file_server import MisbehavingFileServer

DUMP = b"".join(streams([page(k, f"Artículo '''{k}'''.\n[[Archivo:x.png]]") for k in range(9)]))


@pytest.mark.slow
def test_articles_of_the_latest_dump_in_a_language(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = dump_server_files("es", dumps={"20240101": {"eswiki-20240101-multistream.xml.bz2": DUMP}})
    with MisbehavingFileServer(files) as server:
        from gristmill.pipeline import Pipeline
        from gristmill.stages.text.download import WikipediaDownloadExtractStage
        from gristmill.stages.text.io.writer import JsonlWriter

        pipeline = Pipeline(name="wikipedia_pipeline", description="Download and process Wikipedia dumps")
        wikipedia_stage = WikipediaDownloadExtractStage(
            language="es",
            download_dir="./wikipedia_downloads",
            dump_date=None,
            wikidumps_index_prefix=server.url,
            url_limit=5,
            record_limit=5,
            verbose=True,
            log_frequency=100,
        )
        pipeline.add_stage(wikipedia_stage)
        pipeline.add_stage(JsonlWriter(path="./wikipedia_output"))
        pipeline.run()

    [output] = (tmp_path / "wikipedia_output").glob("*.jsonl")
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [d["text"] for d in found] == [f"Artículo {k}." for k in range(5)]
    assert set(found[0]) == {"text", "title", "id", "url", "language", "source_id", "file_name"}


# Name, and its parameters with their defaults, in order; what stands behind "*" is our own.
SIGNATURES = {
    "WikipediaDownloadExtractStage": """language='en', download_dir='./wikipedia_downloads', dump_date=None,
        wikidumps_index_prefix='https://dumps.wikimedia.org', verbose=False, url_limit=None, record_limit=None,
        add_filename_column=True, log_frequency=1000""",
    "WikipediaUrlGenerator": "language='en', dump_date=None, wikidumps_index_prefix='https://dumps.wikimedia.org'",
    "WikipediaDownloader": "download_dir, verbose=False",
    "WikipediaIterator": "language='en', log_frequency=1000",
    "WikipediaExtractor": "language='en'",
}
MODULES = {
    "WikipediaDownloadExtractStage": "stage",
    "WikipediaUrlGenerator": "url_generation",
    "WikipediaDownloader": "download",
    "WikipediaIterator": "iterator",
    "WikipediaExtractor": "extract",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_and_defaults_are_those_users_know(name):
    import importlib

    module = importlib.import_module(f"gristmill.stages.text.download.wikipedia.{MODULES[name]}")
    parameters = inspect.signature(getattr(module, name)).parameters.values()
    positional = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    found = [each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in positional]
    assert found == [part.strip() for part in SIGNATURES[name].split(",")]


def test_what_gristmill_adds_has_these_defaults():
    from gristmill.stages.text.download import WikipediaDownloadExtractStage

    parameters = inspect.signature(WikipediaDownloadExtractStage).parameters
    own = {name: each.default for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    assert (own["parser"], own["math"], own["tables"]) == ("scanner", "keep", "drop")


def test_columns_are_those_users_know():
    from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor
    from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator

    assert WikipediaIterator().output_columns() == ["title", "id", "url", "language", "source_id", "raw_content"]
    assert WikipediaExtractor().output_columns() == ["text", "title", "id", "url", "language", "source_id"]
