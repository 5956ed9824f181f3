"""Files and single records of Common Crawl, over HTTPS or from S3.

`CommonCrawlWARCDownloader` fetches whole files. `CommonCrawlWARCReader` fetches the records that rows name by file,
offset and length, as the indexes of Common Crawl have them, without fetching the files.
"""

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pyarrow as pa

from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.resources import Resources
from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
from gristmill.stages.text.download.common_crawl.warc_records import (
    BadRecord,
    Problem,
    TooLarge,
    payload_of,
    records_in,
)
from gristmill.storage import http
from gristmill.storage.http_ranges import NotFetched, Piece, fetch_pieces
from gristmill.storage.s3_requests import SCHEME, check_keys
from gristmill.storage.transfer import TransferOptions
from gristmill.tasks import DocumentBatch, Task

CC_BASE_URL = "https://data.commoncrawl.org/"
BUCKET = "s3://commoncrawl/"
NOT_FETCHED, BAD_RECORD, TOO_LARGE = "not_fetched", "bad_record", "too_large"
KINDS = {
    NOT_FETCHED: "The record of a row could not be fetched: refused at every try, not there, or no such range.",
    BAD_RECORD: "What was fetched for a row is not a record.",
    TOO_LARGE: "The record of a row unpacks to more than `max_record_bytes`.",
}
MAX_BATCH_BYTES = 64 * 1024**2  # of records that are fetched together
MAX_BATCH_ROWS = 4096
_TRUE = ("1", "true", "yes")
_USUAL = TransferOptions()


class CommonCrawlWARCDownloader(TransferDownloader):
    """Fetches WARC and WET files into `download_dir`. `use_aws_to_download` fetches them from S3, with your keys."""

    def __init__(
        self,
        download_dir: str | None,
        use_aws_to_download: bool = False,  # noqa: FBT001, FBT002  # as users know it
        verbose: bool = False,  # noqa: FBT001, FBT002
        *,
        transfer: TransferOptions = _USUAL,
    ) -> None:
        super().__init__(download_dir, verbose, transfer=transfer)
        self.use_aws_to_download = use_aws_to_download

    def _place_of(self, url: str) -> str:
        return BUCKET + urlsplit(url).path.lstrip("/") if self.use_aws_to_download else url


class CommonCrawlWARCReader(CompositeStage[DocumentBatch, DocumentBatch]):
    """Fetch the record of each row: `binary_content_col` is what the web server answered the crawler.

    Rows of one file that lie near each other are fetched together, `max_workers` requests are under way at a time, and
    rows keep their order. A row whose record cannot be had is put into quarantine with the reason; `drop_failed=False`
    keeps it, without content. `use_s3` asks S3 in place of the web server, with your keys; `s3_key_prefix` is cut off
    the names of files. If they are not given, the environment's CC_USE_S3, CC_S3_BUCKET and CC_S3_KEY_PREFIX count.
    """

    def __init__(
        self,
        warc_filename_col: str = "warc_filename",
        warc_record_offset_col: str = "warc_record_offset",
        warc_record_length_col: str = "warc_record_length",
        binary_content_col: str = "binary_content",
        drop_failed: bool = True,  # noqa: FBT001, FBT002  # as users know it
        max_workers: int = 16,
        timeout: int = 30,
        max_retries: int = 3,
        use_s3: bool | None = None,  # noqa: FBT001
        s3_bucket: str | None = None,
        s3_key_prefix: str | None = None,
        *,
        data_prefix: str = CC_BASE_URL,
        contact: str | None = None,
        limits: IngestLimits | None = None,
    ) -> None:
        self.name = "CommonCrawlWARCReader"
        given = os.environ.get
        self.warc_filename_col = warc_filename_col
        self.warc_record_offset_col = warc_record_offset_col
        self.warc_record_length_col = warc_record_length_col
        self.binary_content_col = binary_content_col
        self.drop_failed = drop_failed
        self.max_workers = max_workers
        self.timeout = timeout
        self.max_retries = max_retries
        self.use_s3 = given("CC_USE_S3", "").lower() in _TRUE if use_s3 is None else use_s3
        self.s3_bucket = s3_bucket or given("CC_S3_BUCKET", "commoncrawl")
        self.s3_key_prefix = given("CC_S3_KEY_PREFIX", "") if s3_key_prefix is None else s3_key_prefix
        self.data_prefix = data_prefix
        self.contact = contact
        self.limits = limits or IngestLimits()
        _ = self._transfer  # what is wrong with the parameters is reported here

    @property
    def _transfer(self) -> TransferOptions:
        return TransferOptions(
            max_connections=self.max_workers, timeout=self.timeout, max_retries=self.max_retries, contact=self.contact
        )

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        stages: list[ProcessingStage[Any, Any]] = [_CutByLength(self.warc_record_length_col), self._fetching()]
        return stages

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Fetch the records of a batch, outside a pipeline."""
        return self._fetching().process(task)

    def _fetching(self) -> "_FetchRecords":
        columns = (self.warc_filename_col, self.warc_record_offset_col, self.warc_record_length_col)
        prefix = f"{SCHEME}{self.s3_bucket}/" if self.use_s3 else f"{self.data_prefix.rstrip('/')}/"
        cut = self.s3_key_prefix if self.use_s3 else ""
        stage = _FetchRecords(
            columns, self.binary_content_col, prefix, cut, self._transfer, self.limits, drop_failed=self.drop_failed
        )
        stage.name = self.name
        return stage


@dataclass(eq=False)
class _CutByLength(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Cut batches into ones that may be fetched together. Where it cuts depends on the rows alone."""

    length_col: str
    name: str = field(default="cut_by_length", kw_only=True)
    adds_only_declared_columns: ClassVar[bool] = True

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.length_col]

    def process(self, task: DocumentBatch) -> DocumentBatch | list[DocumentBatch]:
        bounds, size = [0], 0
        for row, length in enumerate(task.column(self.length_col).to_pylist()):
            size += _number(length) or 0
            if row > bounds[-1] and (size > MAX_BATCH_BYTES or row - bounds[-1] >= MAX_BATCH_ROWS):
                bounds.append(row)
                size = _number(length) or 0
        if len(bounds) == 1:
            return task
        ends = [*bounds[1:], task.num_items]
        return [task.slice(start, end - start) for start, end in zip(bounds, ends, strict=True)]


@dataclass(eq=False)
class _FetchRecords(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Fetch the record of each row."""

    fusible: ClassVar[bool] = False  # it waits, and stages after it should not wait with it
    adds_only_declared_columns: ClassVar[bool] = True

    place_columns: tuple[str, str, str]  # file, offset, length
    content_column: str
    prefix: str
    cut_off: str
    transfer: TransferOptions
    limits: IngestLimits
    drop_failed: bool = field(default=True, kw_only=True)
    name: str = field(default="fetch_records", kw_only=True)
    resources = Resources(cpus=0.5)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.place_columns)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.content_column]

    def check_ready(self) -> None:
        http.check_ready()
        if self.prefix.startswith(SCHEME):
            check_keys()

    def process(self, task: DocumentBatch) -> DocumentBatch:
        rows = [self._piece(*place) for place in self._places(task)]
        asked = [row for row in rows if isinstance(row, Piece)]
        answers = iter(fetch_pieces(asked, self.transfer))
        found = [self._content(next(answers)) if isinstance(row, Piece) else row for row in rows]
        failed = [isinstance(content, Quarantined) for content in found]
        if any(failed) and self.drop_failed:
            self._quarantine(task, rows, found)
            task = task.filter(pa.array([not lost for lost in failed]))
            found = [content for content in found if not isinstance(content, Quarantined)]
        values = [None if isinstance(content, Quarantined) else content for content in found]
        return task.with_column(self.content_column, pa.array(values, pa.large_binary()))

    def _places(self, task: DocumentBatch) -> Sequence[tuple[object, object, object]]:
        columns = [task.column(name).to_pylist() for name in self.place_columns]
        return list(zip(*columns, strict=True))

    def _piece(self, file: object, offset: object, length: object) -> Piece | Quarantined:
        start, size = _number(offset), _number(length)
        if not isinstance(file, str) or not file or start is None or not size or start < 0 or size < 0:
            return Quarantined(f"expected file, offset and length; got {file!r}, {offset!r}, {length!r}", NOT_FETCHED)
        if size > self.limits.max_record_bytes:
            most = self.limits.max_record_bytes
            return Quarantined(f"expected a record of at most {most:,} bytes; got {size:,}", TOO_LARGE)
        name = file.removeprefix(self.cut_off) if self.cut_off else file
        return Piece(self.prefix + name.lstrip("/"), start, start + size)

    def _content(self, answer: bytes | NotFetched) -> bytes | Quarantined:
        """What the server answered; all of a record that is not a response."""
        if isinstance(answer, NotFetched):
            return Quarantined(answer.reason, NOT_FETCHED)
        try:
            return _answered(answer, self.limits.max_record_bytes)
        except TooLarge as error:
            return Quarantined(str(error), TOO_LARGE)
        except BadRecord as error:
            return Quarantined(str(error), BAD_RECORD)

    def _quarantine(
        self, task: DocumentBatch, rows: Sequence[Piece | Quarantined], found: Sequence[bytes | Quarantined]
    ) -> None:
        for row, (place, lost) in enumerate(zip(rows, found, strict=True)):
            if isinstance(lost, Quarantined):
                item = task.item(row)
                source = place.url if isinstance(place, Piece) else item.source
                start = place.start if isinstance(place, Piece) else None
                self.context.quarantine(
                    replace(
                        lost,
                        row=row,
                        source=source,
                        block_start=start,
                        document=item.text,
                        document_id=item.id or f"{task.task_id}#{row}",
                    )
                )


def _answered(packed: bytes, most: int) -> bytes:
    raw = _unpacked(packed, most) if packed.startswith(b"\x1f\x8b") else packed
    for record in records_in(raw):
        if isinstance(record, Problem):
            raise BadRecord(record.why)
        if record.kind == "response":
            return payload_of(record, most).body
    return raw


def _unpacked(packed: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        raw = inflater.decompress(packed, most + 1)
    except zlib.error as error:
        raise BadRecord(f"expected a gzip member; got {error}") from error
    if len(raw) > most:
        raise TooLarge(f"expected a record of at most {most:,} bytes; got more, unpacked")
    if not inflater.eof:
        raise BadRecord("expected a whole gzip member; it does not end where the row says")
    return raw


def _number(value: object) -> int | None:
    """A whole number, which rows of CSV and CDX have as text; None if it is not one."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        return None
