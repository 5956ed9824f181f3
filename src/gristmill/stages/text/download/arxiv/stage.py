"""`ArxivDownloadExtractStage`: papers of arXiv, from its bucket to documents."""

from collections.abc import Mapping
from typing import Any

from gristmill.stages.text.download.arxiv.download import ArxivDownloader
from gristmill.stages.text.download.arxiv.extract import ArxivExtractor
from gristmill.stages.text.download.arxiv.iterator import ArxivIterator
from gristmill.stages.text.download.arxiv.url_generation import ArxivUrlGenerator
from gristmill.stages.text.download.base import DocumentDownloadExtractStage
from gristmill.storage.transfer import TransferOptions, transfer_options


class ArxivDownloadExtractStage(DocumentDownloadExtractStage):
    """Fetch archives of arXiv and make a document of each paper that has TeX.

    `requester_pays`  True, to be set by whoever pays for the download: nothing is fetched without it
    `compat`          True gives NeMo Curator's text, which is less: docs/guide/arxiv.md
    `url_limit`       archives, of about 500 MB each; `record_limit` papers of each
    `transfer`        how files are fetched and where they may stay
    `verbose`, `log_frequency`  accepted without effect: progress is shown by the run
    """

    def __init__(
        self,
        download_dir: str = "./arxiv_downloads",
        url_limit: int | None = None,
        record_limit: int | None = None,
        add_filename_column: bool | str = True,  # noqa: FBT001, FBT002  # as users know it
        log_frequency: int = 1000,
        verbose: bool = False,  # noqa: FBT001, FBT002
        *,
        requester_pays: bool = False,
        compat: bool = False,
        transfer: TransferOptions | Mapping[str, Any] = TransferOptions(),  # noqa: B008  # frozen
    ) -> None:
        transfer = transfer_options(transfer)
        super().__init__(
            url_generator=ArxivUrlGenerator(requester_pays=requester_pays, limit=url_limit, transfer=transfer),
            downloader=ArxivDownloader(download_dir, verbose, requester_pays=requester_pays, transfer=transfer),
            iterator=ArxivIterator(log_frequency, compat=compat),
            extractor=ArxivExtractor(compat=compat),
            url_limit=url_limit,
            record_limit=record_limit,
            add_filename_column=add_filename_column,
        )
        self.name = "arxiv_pipeline"

    def get_description(self) -> str:
        return "arXiv pipeline: archives of papers to text"
