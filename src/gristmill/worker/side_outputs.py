"""Rejected and quarantined documents leave a worker as files beside the output, published with it.

The text readers and writers are imported when there is something to write: a pipeline of other things starts without.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gristmill.engine.plan import Group
from gristmill.stages.context import Quarantined, Rejected, StageContext
from gristmill.storage.atomic_write import force_file, remove, stage_file
from gristmill.storage.failures import explained
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import StagedFile

if TYPE_CHECKING:
    from gristmill.tasks import DocumentBatch

MAX_DOCUMENT_CHARS = 1 << 20  # of a quarantined document; the record says where the whole of it is


class SideFiles:
    """Writes what the stages of one group reject and quarantine."""

    def __init__(
        self,
        group: Group,
        rejects_path: str | None,
        quarantine_path: str | None,
        options: tuple[StorageOptions | None, StorageOptions | None] = (None, None),
    ) -> None:
        self._names = group.names
        self._first_stage = group.first_stage
        self._rejects_path = rejects_path
        self._quarantine_path = quarantine_path
        self._rejects_options, self._quarantine_options = options  # where they are on a store

    def write(self, index: int, name: str, item_id: str, context: StageContext) -> list[StagedFile]:
        """Write what one call of stage `index` reported; `name` is unique in the run and the same in every attempt."""
        stage = self._names[index]
        file = f"{name}-s{self._first_stage + index:02d}.jsonl"
        staged = []
        if context.rejects and self._rejects_path:
            chunks = [chunk for rejected in context.rejects for chunk in _rejected_lines(stage, rejected)]
            documents = sum(rejected.documents.num_items for rejected in context.rejects)
            staged.append(_stage(self._rejects_path, file, chunks, documents, context, self._rejects_options))
        if context.quarantined and self._quarantine_path:
            chunks = [_quarantine_line(stage, item_id, record) for record in context.quarantined]
            staged.append(_stage(self._quarantine_path, file, chunks, len(chunks), context, self._quarantine_options))
        return staged

    @staticmethod
    def discard(staged: Iterable[StagedFile], options: StorageOptions | None = None) -> None:
        """Remove files of a trial."""
        for file in staged:
            remove(file.temporary, storage_options=options)

    @staticmethod
    def document_text(task: "DocumentBatch") -> str:
        """A document as one JSON line without the newline, or nothing: what broke a stage may break this too."""
        try:
            return b"".join(_json_lines(task)).decode("utf-8", "replace").rstrip("\n")
        except _unwritable():
            return ""

    @staticmethod
    def document_id(task: "DocumentBatch") -> str:
        """Its `id`, if it has one that can be read."""
        try:
            return str(task.column("id")[0].as_py()) if task.has_column("id") else ""
        except _unwritable():
            return ""


def _stage(
    directory: str,
    file: str,
    chunks: Iterable[bytes | memoryview],
    documents: int,
    context: StageContext,
    options: StorageOptions | None,
) -> StagedFile:
    final = f"{directory.rstrip('/')}/{file}"
    with explained(final):
        written = stage_file(context.staging_path(directory, file) or final, chunks, storage_options=options)
        if context.forces:
            force_file(written.path)
    return StagedFile(written.path, final, written.num_bytes, documents, written.checksum)


def _rejected_lines(stage: str, rejected: Rejected) -> list[bytes]:
    import pyarrow as pa

    batch = rejected.documents
    size = batch.num_items
    values = rejected.values or (None,) * size
    batch = batch.with_column("reject_stage", pa.array([stage] * size, pa.string()))
    batch = batch.with_column("reject_reason", pa.array([rejected.reason] * size, pa.string()))
    batch = batch.with_column("reject_value", pa.array([None if v is None else _value(v) for v in values]))
    batch = batch.with_column("reject_threshold", pa.array([rejected.threshold] * size, pa.string()))
    try:
        return _json_lines(batch)
    except _unwritable():
        return [line for row in range(size) for line in _what_can_be_written(batch.slice(row, 1))]


def _what_can_be_written(document: "DocumentBatch") -> list[bytes]:
    """A rejected document, or no more than why it was rejected."""
    try:
        return _json_lines(document)
    except _unwritable():
        return _json_lines(document.select([name for name in document.get_columns() if name.startswith("reject_")]))


def _unwritable() -> tuple[type[Exception], ...]:
    """Arrow holds what Python does not: dates beyond the year 9999, text that is not UTF-8, two fields of one name."""
    import pyarrow as pa

    return ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, pa.ArrowException


def _json_lines(batch: "DocumentBatch") -> list[bytes]:
    from gristmill.stages.text.io.writer.json_encoding import encode_lines

    return [bytes(chunk) for chunk in encode_lines(batch)]


def _value(value: object) -> float | str:
    if isinstance(value, bool | int | float):
        return float(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def _quarantine_line(stage: str, item_id: str, record: Quarantined) -> bytes:
    fields = {
        "stage": stage,
        "task": item_id,
        "error": record.error,
        "kind": record.kind,
        "source": record.source,
        "line": record.line,
        "block_start": record.block_start,
        "row": record.row,
        "document_id": record.document_id,
        "num_documents": record.num_documents,
        "lost_bytes": record.lost_bytes,
        "traceback": record.traceback,
        "document": record.document[:MAX_DOCUMENT_CHARS],
    }
    # Half a surrogate pair, as in a name that is not UTF-8, is not valid JSON for every reader of it.
    sound = {key: _sound(value) if isinstance(value, str) else value for key, value in fields.items()}
    return json.dumps(sound, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
