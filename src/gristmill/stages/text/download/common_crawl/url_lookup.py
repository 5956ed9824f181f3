"""`CommonCrawlUrlLookup`: where single URLs are in crawls, by bisecting the sorted CDX index in ranges.

    cc-index/collections/CC-MAIN-…/indexes/
        cluster.idx     a line for each block, sorted: surt timestamp TAB cdx-NNNNN.gz TAB offset TAB length TAB number
        cdx-NNNNN.gz    blocks of 3,000 lines, a gzip member each: surt timestamp {json}

A URL costs about a dozen small ranges of `cluster.idx`, most of which are kept for the next, and one or two blocks. The
index server is not asked at all.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from gristmill.errors import ConfigError, DownloadFailed, ReadError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.text.download.common_crawl.index import _CRAWL, DATA_PREFIX
from gristmill.stages.text.download.common_crawl.surt import path_key
from gristmill.storage import http
from gristmill.storage.http_ranges import NotFetched, Piece, fetch_pieces
from gristmill.storage.transfer import RemoteFile, TransferOptions, locate
from gristmill.tasks import DocumentBatch, EmptyTask, Task
from gristmill.tasks.records import Record, records_table

NOT_IN_INDEX = "not_in_index"
REASONS = {NOT_IN_INDEX: "The URL is in none of the crawls."}
COLUMNS = (
    *("url", "crawl", "fetch_time", "fetch_status", "content_mime_detected", "content_languages", "content_digest"),
    *("warc_filename", "warc_record_offset", "warc_record_length"),
)
_STEP_BYTES = 1 << 14  # of cluster.idx, read at a time; a line has about 120
_MAX_BLOCK_BYTES = 1 << 26  # unpacked; 3,000 lines have about 1.5 MB
_URLS_A_TASK = 256


@dataclass(eq=False)
class CommonCrawlUrlLookup(CompositeStage[EmptyTask, DocumentBatch]):
    """Find URLs in crawls: a row for each time one was fetched, as `CommonCrawlWARCReader` takes them.

    `urls`     as they were fetched, with http or https
    `crawls`   "CC-MAIN-2025-21", or several
    For many URLs, or for all of a host or a language, `CommonCrawlIndexReader` is cheaper.
    """

    urls: Sequence[str]
    crawls: str | Sequence[str]
    _: KW_ONLY
    data_prefix: str = DATA_PREFIX
    transfer: TransferOptions = field(default_factory=TransferOptions)

    def __post_init__(self) -> None:
        self.name = "common_crawl_url_lookup"
        names = [self.crawls] if isinstance(self.crawls, str) else list(self.crawls)
        for name in names:
            if not _CRAWL.match(name):
                raise ConfigError(f"{self.name}: expected crawls such as 'CC-MAIN-2025-21'; got {name!r}")
        if isinstance(self.urls, str) or not all(isinstance(url, str) for url in self.urls):
            raise ConfigError(f"{self.name}: expected a list of URLs; got {self.urls!r:.200}")

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        names = (self.crawls,) if isinstance(self.crawls, str) else tuple(self.crawls)
        looking = _LookUp(names, self.data_prefix, self.transfer)
        looking.name = self.name
        stages: list[ProcessingStage[Any, Any]] = [_UrlLists(tuple(self.urls)), looking]
        return stages


@dataclass(eq=False)
class _UrlLists(ProcessingStage[EmptyTask, DocumentBatch]):
    """Divide a list of URLs into batches, those of one host together."""

    urls: tuple[str, ...]
    name: str = field(default="url_lists", kw_only=True)

    def process(self, task: EmptyTask) -> list[DocumentBatch]:
        return list(self.partitions())

    def partitions(self) -> Sequence[DocumentBatch]:
        urls = sorted(dict.fromkeys(self.urls), key=lambda url: (path_key(url), url))
        if not urls:
            raise ConfigError(f"{self.name}: expected at least one URL; got none")
        batches = (urls[start : start + _URLS_A_TASK] for start in range(0, len(urls), _URLS_A_TASK))
        return [DocumentBatch("urls", records_table([{"url": url} for url in batch])) for batch in batches]


@dataclass(eq=False)
class _LookUp(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Find the URLs of a batch in all crawls."""

    transient_errors: ClassVar[tuple[type[BaseException], ...]] = (DownloadFailed,)
    makes_new_documents: ClassVar[bool] = True

    crawls: tuple[str, ...]
    data_prefix: str = DATA_PREFIX
    transfer: TransferOptions = field(default_factory=TransferOptions)
    name: str = field(default="common_crawl_url_lookup", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["url"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(COLUMNS)

    def columns(self) -> list[str]:
        return list(COLUMNS)

    def check_ready(self) -> None:
        http.check_ready()

    def process(self, task: DocumentBatch) -> DocumentBatch:
        urls: list[str] = task.column("url").to_pylist()
        found: dict[str, list[Record]] = {url: [] for url in urls}
        for crawl in self.crawls:
            index = _CdxIndex(crawl, self.data_prefix, self.transfer)
            for url in found:
                found[url] += [_row(crawl, entry) for entry in index.entries(url)]
        missing = [not found[url] for url in urls]
        self.context.drop(task, missing, reason=NOT_IN_INDEX)
        return DocumentBatch(task.dataset_name, records_table([row for url in urls for row in found[url]], COLUMNS))


def _row(crawl: str, entry: dict[str, str]) -> Record:
    return {
        "url": entry.get("url"),
        "crawl": crawl,
        "fetch_time": entry.get("timestamp"),
        "fetch_status": int(entry["status"]) if entry.get("status", "").isdecimal() else None,
        "content_mime_detected": entry.get("mime-detected"),
        "content_languages": entry.get("languages"),
        "content_digest": entry.get("digest"),
        "warc_filename": entry.get("filename"),
        "warc_record_offset": int(entry["offset"]),
        "warc_record_length": int(entry["length"]),
    }


class _CdxIndex:
    """The CDX index of one crawl, read in ranges; what was read of it is kept while a batch is looked up."""

    def __init__(self, crawl: str, data_prefix: str, transfer: TransferOptions) -> None:
        self._prefix = f"{data_prefix.rstrip('/')}/cc-index/collections/{crawl}/indexes"
        self._transfer = transfer
        self._cluster = f"{self._prefix}/cluster.idx"
        self._size = locate(RemoteFile(self._cluster), transfer).size
        self._read: dict[int, bytes] = {}
        self._blocks: dict[tuple[str, int, int], list[str]] = {}

    def entries(self, url: str) -> Iterator[dict[str, str]]:
        """Yield the entries of a URL, oldest first."""
        wanted = path_key(url)
        for block in self._blocks_with(wanted):
            for line in self._lines(*block):
                key, timestamp, told = line.split(" ", 2)
                if key > wanted and not key.startswith(wanted):
                    return
                if key.startswith(wanted):
                    entry = json.loads(told)
                    if entry.get("url") == url:
                        yield entry | {"timestamp": timestamp}

    def _blocks_with(self, wanted: str) -> Iterator[tuple[str, int, int]]:
        """Yield the blocks that may have a key: the last that begins before it, and those that begin with it."""
        low, high = 0, self._size  # the wanted line begins in between
        while high - low > _STEP_BYTES:
            middle = (low + high) // 2
            start, line = self._line_behind(middle)
            if start >= high or line.split(" ", 1)[0] >= wanted:
                high = middle
            else:
                low = start
        before: tuple[str, int, int] | None = None
        for line in self._lines_from(low):
            key, _, rest = line.partition(" ")
            _, file, offset, length, *_ = rest.split("\t")
            block = (file, int(offset), int(length))
            if key >= wanted:
                if before is not None:
                    yield before
                    before = None
                if not key.startswith(wanted):
                    return
                yield block
            else:
                before = block
        if before is not None:
            yield before

    def _line_behind(self, position: int) -> tuple[int, str]:
        """The first line that begins after a position, and where that is."""
        at = position
        while at < self._size:
            piece = self._piece(at)
            end = piece.find(b"\n")
            if end >= 0:
                start = at + end + 1
                return start, next(self._lines_from(start), "")
            at += len(piece)
        return self._size, ""

    def _lines_from(self, start: int) -> Iterator[str]:
        rest = b""
        while start < self._size:
            piece = self._piece(start)
            start += len(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.decode()
        if rest:
            yield rest.decode()

    def _piece(self, start: int) -> bytes:
        """Some bytes from `start` on, of a step that is read as a whole and kept."""
        first = start - start % _STEP_BYTES
        if first not in self._read:
            self._read[first] = self._fetched(self._cluster, first, min(self._size, first + _STEP_BYTES))
        return self._read[first][start - first :]

    def _lines(self, file: str, offset: int, length: int) -> list[str]:
        block = (file, offset, length)
        if block not in self._blocks:
            packed = self._fetched(f"{self._prefix}/{file}", offset, offset + length)
            try:
                raw = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, _MAX_BLOCK_BYTES)
            except zlib.error as error:
                raise ReadError(f"{self._prefix}/{file}, byte {offset}: expected gzip; got {error}") from error
            self._blocks[block] = raw.decode().splitlines()
        return self._blocks[block]

    def _fetched(self, url: str, start: int, end: int) -> bytes:
        [found] = fetch_pieces([Piece(url, start, end)], self._transfer)
        if isinstance(found, NotFetched):
            raise DownloadFailed(found.reason)
        return found
