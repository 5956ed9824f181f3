"""What a source is made of: which URLs, how a file is fetched, what is in it, and what becomes of a record."""

from gristmill.stages.text.download.base.download import DocumentDownloader, DocumentDownloadStage
from gristmill.stages.text.download.base.extract import DocumentExtractor, Dropped
from gristmill.stages.text.download.base.iterator import DocumentIterateExtractStage, DocumentIterator, LeftOut
from gristmill.stages.text.download.base.stage import DocumentDownloadExtractStage
from gristmill.stages.text.download.base.url_generation import URLGenerationStage, URLGenerator

__all__ = [
    "DocumentDownloadExtractStage",
    "DocumentDownloadStage",
    "DocumentDownloader",
    "DocumentExtractor",
    "DocumentIterateExtractStage",
    "DocumentIterator",
    "Dropped",
    "LeftOut",
    "URLGenerationStage",
    "URLGenerator",
]
