"""`Batch`: the contract of a task that holds many items, of whatever kind.

An item is what its user counts: a document, an image, a clip. Whatever the engine does to single items it does through
this contract, so it works for every kind alike: a batch that makes a stage raise is divided until the bad items stand
alone, items that a filter drops leave with a reason and a payload that can be opened, the books count items, and the
bound on memory counts bytes. A new kind of item is a subclass with `num_items`, `take`, `concat` and `item`.

Batches are values: no method changes one. Nothing here does I/O, and nothing here loads Arrow.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, Union, cast

import msgspec

from gristmill.errors import StageError
from gristmill.tasks.task import Task

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Payload: TypeAlias = Union[bytes, bytearray, memoryview, "pa.Buffer"]
Mask: TypeAlias = Union[Sequence[bool], "pa.Array", "pa.ChunkedArray"]  # or a numpy array

_DEEP = 3  # containers within containers whose bytes are counted


class ItemRecord(msgspec.Struct, frozen=True):
    """One item as it is written down when it leaves the stream: rejected by a filter, or put into quarantine.

    `id`         what its user calls it; empty if it has no name of its own
    `source`     the file, or the place in one, that it came from
    `preview`    a line of words to recognise it by, such as "640 x 480 pixels, JPEG"
    `text`       the whole of it, if it is text: goes into the record
    `payload`    the whole of it, if it is bytes: becomes a file beside the record
    `extension`  of that file, such as ".jpg"; if it is empty, the first bytes decide
    """

    id: str = ""
    source: str = ""
    preview: str = ""
    text: str = ""
    payload: Payload | None = None
    extension: str = ""


class Batch(Task[T], Generic[T]):
    """A task of many items. Subclass it for a new kind: `num_items`, `take`, `concat`, and `item` if it can."""

    # What a subclass defines

    def take(self, rows: Sequence[int]) -> Self:
        """Return a batch of the items at these positions, in this order."""
        del rows
        raise NotImplementedError(f"{type(self).__name__}: a Batch must define take(rows), to be divided")

    @classmethod
    def concat(cls, batches: Sequence[Self]) -> Self:
        """Return the items of all batches in one, in their order. There is at least one batch."""
        del batches
        raise NotImplementedError(f"{cls.__name__}: a Batch must define concat(batches), to be joined")

    def item(self, row: int) -> ItemRecord:
        """Return how one item is written down when it leaves the stream: at the least, its source."""
        del row
        return ItemRecord(source=", ".join(self.sources()))

    @property
    def nbytes(self) -> int:
        """About how much memory the items take: what all buffers, arrays and texts in the attributes add up to."""
        return sum(_held_bytes(value, _DEEP) for value in vars(self).values())

    # What follows from it

    def bytes_of(self, mask: Mask, count: int) -> int:
        """About how much of `content_bytes` belongs to the `count` items where the mask is true."""
        del mask
        return self.content_bytes * count // max(1, self.num_items)

    def filter(self, mask: Mask) -> Self:
        """Return the items where the mask is true."""
        if len(mask) != self.num_items:
            who = f"{type(self).__name__}.filter"
            raise StageError(f"{who}: expected a mask of {self.num_items} values; got {len(mask)}")
        return self.take(true_rows(mask))

    def json_lines(self, notes: Mapping[str, Sequence[object]]) -> list[bytes] | None:
        """Return all items as JSON lines with these fields added, if they are JSON anyway; else None.

        If it is None, `item` is asked for a record of each.
        """
        del notes
        return None


def divided(batch: Batch[T], rows: Sequence[int]) -> Batch[T]:
    """Return some items as a batch of the same name and history; raise StageError if `take` gave a different number."""
    piece: object = batch.take(rows)  # a user's code, which may return anything
    if not isinstance(piece, Batch) or piece.num_items != len(rows):
        got = piece.num_items if isinstance(piece, Batch) else repr(piece)[:200]
        raise StageError(f"{type(batch).__name__}.take: expected a batch of {len(rows)} items; got {got}")
    piece.task_id = batch.task_id
    piece.inherit(batch)
    return piece


def count_true(mask: Mask) -> int:
    """Return how many values are true, of a list, a numpy array or an Arrow array."""
    if isinstance(mask, list | tuple):
        return sum(map(bool, mask))
    chunks = getattr(mask, "chunks", None)
    if chunks is not None:
        return sum(chunk.true_count for chunk in chunks)
    known = getattr(mask, "true_count", None)
    return len(true_rows(mask)) if known is None else int(known)


def true_rows(mask: Mask) -> list[int]:
    """Return the positions where a mask is true."""
    return [row for row, is_true in enumerate(_plain(mask)) if is_true]


def chosen(values: "Sequence[object] | pa.Array | pa.ChunkedArray", mask: Mask) -> list[object]:
    """Return the values where a mask is true."""
    return [value for value, is_true in zip(_plain(values), _plain(mask), strict=True) if is_true]


def _plain(values: Any) -> Sequence[object]:
    listed = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    return cast("Sequence[object]", values if listed is None else listed())


def payload_bytes(payload: Payload) -> memoryview:
    """The bytes of any buffer. Those of an array that is strided, empty or of records cannot be cast in place."""
    view = memoryview(payload)
    return view if view.ndim == 1 and view.format == "B" and view.contiguous else memoryview(view.tobytes())


def number_or_text(value: object, most_chars: int = 10_000) -> float | str | None:
    """Any value in a form JSON has: a finite number, or text; None for what is not a number at all."""
    listed = getattr(value, "tolist", None)
    if callable(listed):  # a numpy scalar or array
        value = listed()
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    if isinstance(value, bool | int | float) and abs(value) <= sys.float_info.max:
        return value
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)  # the order of a set differs from process to process
    text = json.dumps(value, ensure_ascii=False, default=number_or_text) if isinstance(value, dict) else str(value)
    return text[:most_chars]


def _held_bytes(value: object, deep: int) -> int:
    if isinstance(value, bytes | bytearray | str):
        return len(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return sum(_held_bytes(entry, deep - 1) for entry in value) if deep else 0
    size = getattr(value, "nbytes", None)  # of arrays, tables and views
    if size is None:
        size = getattr(value, "size", None) if type(value).__module__ == "pyarrow.lib" else None
    return size if isinstance(size, int) else 0


def extension_of(payload: memoryview, given: str) -> str:
    """The extension a payload gets as a file: the one its batch names, or what its first bytes say."""
    return _extension(given) or _extension_by_content(payload)


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


def _extension(given: str) -> str:
    """An extension that is safe in the name of a file: ".tar.gz", never "/../x"."""
    letters = "".join(char for char in given if char.isascii() and (char.isalnum() or char in "._-"))
    plain = letters.strip(".")[:MAX_EXTENSION_CHARS]
    return f".{plain}" if plain else ""


def _extension_by_content(payload: memoryview) -> str:
    beginning = bytes(payload[:16])
    found = (ending for start, mark, ending in _BEGINNINGS if beginning[start : start + len(mark)] == mark)
    return next(found, ".bin")
