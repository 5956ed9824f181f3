"""Rejected and quarantined items leave a worker as files beside the output, published with it.

    <directory>/part-0-0000-s02.jsonl                 a record a line: which stage, why, which item, from where
    <directory>/payloads/part-0-0000-s02-00003.jpg    an item that is bytes, whole, as a file that can be opened

Text is in the record itself. All files of a call are staged under temporary names and committed together with what the
partition gave, so a record and its payload are there both or not at all. What the bytes mean is the batch's business:
nothing here knows a kind of item.
"""

import json
import math
from collections.abc import Iterable, Sequence

from gristmill.engine.plan import Group
from gristmill.secrets import without_url_secrets
from gristmill.stages.context import PAYLOADS_DIR, Quarantined, Rejected, StageContext
from gristmill.storage.atomic_write import Chunk, force_file, remove, stage_file
from gristmill.storage.failures import explained
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import Batch, ItemRecord, StagedFile
from gristmill.tasks.batch import Payload

MAX_DOCUMENT_CHARS = 1 << 20  # of an item in words; the record says where the whole of it is
MAX_EXTENSION_CHARS = 16

# First bytes of formats, for a payload whose batch does not name an extension.
_BEGINNINGS = (
    (0, b"\xff\xd8\xff", ".jpg"),
    (0, b"\x89PNG\r\n\x1a\n", ".png"),
    (0, b"GIF8", ".gif"),
    (8, b"WEBP", ".webp"),
    (8, b"WAVE", ".wav"),
    (0, b"fLaC", ".flac"),
    (0, b"OggS", ".ogg"),
    (0, b"ID3", ".mp3"),
    (4, b"ftyp", ".mp4"),
    (0, b"\x1aE\xdf\xa3", ".mkv"),
    (0, b"%PDF-", ".pdf"),
    (0, b"PK\x03\x04", ".zip"),
    (0, b"\x1f\x8b", ".gz"),
    (0, b"\x93NUMPY", ".npy"),
)


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
        stem = f"{name}-s{self._first_stage + index:02d}"
        staged = []
        if context.rejects and self._rejects_path:
            sheet = _Sheet(self._rejects_path, stem, context, self._rejects_options)
            for rejected in context.rejects:
                sheet.add_rejected(stage, rejected)
            staged += sheet.staged()
        if context.quarantined and self._quarantine_path:
            sheet = _Sheet(self._quarantine_path, stem, context, self._quarantine_options)
            for record in context.quarantined:
                sheet.add_quarantined(stage, item_id, record)
            staged += sheet.staged()
        return staged

    @staticmethod
    def discard(staged: Iterable[StagedFile], options: StorageOptions | None = None) -> None:
        """Remove files of a trial."""
        for file in staged:
            remove(file.temporary, storage_options=options)


class _Sheet:
    """The records of one call, and the payloads beside them."""

    def __init__(self, directory: str, stem: str, context: StageContext, options: StorageOptions | None) -> None:
        self._directory = directory.rstrip("/")
        self._stem = stem
        self._context = context
        self._options = options
        self._lines: list[bytes] = []
        self._payloads: list[StagedFile] = []
        self._items = 0

    def add_rejected(self, stage: str, rejected: Rejected) -> None:
        batch, size = rejected.items, rejected.items.num_items
        values = rejected.values or (None,) * size
        notes: dict[str, Sequence[object]] = {
            "reject_stage": [stage] * size,
            "reject_reason": [rejected.reason] * size,
            "reject_value": [None if value is None else _value(value) for value in values],
            "reject_threshold": [rejected.threshold] * size,
        }
        self._items += size
        lines = _json_lines(batch, notes)
        if lines is not None:
            self._lines += lines
            return
        for row in range(size):
            item = shown_item(batch, row)
            fields: dict[str, object] = {
                "id": item.id or f"{batch.task_id}#{row}",
                "source": without_url_secrets(item.source),
                "preview": item.preview,
                "text": item.text[:MAX_DOCUMENT_CHARS],
            }
            fields |= {name: column[row] for name, column in notes.items()}
            self._lines.append(_line(fields | self._kept(item.payload, item.extension)))

    def add_quarantined(self, stage: str, item_id: str, record: Quarantined) -> None:
        fields: dict[str, object] = {
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
        self._items += 1
        self._lines.append(_line(fields | self._kept(record.payload, record.extension)))

    def _kept(self, payload: Payload | None, extension: str) -> dict[str, object]:
        """Stage the payload of an item; return what its record says about it."""
        if payload is None:
            return {}
        view = memoryview(payload).cast("B")
        ending = _extension(extension) or _extension_of(view)
        name = f"{PAYLOADS_DIR}/{self._stem}-{len(self._payloads):05d}{ending}"
        self._payloads.append(self._stage(name, [view], items=0))
        return {"payload": name}

    def staged(self) -> list[StagedFile]:
        """Stage the records; return all files, records first."""
        return [self._stage(f"{self._stem}.jsonl", self._lines, items=self._items), *self._payloads]

    def _stage(self, name: str, chunks: Iterable[Chunk], *, items: int) -> StagedFile:
        final = f"{self._directory}/{name}"
        with explained(final):
            temporary = self._context.staging_path(self._directory, name) or final
            written = stage_file(temporary, chunks, storage_options=self._options)
            if self._context.forces:
                force_file(written.path)
        return StagedFile(written.path, final, written.num_bytes, items, written.checksum)


def _json_lines(batch: Batch[object], notes: dict[str, Sequence[object]]) -> list[bytes] | None:
    try:
        return batch.json_lines(notes)
    except Exception:  # its author's code: item by item there is more to say
        return None


def shown_item(batch: Batch[object], row: int) -> ItemRecord:
    """One item as it is written down. What broke a stage may break the batch's own `item`: then that is said."""
    try:
        item = batch.item(row)
        texts = (str(item.id), str(item.source), str(item.preview), str(item.text))
        payload = None if item.payload is None else memoryview(item.payload).cast("B")
        return ItemRecord(*texts, payload, str(item.extension))
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    return ItemRecord(source=", ".join(batch.sources()), preview=f"({type(batch).__name__}.item raised {problem})")


def _extension(given: str) -> str:
    """An extension that is safe in the name of a file: ".tar.gz", never "/../x"."""
    letters = "".join(char for char in given if char.isascii() and (char.isalnum() or char in "._-"))
    plain = letters.strip(".")[:MAX_EXTENSION_CHARS]
    return f".{plain}" if plain else ""


def _extension_of(payload: memoryview) -> str:
    beginning = bytes(payload[:16])
    found = (ending for start, mark, ending in _BEGINNINGS if beginning[start : start + len(mark)] == mark)
    return next(found, ".bin")


def _value(value: object) -> float | str | None:
    if not isinstance(value, bool | int | float | str) and callable(getattr(value, "item", None)):
        value = value.item()  # type: ignore[attr-defined]  # a scalar of numpy
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    if isinstance(value, bool | int | float):
        return float(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def _line(fields: dict[str, object]) -> bytes:
    # Half a surrogate pair, as in a name that is not UTF-8, is not valid JSON for every reader of it.
    sound = {key: _sound(value) if isinstance(value, str) else value for key, value in fields.items()}
    return json.dumps(sound, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
