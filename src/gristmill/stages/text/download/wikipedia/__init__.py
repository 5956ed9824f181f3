"""Wikipedia: dumps to articles."""

from gristmill.stages.text.download.wikipedia.reader import WikipediaDumpReader
from gristmill.stages.text.download.wikipedia.stage import WikipediaDownloadExtractStage

__all__ = ["WikipediaDownloadExtractStage", "WikipediaDumpReader"]
