"""What is in the quarantine of a run, when it ends: `completed_text` and `read_errors`.

Stages that noted facts about their partitions complete the records first, a line number for instance. Then the files
are read once, line by line, and counted by error: so the errors of a run in a temporary directory outlive it, and
those of earlier sessions count like the latest one's. Only the documents shown as examples are ever decoded.
"""

import io
import json
from collections.abc import Iterable, Sequence
from typing import BinaryIO, cast

import msgspec

from gristmill.engine.ledger import CommitRecord
from gristmill.engine.plan import Plan
from gristmill.metrics.error_counts import ErrorCount, ErrorCounts, ErrorExample, of_record
from gristmill.stages.context import Completer, CompletesRecords
from gristmill.storage.atomic_write import make_directory, stage_file
from gristmill.storage.file_system import StorageOptions, file_system, is_url
from gristmill.tasks import StagedFile


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
    payload: str = ""


_records = msgspec.json.Decoder(_Record)
_shown = msgspec.json.Decoder(_Shown)


def read_errors(quarantine_files: Iterable[str], options: StorageOptions | None = None) -> list[ErrorCount]:
    """Count what the files hold. A line that is damaged counts as that: the books know the documents anyway."""
    counts = ErrorCounts()
    for path in quarantine_files:
        try:
            file = file_system(path, options).open_read(path)
            with file if is_url(path) else _in_large_pieces(file) as lines:
                for line in lines:
                    _count(counts, path, line)
        except FileNotFoundError:
            counts.add(_damaged(path, "a file of the quarantine is gone"))
    return counts.all()


def _in_large_pieces(file: BinaryIO) -> BinaryIO:
    """A file of this machine is not buffered, and would be read byte by byte to find the ends of lines."""
    return io.BufferedReader(cast("io.RawIOBase", file))


def _damaged(path: str, message: str) -> ErrorCount:
    return ErrorCount("quarantine", "damaged_record", message, example=ErrorExample(source=path))


def _count(counts: ErrorCounts, path: str, line: bytes) -> None:
    try:
        counts.add(_error(counts, path, line))
    except (msgspec.DecodeError, UnicodeDecodeError):
        counts.add(_damaged(path, "a line of the quarantine is damaged"))


def _error(counts: ErrorCounts, path: str, line: bytes) -> ErrorCount:
    """What a line says; what is long in it is looked at only if it will be shown, and may be what is damaged."""
    record = _records.decode(line)
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
        beside = f"{path.rpartition('/')[0]}/{long.payload}" if long.payload else ""
        shown = " in ".join(filter(None, (long.document, beside)))  # of an item that is bytes: what it is, and where
        error.example = msgspec.structs.replace(example, traceback=long.traceback, document=shown)
    return error


def completers_of(plan: Plan, committed: Iterable[CommitRecord]) -> list[Completer]:
    """What the stages make of the facts they noted."""
    facts: dict[str, list[bytes]] = {}
    for record in committed:
        for stage, fact in record.facts:
            facts.setdefault(stage, []).append(fact)
    stages = {name: stage for group in plan.groups for name, stage in zip(group.names, group.stages, strict=True)}
    return [
        stage.completer(facts[name])
        for name, stage in stages.items()
        if name in facts and isinstance(stage, CompletesRecords)
    ]


def completed_file(
    file: StagedFile, completers: Sequence[Completer], staging: str, storage_options: StorageOptions
) -> StagedFile:
    """Return a quarantine file with its records completed, staged anew; the same file if nothing was left to do."""
    if file.is_payload:
        return file
    with file_system(file.final, storage_options).open_read(file.final) as content:
        text = completed_text(content.read().decode(encoding="utf-8", errors="replace"), completers)
    if text is None:
        return file
    make_directory(staging, storage_options=storage_options)
    name = file.final.rpartition("/")[2]
    written = stage_file(f"{staging}/{name}.completed", [text.encode()], storage_options=storage_options)
    return StagedFile(written.path, file.final, written.num_bytes, file.num_documents, written.checksum)


def completed_text(text: str, completers: Sequence[Completer]) -> str | None:
    """Return the text of a quarantine file with its records completed, or None if nothing was left to complete.

    Text that is damaged stays as it is: whoever resumes the run compares the file with its checksum, and makes it
    again.
    """
    try:
        entries = [json.loads(line) for line in text.split("\n") if line]
        changed = [complete(entry) for entry in entries for complete in completers]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not any(changed):
        return None
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
