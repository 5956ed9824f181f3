"""Common Crawl: pages of the web, and their text."""

from gristmill.stages.text.download.common_crawl.extract import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.common_crawl.stage import CommonCrawlDownloadExtractStage

__all__ = ["CommonCrawlDownloadExtractStage", "CommonCrawlHTMLExtractor"]
