"""`DocumentDownloadExtractStage`: from a list of URLs to documents, as one stage."""

from dataclasses import dataclass
from typing import Any

from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.text.download.base.download import DocumentDownloader, DocumentDownloadStage
from gristmill.stages.text.download.base.extract import DocumentExtractor
from gristmill.stages.text.download.base.iterator import AnyStages, DocumentIterateExtractStage, DocumentIterator
from gristmill.stages.text.download.base.url_generation import URLGenerationStage, URLGenerator
from gristmill.tasks import DocumentBatch, EmptyTask


@dataclass(eq=False)
class DocumentDownloadExtractStage(CompositeStage[EmptyTask, DocumentBatch]):
    """List URLs, fetch the files, read their records, and make documents of them.

    `url_limit` keeps the first URLs, `record_limit` the first records of each file. The other parameters are those of
    `DocumentIterateExtractStage`.
    """

    url_generator: URLGenerator
    downloader: DocumentDownloader
    iterator: DocumentIterator
    extractor: DocumentExtractor | None = None
    url_limit: int | None = None
    record_limit: int | None = None
    add_filename_column: bool | str = True
    extractor_max_calls_per_worker: int | None = None

    def __post_init__(self) -> None:
        generator, downloader = type(self.url_generator).__name__.lower(), type(self.downloader).__name__.lower()
        self.name = f"document_download_extract_{generator}_{downloader}_composite"
        _ = self.stages  # what is wrong with the parameters is reported here, not when the pipeline runs

    @property
    def stages(self) -> list[ProcessingStage[Any, Any]]:
        """The stages it stands for."""
        return [
            URLGenerationStage(self.url_generator, self.url_limit),
            DocumentDownloadStage(self.downloader),
            DocumentIterateExtractStage(
                self.iterator,
                self.extractor,
                record_limit=self.record_limit,
                add_filename_column=self.add_filename_column,
                max_calls_per_worker=self.extractor_max_calls_per_worker,
            ),
        ]

    def decompose(self) -> AnyStages:
        return self.stages
