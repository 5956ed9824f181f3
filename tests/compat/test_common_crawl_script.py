"""Scripts for Common Crawl and for a source of one's own, as people write them; only the package name is changed."""

import json

import pytest
from tests.crawl_server import crawl_server

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from gristmill.storage import rate

    (tmp_path / "rates").mkdir()
    monkeypatch.setattr(rate, "_directory", lambda: tmp_path / "rates")
    return tmp_path


def documents(directory):
    return [json.loads(line) for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_a_script_for_common_crawl(work, monkeypatch):
    from gristmill.stages.text.download.common_crawl import stage as where

    with crawl_server(1, 12) as server:
        monkeypatch.setattr(where, "DATA_PREFIX", server.url)
        monkeypatch.setattr(where, "INDEX_PREFIX", server.url)

        # The script.
        from gristmill.pipeline import Pipeline
        from gristmill.stages.text.download import CommonCrawlDownloadExtractStage
        from gristmill.stages.text.io.writer import JsonlWriter

        pipeline = Pipeline(name="common_crawl_pipeline", description="Download and process Common Crawl data")
        cc_stage = CommonCrawlDownloadExtractStage(
            start_snapshot="2025-18",
            end_snapshot="2025-21",
            download_dir="./cc_downloads",
            crawl_type="main",
            html_extraction="justext",
            use_aws_to_download=False,
            verbose=True,
            url_limit=1,
            record_limit=10,
        )
        pipeline.add_stage(cc_stage)
        pipeline.add_stage(JsonlWriter(path="./cc_output"))
        pipeline.run()

    found = documents(work / "cc_output")
    assert len(found) == 10
    assert set(found[0]) == {"url", "warc_id", "source_id", "language", "text", "file_name"}
    assert "The river was still high" in "".join(document["text"] for document in found)
    assert next((work / "cc_downloads").glob("*.warc.gz"))


def test_a_script_with_parts_put_together_by_hand(work):
    with crawl_server(1, 8) as server:
        from gristmill.pipeline import Pipeline
        from gristmill.stages.text.download.base.download import DocumentDownloadStage
        from gristmill.stages.text.download.base.iterator import DocumentIterateExtractStage
        from gristmill.stages.text.download.base.url_generation import URLGenerationStage
        from gristmill.stages.text.download.common_crawl.download import CommonCrawlWARCDownloader
        from gristmill.stages.text.download.common_crawl.extract import CommonCrawlHTMLExtractor
        from gristmill.stages.text.download.common_crawl.url_generation import MainCommonCrawlUrlGenerator
        from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator
        from gristmill.stages.text.download.html_extractors import ResiliparseExtractor
        from gristmill.stages.text.io.writer import JsonlWriter

        generator = MainCommonCrawlUrlGenerator(
            start_snapshot_str="2025-18", end_snapshot_str="2025-21", data_prefix=server.url, limit=2,
            index_prefix=server.url,
        )  # fmt: skip
        extractor = CommonCrawlHTMLExtractor(algorithm=ResiliparseExtractor(required_stopword_density=0.1))
        pipeline = Pipeline(
            name="parts",
            stages=[
                URLGenerationStage(url_generator=generator, limit=1),
                DocumentDownloadStage(downloader=CommonCrawlWARCDownloader("./downloads")),
                DocumentIterateExtractStage(iterator=CommonCrawlWarcIterator(), extractor=extractor),
                JsonlWriter("./out"),
            ],
        )
        pipeline.run()

    assert len(documents(work / "out")) == 8


def test_a_script_for_a_source_of_ones_own(work):  # noqa: C901  # it is a whole script
    (work / "remote").mkdir()
    for number in range(3):
        lines = [json.dumps({"title": f"t{number}-{n}", "body": "word " * n}) for n in range(6)]
        (work / "remote" / f"{number}.json").write_text("\n".join(lines))

    # The script: a generator, a downloader, an iterator and an extractor.
    import os
    import shutil
    from collections.abc import Iterator
    from dataclasses import dataclass
    from typing import Any

    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.download import (
        DocumentDownloader,
        DocumentDownloadExtractStage,
        DocumentExtractor,
        DocumentIterator,
        URLGenerator,
    )
    from gristmill.stages.text.io.writer import JsonlWriter

    @dataclass
    class CustomURLGenerator(URLGenerator):
        directory: str

        def generate_urls(self) -> list[str]:
            return [os.path.join(self.directory, name) for name in sorted(os.listdir(self.directory))]  # noqa: PTH118, PTH208

    class CustomDownloader(DocumentDownloader):
        def __init__(self, download_dir: str):
            super().__init__(download_dir=download_dir)

        def _get_output_filename(self, url: str) -> str:
            return os.path.basename(url)  # noqa: PTH119

        def _download_to_path(self, url: str, path: str) -> tuple[bool, str | None]:
            try:
                shutil.copyfile(url, path)
            except OSError as e:
                return False, str(e)
            return True, None

        def num_workers_per_node(self) -> int:
            return 2

    class CustomIterator(DocumentIterator):
        def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
            with open(file_path) as f:  # noqa: PTH123
                for line in f:
                    record = json.loads(line)
                    yield {"title": record["title"], "raw_content": record["body"]}

        def output_columns(self) -> list[str]:
            return ["title", "raw_content"]

    class CustomExtractor(DocumentExtractor):
        def extract(self, record: dict[str, str]) -> dict[str, Any] | None:
            text = record["raw_content"].strip()
            if not text:
                return None
            return {"title": record["title"], "text": text}

        def input_columns(self) -> list[str]:
            return ["title", "raw_content"]

        def output_columns(self) -> list[str]:
            return ["title", "text"]

    class CustomDownloadExtractStage(DocumentDownloadExtractStage):
        def __init__(self, directory: str, download_dir: str, url_limit: int | None = None):
            self.url_generator = CustomURLGenerator(directory)
            self.downloader = CustomDownloader(download_dir)
            self.iterator = CustomIterator()
            self.extractor = CustomExtractor()
            super().__init__(
                url_generator=self.url_generator,
                downloader=self.downloader,
                iterator=self.iterator,
                extractor=self.extractor,
                url_limit=url_limit,
                add_filename_column="source_file",
            )
            self.name = "custom_pipeline"

        def decompose(self):
            return self.stages

    pipeline = Pipeline(name="custom_data_processing")
    pipeline.add_stage(CustomDownloadExtractStage("remote", "./downloads", url_limit=2))
    pipeline.add_stage(JsonlWriter("./out"))
    result = pipeline.run()

    found = documents(work / "out")
    assert [d["title"] for d in found] == [f"t{f}-{n}" for f in range(2) for n in range(1, 6)]
    assert found[0] == {"title": "t0-1", "text": "word", "source_file": "0.json"}
    assert result.dropped_total == 2
