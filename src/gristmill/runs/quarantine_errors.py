"""`read_errors`: what is in the quarantine of a run, counted by error.

The files are read once, line by line, when a run ends: so the errors of a run in a temporary directory outlive it, and
those of earlier sessions count like the latest one's. Only the documents shown as examples are ever decoded.
"""

from collections.abc import Iterable

import msgspec

from gristmill.metrics.error_counts import ErrorCount, ErrorCounts, ErrorExample, of_record
from gristmill.storage.file_system import StorageOptions, file_system


class _Record(msgspec.Struct):
    """A line as `SideFiles` writes it, without what is long."""

    stage: str
    error: str
    kind: str
    task: str = ""
    source: str = ""
    line: int | None = None
    block_start: int | None = None
    row: int | None = None
    document_id: str = ""
    num_documents: int = 1
    lost_bytes: int = 0


class _Shown(msgspec.Struct):
    """What is long."""

    traceback: str = ""
    document: str = ""


_records = msgspec.json.Decoder(_Record)
_shown = msgspec.json.Decoder(_Shown)


def read_errors(quarantine_files: Iterable[str], options: StorageOptions | None = None) -> list[ErrorCount]:
    """Count what the files hold. A line that is damaged counts as that: the books know the documents anyway."""
    counts = ErrorCounts()
    for path in quarantine_files:
        try:
            with file_system(path, options).open_read(path) as lines:
                for line in lines:
                    _count(counts, path, line)
        except FileNotFoundError:
            counts.add(_damaged(path, "a file of the quarantine is gone"))
    return counts.all()


def _damaged(path: str, message: str) -> ErrorCount:
    return ErrorCount("quarantine", "damaged_record", message, example=ErrorExample(source=path))


def _count(counts: ErrorCounts, path: str, line: bytes) -> None:
    try:
        record = _records.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        counts.add(_damaged(path, "a line of the quarantine is damaged"))
        return
    # Until all blocks of a file are read, a line is known by its place in the block only.
    line_number = record.line if not record.block_start else None
    example = ErrorExample(record.document_id, record.source, line_number, record.row, record.task)
    error = of_record(
        record.stage,
        record.kind,
        record.error,
        example,
        num_documents=record.num_documents,
        lost_bytes=record.lost_bytes,
    )
    if counts.would_show(error):
        long = _shown.decode(line)
        error.example = msgspec.structs.replace(example, traceback=long.traceback, document=long.document)
    counts.add(error)
