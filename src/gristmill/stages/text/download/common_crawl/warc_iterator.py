"""`CommonCrawlWarcIterator`: the pages in WARC files; `CommonCrawlWetIterator`: the texts in WET files.

An archive whose records are gzip members is read in parts, by as many workers as there are (`storage/gzip_members.py`).
A damaged member is put on record with its place, and reading goes on after it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from gristmill.errors import DamagedFile
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.files import Wrong, lost_part, planned
from gristmill.stages.io.splitting import GzipMembers, Splitter
from gristmill.stages.text.download.base import DocumentIterator
from gristmill.stages.text.download.common_crawl.warc_records import (
    WARC_BEGINS,
    Problem,
    Record,
    TooLarge,
    payload_of,
    records_in,
    records_of_stream,
)
from gristmill.storage.gzip_members import Damage, Members
from gristmill.storage.http_ranges import RangeFile
from gristmill.storage.open_read import InputFile
from gristmill.storage.transfer import TransferOptions
from gristmill.tasks import FileSlice

DAMAGED, TOO_LARGE, BAD_RECORD, BAD_UTF8 = "damaged", "too_large", "bad_record", "bad_utf8"
KINDS = {
    DAMAGED: "A part of the archive cannot be unpacked; reading goes on at the next record.",
    TOO_LARGE: "The record, or what it unpacks to, has more than `max_record_bytes`.",
    BAD_RECORD: "The bytes are not those of a record: no WARC line, no length, or a wrong one.",
    BAD_UTF8: "The text of a WET file is not UTF-8.",
}
DETAILS = (
    "http_status",
    "http_content_type",
    "identified_type",
    "warc_date",
    "truncated",
    "warc_offset",
    "warc_length",
)
_LIMITS = IngestLimits()
_USUAL = TransferOptions()
_WEB = ("http://", "https://", "s3://")

Found = dict[str, Any] | Quarantined


class _RecordIterator(DocumentIterator):
    """Reads records of one type. Subclasses say which, and what a record becomes."""

    split: ClassVar[Splitter] = GzipMembers()
    reads_urls: ClassVar[bool] = True
    declares_all_columns: ClassVar[bool] = True
    record_type: ClassVar[str]

    def __init__(
        self,
        storage_options: Mapping[str, object] | None = None,
        *,
        limits: IngestLimits = _LIMITS,
        transfer: TransferOptions = _USUAL,
    ) -> None:
        self.storage_options = dict(storage_options or {})
        self.limits = limits
        self.transfer = transfer

    def made_of(self, record: Record, source: str, end: int) -> Found:
        """Return what a record becomes; `end` is where it ends in its file."""
        raise NotImplementedError

    def wrong_format(self, sample: bytes) -> Wrong:
        if not sample or sample.startswith(WARC_BEGINS):
            return None
        if sample.startswith(b"filedesc://"):
            return "an ARC file", "it is the format of before 2013; convert it to WARC first: warcio recompress"
        return f"a file that begins with {sample[:20]!r}", "records of a WARC file begin with WARC/1."

    def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a file; raise DamagedFile after the last if some could not be read."""
        lost = []
        for found in self.iterate_part(FileSlice(str(file_path))):
            if isinstance(found, Quarantined):
                lost.append(found)
            else:
                yield found
        if lost:
            raise DamagedFile(f"{file_path}: expected whole records; {len(lost)} could not be read: {lost[0].error}")

    def iterate_part(self, part: FileSlice) -> Iterator[Found]:
        source = part.path.rpartition("/")[2]
        with self._opened(part) as file:
            if part.path.endswith(".gz"):
                yield from self._of_members(file.read_range, file.size, part, source)
            else:
                yield from self._of_stream(file.pieces(), part.path, source)

    def _opened(self, part: FileSlice) -> "InputFile | RangeFile":
        if part.path.startswith(_WEB) and not self.storage_options:
            return RangeFile(part.path, part.file_size, part.version, self.transfer)
        return InputFile(part.path, planned=planned(part), storage_options=self.storage_options or None)

    def _of_members(self, read: Callable[[int, int], Any], size: int, part: FileSlice, source: str) -> Iterator[Found]:
        def view(start: int, end: int) -> memoryview:
            return memoryview(read(start, end)).cast("B")

        start, end = part.part or (0, size)
        most = self.limits.max_record_bytes
        members = Members(view, size, WARC_BEGINS, most)
        for found in members.part(start, end):
            if isinstance(found, Damage):
                lost = found.end - found.start
                yield self._lost(part.path, DAMAGED, found.start, found.why, num_documents=0, lost_bytes=lost)
            elif found.content is None:  # a large record, or a whole archive as one member
                stream = records_of_stream(members.pieces(found.start), most)
                yield from self._all(stream, part.path, source, found.start, found.end)
            else:
                yield from self._all(records_in(found.content, found.start), part.path, source, None, found.end)

    def _of_stream(self, pieces: Iterator[bytes], path: str, source: str) -> Iterator[Found]:
        try:
            yield from self._all(records_of_stream(pieces, self.limits.max_record_bytes), path, source, None, 0)
        except DamagedFile as error:
            yield lost_part(error, path)

    def _all(
        self, records: Iterator[Record | Problem], path: str, source: str, member: int | None, end: int
    ) -> Iterator[Found]:
        """What records become. All records of a large member get its place: there is no other in the file."""
        for record in records:
            place = record.offset if member is None else member
            if isinstance(record, Problem):
                kind = TOO_LARGE if record.is_too_large else BAD_RECORD
                yield self._lost(path, kind, place, record.why, num_documents=1)
            elif record.kind == self.record_type:
                try:
                    yield self.made_of(record._replace(offset=place), source, end)
                except TooLarge as error:
                    yield self._lost(path, TOO_LARGE, place, str(error), num_documents=1, record=record)

    @staticmethod
    def _lost(
        path: str,
        kind: str,
        offset: int,
        why: str,
        *,
        num_documents: int,
        lost_bytes: int = 0,
        record: Record | None = None,
    ) -> Quarantined:
        return Quarantined(
            error=f"{path}, byte {offset:,}: {why}",
            kind=kind,
            source=path,
            block_start=offset,
            document_id="" if record is None else record.identifier,
            num_documents=num_documents,
            lost_bytes=lost_bytes,
        )


class CommonCrawlWarcIterator(_RecordIterator):
    """The responses in WARC files: `url`, `warc_id`, `source_id` (the name of the file) and `content` (bytes).

    `storage_options` are for files on stores. With `details` there are also `http_status`, `http_content_type` (as the
    server said), `identified_type` (as the crawler found), `warc_date`, `truncated` (why the crawler cut it off, if it
    did), and `warc_offset` and `warc_length`, which find the record again in its file.
    """

    record_type: ClassVar[str] = "response"

    def __init__(
        self,
        storage_options: Mapping[str, object] | None = None,
        *,
        details: bool = False,
        limits: IngestLimits = _LIMITS,
        transfer: TransferOptions = _USUAL,
    ) -> None:
        super().__init__(storage_options, limits=limits, transfer=transfer)
        self.details = details

    def made_of(self, record: Record, source: str, end: int) -> Found:
        payload = payload_of(record, self.limits.max_record_bytes)
        found: dict[str, Any] = {
            "url": record.url,
            "warc_id": record.identifier,
            "source_id": source,
            "content": payload.body,
        }
        if self.details:
            found |= {
                "http_status": payload.status,
                "http_content_type": payload.headers.get("content-type"),
                "identified_type": record.headers.get("warc-identified-payload-type"),
                "warc_date": record.headers.get("warc-date"),
                "truncated": record.headers.get("warc-truncated"),
                "warc_offset": record.offset,
                "warc_length": end - record.offset if end else None,
            }
        return found

    def output_columns(self) -> list[str]:
        return ["url", "warc_id", "source_id", "content", *(DETAILS if self.details else ())]


class CommonCrawlWetIterator(_RecordIterator):
    """The texts in WET files: `url`, `warc_id`, `source_id`, `language` (as the crawler found it) and `text`."""

    record_type: ClassVar[str] = "conversion"

    def made_of(self, record: Record, source: str, end: int) -> Found:
        try:
            text = record.block.decode()
        except UnicodeDecodeError as error:
            why = f"expected UTF-8; got {error.reason} at byte {error.start}"
            return self._lost(source, BAD_UTF8, record.offset, why, num_documents=1, record=record)
        return {
            "url": record.url,
            "warc_id": record.identifier,
            "source_id": source,
            "language": record.headers.get("warc-identified-content-language"),
            "text": text,
        }

    def output_columns(self) -> list[str]:
        return ["url", "warc_id", "source_id", "language", "text"]
