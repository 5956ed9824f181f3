"""`WarcReader`: the pages or texts of WARC files you already have."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from gristmill.errors import ConfigError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.io.files import check_kwargs, storage_options
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.download.base.extract import DocumentExtractor
from gristmill.stages.text.download.base.iterator import AnyStages, DocumentIterateExtractStage, _IterateFiles
from gristmill.stages.text.download.common_crawl.warc_iterator import (
    DETAILS,
    CommonCrawlWarcIterator,
    CommonCrawlWetIterator,
)
from gristmill.tasks import DocumentBatch, EmptyTask

Kind = Literal["warc", "wet"]
_KINDS = ("warc", "wet")
_EXTENSIONS = {"warc": [".warc"], "wet": [".wet"]}


@dataclass(eq=False)
class WarcReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read WARC files: each response is a document with `url`, `warc_id`, `source_id` and `content`, which is bytes.

    `kind="wet"` reads the texts Common Crawl made of them: `url`, `warc_id`, `source_id`, `language`, `text`. A file
    with a gzip member for each record, as Common Crawl writes them, is divided into parts of `blocksize` (32 MiB),
    wherever that cuts.

    `extractor`             makes documents of the responses, each on its own: CommonCrawlHTMLExtractor("resiliparse")
    `details`               more columns for each response: status, types, date, and its place in the file
    `record_limit`          responses that are taken from each file
    `add_filename_column`   True adds the name of the file as `file_name`; a text is the name of the column
    `read_kwargs`           `storage_options`, for files on a store
    """

    file_paths: str | list[str]
    blocksize: int | str | None = None
    kind: Kind = "warc"
    _: KW_ONLY
    extractor: DocumentExtractor | None = None
    details: bool = False
    record_limit: int | None = None
    add_filename_column: bool | str = False
    read_kwargs: Mapping[str, object] | None = None
    file_extensions: list[str] | None = None

    def __post_init__(self) -> None:
        self.name = "warc_reader"
        check_kwargs(self.name, "read_kwargs", self.read_kwargs, {"storage_options"})
        if self.kind not in _KINDS:
            close = nearest(str(self.kind), _KINDS)
            raise ConfigError(f"{self.name}: expected kind to be one of {_KINDS}; got {self.kind!r}{close}")
        if self.kind == "wet" and (self.extractor is not None or self.details):
            raise ConfigError(f"{self.name}: expected no extractor and no details for texts (kind='wet'); got some")
        _ = self.decompose()  # what is wrong with the parameters is reported here, not when the pipeline runs

    def decompose(self) -> AnyStages:
        options = storage_options(self.read_kwargs)
        iterator: CommonCrawlWarcIterator | CommonCrawlWetIterator = CommonCrawlWetIterator(options)
        if self.kind == "warc":
            iterator = CommonCrawlWarcIterator(options, details=self.details or self.extractor is not None)
        extensions = _EXTENSIONS[self.kind] if self.file_extensions is None else self.file_extensions
        listing = FilePartitioningStage(
            self.file_paths,
            blocksize=self.blocksize,
            file_extensions=extensions,
            storage_options=options,
            split="none" if self.record_limit else iterator.split,
        )
        reading = DocumentIterateExtractStage(
            iterator,
            self.extractor,
            record_limit=self.record_limit,
            add_filename_column=self.add_filename_column,
            keep_columns=DETAILS if self.details and self.extractor is not None else (),
        )
        stages: list[ProcessingStage[Any, Any]] = [
            stage.reading(listing) if isinstance(stage, _IterateFiles) else stage for stage in reading.decompose()[1:]
        ]
        stages[0] = stages[0].with_(name=self.name)
        return [listing, *stages]
