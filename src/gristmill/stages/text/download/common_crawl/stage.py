"""`CommonCrawlDownloadExtractStage`: crawls of the web, from their lists of files to documents."""

from collections.abc import Mapping
from typing import Any, Literal

from gristmill.errors import ConfigError, nearest
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.download.base import DocumentDownloadExtractStage, DocumentIterateExtractStage
from gristmill.stages.text.download.common_crawl.download import CommonCrawlWARCDownloader
from gristmill.stages.text.download.common_crawl.extract import CommonCrawlHTMLExtractor
from gristmill.stages.text.download.common_crawl.url_generation import (
    MainCommonCrawlUrlGenerator,
    NewsCommonCrawlUrlGenerator,
)
from gristmill.stages.text.download.common_crawl.warc_iterator import (
    DETAILS,
    CommonCrawlWarcIterator,
    CommonCrawlWetIterator,
)
from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm
from gristmill.storage.transfer import TransferOptions, transfer_options

DATA_PREFIX = "https://data.commoncrawl.org"
INDEX_PREFIX = "https://index.commoncrawl.org"
_CRAWLS = ("main", "news")
_KINDS = ("warc", "wet")
_USUAL = TransferOptions()


class CommonCrawlDownloadExtractStage(DocumentDownloadExtractStage):
    """Fetch the files of crawls and make a document of each page.

    `start_snapshot`, `end_snapshot`   both included: "2025-18" (year and week) for the main crawls, "2025-05" (year and
                        month) for news
    `download_dir`      where files are stored; None reads them where they are, in ranges, and stores nothing
    `html_extraction`   "justext", "resiliparse", "trafilatura", "cascade", or an algorithm; jusText if none is given.
                        `html_extraction_kwargs` and `stop_lists` are for it
    `use_aws_to_download`   fetch from S3, with your keys
    `url_limit`, `record_limit`, `add_filename_column`   as those of `DocumentDownloadExtractStage`
    `kind`              "wet" takes the texts Common Crawl has made of the pages, in place of the pages
    `details`           more columns: status, types, date, and the place of the page in its file
    `transfer`          how files are fetched and where they may stay
    `data_prefix`, `index_prefix`   a server other than Common Crawl's
    `verbose`, `extractor_max_calls_per_worker`   accepted without effect: progress is shown by the run, and
                        memory is given back after each page
    """

    def __init__(
        self,
        start_snapshot: str,
        end_snapshot: str,
        download_dir: str | None,
        crawl_type: Literal["main", "news"] = "main",
        html_extraction: HTMLExtractorAlgorithm | str | None = None,
        html_extraction_kwargs: Mapping[str, Any] | None = None,
        stop_lists: Mapping[str, frozenset[str]] | None = None,
        use_aws_to_download: bool = False,  # noqa: FBT001, FBT002  # as users know it
        verbose: bool = False,  # noqa: FBT001, FBT002
        url_limit: int | None = None,
        record_limit: int | None = None,
        add_filename_column: bool | str = True,  # noqa: FBT001, FBT002
        extractor_max_calls_per_worker: int | None = None,
        *,
        kind: Literal["warc", "wet"] = "warc",
        details: bool = False,
        transfer: TransferOptions | Mapping[str, Any] = _USUAL,
        data_prefix: str | None = None,
        index_prefix: str | None = None,
    ) -> None:
        who = type(self).__name__
        for option, value, known in (("crawl_type", crawl_type, _CRAWLS), ("kind", kind, _KINDS)):
            if value not in known:
                close = nearest(str(value), known)
                raise ConfigError(f"{who}: expected {option} to be one of {known}; got {value!r}{close}")
        if kind == "wet" and (html_extraction is not None or details):
            raise ConfigError(f"{who}: expected no html_extraction and no details for texts (kind='wet'); got some")
        transfer = transfer_options(transfer)
        self.start_snapshot, self.end_snapshot, self.crawl_type = start_snapshot, end_snapshot, crawl_type
        self.details = details
        listed: dict[str, Any] = {"kind": kind, "transfer": transfer, "data_prefix": data_prefix or DATA_PREFIX}
        if crawl_type == "main":
            listed["index_prefix"] = index_prefix or INDEX_PREFIX
        generator = MainCommonCrawlUrlGenerator if crawl_type == "main" else NewsCommonCrawlUrlGenerator
        is_warc = kind == "warc"
        super().__init__(
            url_generator=generator(start_snapshot, end_snapshot, limit=url_limit, **listed),
            downloader=CommonCrawlWARCDownloader(download_dir, use_aws_to_download, verbose, transfer=transfer),
            iterator=CommonCrawlWarcIterator(details=True, transfer=transfer)
            if is_warc
            else CommonCrawlWetIterator(transfer=transfer),
            extractor=CommonCrawlHTMLExtractor(html_extraction, html_extraction_kwargs, stop_lists)
            if is_warc
            else None,
            url_limit=url_limit,
            record_limit=record_limit,
            add_filename_column=add_filename_column,
            extractor_max_calls_per_worker=extractor_max_calls_per_worker,
        )
        self.name = f"common_crawl_{crawl_type}_pipeline"

    @property
    def stages(self) -> list[ProcessingStage[Any, Any]]:
        *before, reading = super().stages
        if self.details and isinstance(reading, DocumentIterateExtractStage):
            reading.keep_columns = DETAILS
        return [*before, reading]

    def get_description(self) -> str:
        return f"Common Crawl {self.crawl_type} pipeline: {self.start_snapshot} to {self.end_snapshot}"
