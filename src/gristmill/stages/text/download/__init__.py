"""Sources that have to be fetched first: what users subclass for their own, and those that come with gristmill."""

from gristmill.stages.text.download.arxiv import ArxivArchiveReader, ArxivDownloadExtractStage
from gristmill.stages.text.download.base import (
    DocumentDownloader,
    DocumentDownloadExtractStage,
    DocumentExtractor,
    DocumentIterator,
    Dropped,
    LeftOut,
    URLGenerator,
)
from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.stages.text.download.common_crawl.download import CommonCrawlWARCReader
from gristmill.stages.text.download.common_crawl.index import CommonCrawlIndexReader
from gristmill.stages.text.download.common_crawl.stage import CommonCrawlDownloadExtractStage
from gristmill.stages.text.download.common_crawl.url_lookup import CommonCrawlUrlLookup
from gristmill.stages.text.download.common_crawl.warc_reader import WarcReader
from gristmill.stages.text.download.wikipedia import WikipediaDownloadExtractStage, WikipediaDumpReader
from gristmill.storage.transfer import RemoteFile, TransferOptions

__all__ = [
    "ArxivArchiveReader",
    "ArxivDownloadExtractStage",
    "CommonCrawlDownloadExtractStage",
    "CommonCrawlIndexReader",
    "CommonCrawlUrlLookup",
    "CommonCrawlWARCReader",
    "DocumentDownloadExtractStage",
    "DocumentDownloader",
    "DocumentExtractor",
    "DocumentIterator",
    "Dropped",
    "LeftOut",
    "RemoteFile",
    "TransferDownloader",
    "TransferOptions",
    "URLGenerator",
    "WarcReader",
    "WikipediaDownloadExtractStage",
    "WikipediaDumpReader",
]
