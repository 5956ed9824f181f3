"""`WikipediaDownloadExtractStage`: Wikipedia in a language, from its servers to documents."""

from collections.abc import Mapping
from typing import Any

from gristmill.stages.text.download.base import DocumentDownloadExtractStage
from gristmill.stages.text.download.wikipedia.download import WikipediaDownloader
from gristmill.stages.text.download.wikipedia.extract import Keep, Parser, WikipediaExtractor
from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator
from gristmill.stages.text.download.wikipedia.url_generation import WikipediaUrlGenerator
from gristmill.storage.transfer import TransferOptions, transfer_options


class WikipediaDownloadExtractStage(DocumentDownloadExtractStage):
    """Fetch a dump of Wikipedia and make a document of each article.

    `dump_date`       YYYYMMDD; the newest dump that is finished, if it is not given
    `url_limit`       files, of which a large Wikipedia has dozens; `record_limit` articles of each file
    `parser`, `math`, `tables`, `extra`   as those of `WikipediaDumpReader`
    `transfer`        how files are fetched and where they may stay
    `verbose`, `log_frequency`            accepted without effect: progress is shown by the run
    """

    def __init__(
        self,
        language: str = "en",
        download_dir: str = "./wikipedia_downloads",
        dump_date: str | None = None,
        wikidumps_index_prefix: str = "https://dumps.wikimedia.org",
        verbose: bool = False,  # noqa: FBT001, FBT002  # as users know it
        url_limit: int | None = None,
        record_limit: int | None = None,
        add_filename_column: bool | str = True,  # noqa: FBT001, FBT002
        log_frequency: int = 1000,
        *,
        parser: Parser = "scanner",
        math: Keep = "keep",
        tables: Keep = "drop",
        extra: tuple[str, ...] = (),
        transfer: TransferOptions | Mapping[str, Any] = TransferOptions(),  # noqa: B008  # frozen
    ) -> None:
        transfer = transfer_options(transfer)
        self.language = language
        self.download_dir = download_dir
        self.dump_date = dump_date
        self.wikidumps_index_prefix = wikidumps_index_prefix
        self.verbose = verbose
        self.log_frequency = log_frequency
        chosen: dict[str, Any] = {"parser": parser, "math": math, "tables": tables, "extra": tuple(extra)}
        super().__init__(
            url_generator=WikipediaUrlGenerator(language, dump_date, wikidumps_index_prefix, transfer=transfer),
            downloader=WikipediaDownloader(download_dir, verbose, transfer=transfer),
            iterator=WikipediaIterator(language, log_frequency, extra=extra),
            extractor=WikipediaExtractor(language, **chosen),
            url_limit=url_limit,
            record_limit=record_limit,
            add_filename_column=add_filename_column,
        )
        self.name = f"wikipedia_{language}_pipeline"

    def get_description(self) -> str:
        return f"Wikipedia {self.language} pipeline for dump {self.dump_date or 'latest'}"
