"""`CommonCrawlIndexReader`: rows of the columnar index of Common Crawl; only what is asked for is fetched.

The index of a crawl is about 300 Parquet files, 200 to 300 GB together, roughly sorted by `url_surtkey`. A file is read
in ranges: its footer; then, of row groups whose statistics say that they may have such rows, the wanted columns.
Rows go straight into `CommonCrawlWARCReader`, which fetches the pages.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gristmill.errors import ConfigError, DownloadFailed, ReadError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.download.base.url_generation import URLGenerationStage, URLGenerator
from gristmill.stages.text.download.common_crawl.surt import host_key
from gristmill.storage import http
from gristmill.storage.file_system import is_url
from gristmill.storage.http_ranges import NotFetched, Piece, RangeFile, fetch_pieces
from gristmill.storage.open_read import InputFile
from gristmill.storage.transfer import RemoteFile, TransferOptions, fetch_text
from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask, FileSlice, Task

DATA_PREFIX = "https://data.commoncrawl.org"
COLUMNS = (
    *("url_surtkey", "url", "url_host_name", "url_host_tld", "url_host_2nd_last_part", "url_host_3rd_last_part"),
    *("url_host_4th_last_part", "url_host_5th_last_part", "url_host_registry_suffix", "url_host_registered_domain"),
    *("url_host_private_suffix", "url_host_private_domain", "url_host_name_reversed", "url_protocol", "url_port"),
    *("url_path", "url_query", "fetch_time", "fetch_status", "fetch_redirect", "content_digest", "content_mime_type"),
    *("content_mime_detected", "content_charset", "content_languages", "content_truncated", "warc_filename"),
    *("warc_record_offset", "warc_record_length", "warc_segment"),
)
USUAL_COLUMNS = (
    *("url", "content_languages", "content_mime_detected", "fetch_time"),
    *("warc_filename", "warc_record_offset", "warc_record_length"),
)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "contains")
BAD_INDEX = "bad_index"
KINDS = {BAD_INDEX: "A file of the index, or a row group of it, cannot be read."}
_CRAWL = re.compile(r"CC-MAIN-\d{4}-\d{2,4}$")
_FOOTER_BYTES = 1 << 16  # asked for at first
_MAX_ROWS = 65_536  # in a batch
_USUAL = TransferOptions()

Condition = tuple[str, str, Any]


@dataclass
class _IndexFiles(URLGenerator):
    """The files of the index of some crawls."""

    crawls: tuple[str, ...]
    subset: str = "warc"
    data_prefix: str = DATA_PREFIX
    transfer: TransferOptions = field(default_factory=TransferOptions)

    def generate_urls(self) -> list[str]:
        found: list[str] = []
        for crawl in self.crawls:
            url = f"{self.data_prefix.rstrip('/')}/crawl-data/{crawl}/cc-index-table.paths.gz"
            paths = fetch_text(url, self.transfer, who="CommonCrawlIndexReader").decode().split()
            wanted = [path for path in paths if f"/subset={self.subset}/" in path]
            if not wanted:
                raise ConfigError(
                    f"CommonCrawlIndexReader: expected files of subset {self.subset!r} in {url}; got none"
                )
            found += [f"{self.data_prefix.rstrip('/')}/{path.lstrip('/')}" for path in wanted]
        return found

    def list_files(self) -> list[RemoteFile]:
        return [RemoteFile(url) for url in self.generate_urls()]

    def check_ready(self) -> None:
        http.check_ready()


@dataclass(eq=False)
class CommonCrawlIndexReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read rows of the columnar index of crawls.

    `crawls`    "CC-MAIN-2025-21", or several
    `where`     conditions that all must hold: [("url_host_tld", "=", "ch"), ("content_languages", "contains", "deu")].
                Operators are = != < <= > >= in contains; row groups that cannot have such rows are not fetched
    `columns`   that are wanted; if not given, those that find a page again, its URL, language, type and time
    `path`      where the index is instead: a directory on a disk or a store; all its Parquet files are read
    `urls`      only rows of these URLs: only parts of the index that may have their hosts are fetched
    `subset`    "warc", "crawldiagnostics" or "robotstxt"
    """

    crawls: str | Sequence[str]
    where: Sequence[Condition] | None = None
    columns: Sequence[str] | None = None  # type: ignore[assignment]  # the parameter users know; see `columns` of a stage
    path: str | None = None
    _: KW_ONLY
    urls: Sequence[str] | None = None
    subset: str = "warc"
    data_prefix: str = DATA_PREFIX
    transfer: TransferOptions = field(default_factory=TransferOptions)

    def __post_init__(self) -> None:
        self.name = "common_crawl_index_reader"
        names = [self.crawls] if isinstance(self.crawls, str) else list(self.crawls)
        for name in names:
            if not _CRAWL.match(name):
                raise ConfigError(f"{self.name}: expected crawls such as 'CC-MAIN-2025-21'; got {name!r}")
        for given in self.where or ():
            condition: Sequence[object] = given  # by a user, who may have left something out
            if len(condition) != 3 or condition[1] not in OPERATORS:
                expected = f"conditions (column, operator, value) with an operator of {OPERATORS}"
                raise ConfigError(f"{self.name}: expected {expected}; got {condition!r}")
        for name in [*(self.columns or ()), *(condition[0] for condition in self.where or ())]:
            if self.path is None and name not in COLUMNS:
                raise ConfigError(f"{self.name}: expected columns of the index; got {name!r}{nearest(name, COLUMNS)}")

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        names = (self.crawls,) if isinstance(self.crawls, str) else tuple(self.crawls)
        listing: ProcessingStage[Any, Any]
        if self.path is None:
            listing = URLGenerationStage(_IndexFiles(names, self.subset, self.data_prefix, self.transfer))
        else:
            listing = FilePartitioningStage(self.path, file_extensions=[".parquet"])
        where = tuple((name, operator, value) for name, operator, value in self.where or ())
        wanted = tuple(USUAL_COLUMNS if self.columns is None else self.columns)
        reading = _ReadIndex(wanted, where, None if self.urls is None else tuple(self.urls), self.transfer)
        reading.name = self.name
        return [listing, reading]  # type: ignore[list-item]  # stages are invariant in their tasks


@dataclass(eq=False)
class _ReadIndex(ProcessingStage[FileGroupTask, DocumentBatch]):
    """Read what is wanted of files of the index, a row group at a time."""

    transient_errors: ClassVar[tuple[type[BaseException], ...]] = (DownloadFailed,)

    wanted: tuple[str, ...]
    where: tuple[Condition, ...] = ()
    urls: tuple[str, ...] | None = None
    transfer: TransferOptions = _USUAL
    name: str = field(default="common_crawl_index_reader", kw_only=True)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.wanted)

    def columns(self) -> list[str]:
        return list(self.wanted)

    def streams(self, task: FileGroupTask) -> bool:
        return True

    def process(self, task: FileGroupTask) -> Iterator[DocumentBatch]:
        for part in task.parts():
            try:
                for table in self._tables(part):
                    for start in range(0, table.num_rows, _MAX_ROWS):
                        yield DocumentBatch(task.dataset_name, table.slice(start, _MAX_ROWS))
            except (pa.ArrowException, ReadError) as error:
                if isinstance(error, DownloadFailed):
                    raise
                lost = Quarantined(f"{part.path}: expected Parquet; got {error}", BAD_INDEX, source=part.path)
                self.context.quarantine(_lost(lost, part))

    def _tables(self, part: FileSlice) -> Iterator[pa.Table]:
        with _opened(part, self.transfer) as file:
            sparse = _SparseFile(file)
            metadata = pq.read_metadata(sparse)
            groups = range(metadata.num_row_groups) if part.part is None else part.part
            needed = self._needed(metadata.schema.names, part.path)
            keys = None if self.urls is None else sorted({host_key(url) for url in self.urls})
            for number in groups:
                if self._may_have(metadata.row_group(number), keys):
                    yield self._rows(sparse, metadata, number, needed)

    def _needed(self, there: Sequence[str], path: str) -> list[str]:
        needed = dict.fromkeys([*self.wanted, *(name for name, _, _ in self.where), *(["url"] if self.urls else [])])
        for name in needed:
            if name not in there:
                raise ReadError(f"{path}: expected a column {name!r}; got {list(there)}{nearest(name, there)}")
        return list(needed)

    def _may_have(self, group: Any, keys: Sequence[str] | None) -> bool:
        bounds = {}
        for number in range(group.num_columns):
            column = group.column(number)
            statistics = column.statistics
            if statistics is not None and statistics.has_min_max:
                bounds[column.path_in_schema] = (statistics.min, statistics.max)
        if keys is not None and "url_surtkey" in bounds:
            low, high = bounds["url_surtkey"]
            # A key begins with that of its host: some key between `low` and `high` may begin with it.
            if not any(key <= high and low[: len(key)] <= key for key in keys):
                return False
        return all(_may_hold(bounds[name], operator, value) for name, operator, value in self.where if name in bounds)

    def _rows(self, sparse: "_SparseFile", metadata: Any, number: int, needed: list[str]) -> pa.Table:
        group = metadata.row_group(number)
        chunks = [group.column(index) for index in range(group.num_columns)]
        sparse.fetch([_range_of(chunk) for chunk in chunks if chunk.path_in_schema in needed], self.transfer)
        table = pq.ParquetFile(sparse, metadata=metadata).read_row_group(number, columns=needed)
        sparse.forget()
        for name, operator, value in self.where:
            table = table.filter(_mask(table.column(name), operator, value))
        if self.urls is not None:
            table = table.filter(pc.is_in(table.column("url"), pa.array(sorted(self.urls), pa.string())))
        return table.select(list(self.wanted))


def _lost(record: Quarantined, part: FileSlice) -> Quarantined:
    from dataclasses import replace

    return replace(record, num_documents=0, lost_bytes=part.num_bytes or part.file_size)


def _opened(part: FileSlice, transfer: TransferOptions) -> "InputFile | RangeFile":
    if is_url(part.path) and part.path.startswith(("http://", "https://", "s3://")):
        return RangeFile(part.path, part.file_size, part.version, transfer)
    return InputFile(part.path)


def _range_of(chunk: Any) -> tuple[int, int]:
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size


def _may_hold(bounds: tuple[Any, Any], operator: str, value: Any) -> bool:
    """Whether a column with these bounds may have a value for which the condition holds."""
    low, high = bounds
    try:
        if operator == "=":
            return bool(low <= value <= high)
        if operator == "in":
            return any(low <= each <= high for each in value)
        if operator in ("<", "<="):
            return bool(low < value or (operator == "<=" and low == value))
        if operator in (">", ">="):
            return bool(high > value or (operator == ">=" and high == value))
    except TypeError:  # another type than the column's: comparing rows will say so
        return True
    return operator != "!=" or not low == high == value


def _mask(column: pa.ChunkedArray, operator: str, value: Any) -> pa.ChunkedArray:
    if operator == "in":
        return pc.is_in(column, pa.array(list(value)).cast(column.type))
    if operator == "contains":
        return pc.fill_null(pc.match_substring(column, value), fill_value=False)
    compare = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater}
    made = compare.get(operator, pc.greater_equal)(column, pa.scalar(value).cast(column.type))
    return pc.fill_null(made, fill_value=False)


class _SparseFile:
    """A file of which only some ranges are here, for Arrow, which asks for no others: a few requests, not hundreds."""

    def __init__(self, file: "InputFile | RangeFile") -> None:
        self._file = file
        self._position = 0
        self._held: list[tuple[int, bytes]] = []
        self.closed = False
        footer = max(0, file.size - _FOOTER_BYTES)
        self._footer = (footer, bytes(memoryview(file.read_range(footer, file.size))))

    @property
    def size(self) -> int:
        return self._file.size

    def fetch(self, ranges: Sequence[tuple[int, int]], transfer: TransferOptions) -> None:
        """Get ranges before they are asked for, all at once if the file is on a server."""
        if not isinstance(self._file, RangeFile):
            self._held = [(start, bytes(memoryview(self._file.read_range(start, end)))) for start, end in ranges]
            return
        found = fetch_pieces([Piece(self._file.path, start, end) for start, end in ranges], transfer)
        for (start, _), piece in zip(ranges, found, strict=True):
            if isinstance(piece, NotFetched):
                raise DownloadFailed(piece.reason)
            self._held.append((start, piece))

    def forget(self) -> None:
        self._held = []

    def read(self, size: int = -1) -> bytes:
        end = self.size if size < 0 else min(self.size, self._position + size)
        start, self._position = self._position, max(self._position, end)
        for begin, held in (self._footer, *self._held):
            if begin <= start and end <= begin + len(held):
                return held[start - begin : end - begin]
        return bytes(memoryview(self._file.read_range(start, end)))

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self.size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False
