"""arXiv: archives of TeX to papers."""

from gristmill.stages.text.download.arxiv.reader import ArxivArchiveReader
from gristmill.stages.text.download.arxiv.stage import ArxivDownloadExtractStage

__all__ = ["ArxivArchiveReader", "ArxivDownloadExtractStage"]
