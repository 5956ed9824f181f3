"""`WikipediaDumpReader`: articles of dumps you already have, one file on all cores."""

from dataclasses import dataclass, field
from typing import Any

from gristmill.errors import ConfigError, GristmillError, NoInputError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.io.partitions import FilePartitions
from gristmill.stages.text.download.base import DocumentIterateExtractStage
from gristmill.stages.text.download.wikipedia.dump import read_site
from gristmill.stages.text.download.wikipedia.extract import Keep, Parser, WikipediaExtractor
from gristmill.stages.text.download.wikipedia.iterator import WikipediaIterator
from gristmill.stages.text.download.wikipedia.site_names import check_language
from gristmill.storage.open_read import read_start
from gristmill.storage.paths import FileList
from gristmill.tasks import DocumentBatch, EmptyTask, Task

_SAMPLE_BYTES = 1 << 20
_SOME_FILES = 8
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(eq=False)
class WikipediaDumpReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read dumps of Wikipedia: .xml.bz2 as Wikimedia publishes them, .xml, .xml.gz or .xml.zst.

    Documents have text, title, id, url, language and source_id. Files of bzip2 streams, and those that are not
    compressed, are split at `blocksize` (16 MiB), wherever that is. Pages that are not
    articles are dropped, each with its reason.

    `language`   of the dumps; taken from them if it is not given
    `parser`     "scanner", or "mwparserfromhell" for the text NeMo Curator gives (extra `wikipedia`)
    `math`       "keep" writes formulas between dollars, "drop" leaves them out; `tables` likewise, as lines of cells.
                 Both are for the scanner
    `extra`      columns beside those: "revision_id", "timestamp"
    """

    file_paths: str | list[str]
    blocksize: int | str | None = None
    language: str | None = None
    record_limit: int | None = None
    add_filename_column: bool | str = True
    parser: Parser = field(default="scanner", kw_only=True)
    math: Keep = field(default="keep", kw_only=True)
    tables: Keep = field(default="drop", kw_only=True)
    extra: tuple[str, ...] = field(default=(), kw_only=True)
    limits: IngestLimits = field(default=IngestLimits(), kw_only=True)  # frozen
    name: str = field(default="wikipedia_dump_reader", kw_only=True)

    def __post_init__(self) -> None:
        if self.language is not None:
            check_language(self.language, who=self.name)
        self.decompose()  # what is wrong with the parameters is reported here, not when the pipeline runs

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        extra = tuple(self.extra)
        iterator = WikipediaIterator(self.language, extra=extra, limits=self.limits)
        chosen: dict[str, Any] = {"parser": self.parser, "math": self.math, "tables": self.tables}
        extractor = WikipediaExtractor(self.language, extra=extra, limits=self.limits, **chosen)
        reading = DocumentIterateExtractStage(
            iterator, extractor, record_limit=self.record_limit, add_filename_column=self.add_filename_column
        )
        blocksize = WikipediaIterator.block_bytes if self.blocksize is None else self.blocksize
        return [_ListDumps(self.file_paths, blocksize=blocksize, language=self.language), *reading.decompose()]  # type: ignore[list-item]


@dataclass(eq=False)
class _ListDumps(FilePartitioningStage):
    """List dumps, and look into some of them before anything starts."""

    language: str | None = field(default=None, kw_only=True)
    name: str = field(default="list_dumps", kw_only=True)

    def partitions(self) -> FilePartitions:
        found = super().partitions()
        for path in self.some_files():
            self._check(path)
        return found

    def _files(self) -> FileList:
        """The files that have .xml in their names: …multistream1.xml-p1p41242.bz2, and not the index beside it."""
        listed = super()._files()
        dumps = FileList()
        for file in listed:
            if ".xml" in file.path.rpartition("/")[2]:
                dumps.append(file.path, file.size, file.version)
        if not len(dumps):
            got = [path.rpartition("/")[2] for path in listed.paths[:3]]
            raise NoInputError(f"{self.name}: expected dumps, with .xml in their names; got only {', '.join(got)}")
        self.__dict__["_some_files"] = list(dumps.paths[:: -(-len(dumps) // _SOME_FILES)])
        return dumps

    def _check(self, path: str) -> None:
        try:
            sample = read_start(path, _SAMPLE_BYTES)
        except GristmillError:
            return  # damaged: the run puts it on record
        site = read_site(sample)
        if site is None:
            looks = "text in UTF-16" if sample.startswith(_UTF16) else f"something that begins with {sample[:40]!r}"
            raise ConfigError(f"{self.name}: expected a dump of MediaWiki in {path!r}; got {looks}")
        if self.language and site.language and site.language != self.language:
            raise ConfigError(
                f"{self.name}: expected a dump in the language {self.language!r}; {path!r} is of {site.database}"
            )
