"""Documents to JSON lines, copying what did not change.

Four ways, fastest first; they differ in speed, never in meaning:
  copy      nothing changed: the lines as they were read
  splice    only new columns: put before the closing brace
  rebuild   some fields replaced or dropped: the others keep their bytes, their order, and stay missing where missing
  encode    no lines: one object per row, in column order, nulls written
Text is UTF-8 without escapes it does not need; NaN and infinities, which JSON does not have, are null.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise, repeat

import msgspec
import pyarrow as pa

from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines, is_json

_SLICE_BYTES = 8 * 1024**2  # encoded at a time, so that a large batch is not in memory twice
_QUOTE, _CLOSE = b'"}'
_encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")


def encode_lines(batch: DocumentBatch) -> Iterator[bytes | memoryview]:
    """Yield the batch as JSON lines."""
    untouched = batch.untouched_lines()
    if untouched is not None:
        yield from untouched
        return
    lines = batch.lines
    encode = _encode
    if lines is not None:
        only_added = lines.kept is None and not lines.has_any(lines.gone)
        encode = _splice if only_added else _rebuild
    step = max(1, batch.num_items * _SLICE_BYTES // max(1, batch.nbytes))
    for offset in range(0, batch.num_items, step):
        yield encode(batch.slice(offset, step))


def _own_columns(batch: DocumentBatch) -> list[str]:
    """Columns the lines do not hold; all of them if there are no lines."""
    lines = batch.lines
    if lines is None:
        return batch.get_columns()
    return [name for name in batch.parsed_columns() if not lines.is_live(name)]


def _splice(batch: DocumentBatch) -> bytes:
    bodies, commas = _open_objects(_lines_of(batch))
    pieces: list[object] = [bodies]
    for name in _own_columns(batch):
        pieces += [commas, repeat(_encoder.encode(name) + b":"), json_texts(batch, name)]
        commas = repeat(b",")
    return _interleave(*pieces, repeat(b"}\n"))


def _open_objects(lines: JsonLines) -> tuple[list[memoryview | bytes], Iterable[bytes]]:
    """Each line up to, and without, its closing brace; and the comma that must follow, if the object has fields."""
    view, offsets = lines.data(), lines.offsets()
    bodies: list[memoryview | bytes] = []
    commas: list[bytes] = [b","] * len(lines)
    for start, end in pairwise((offsets - offsets[0]).tolist()):
        if view[start + 1] == _QUOTE and view[end - 2] == _CLOSE:
            bodies.append(view[start : end - 2])
            continue
        body = bytes(view[start:end]).rstrip()[:-1]
        if len(body.strip()) == 1:
            body, commas[len(bodies)] = b"{", b""
        bodies.append(body)
    return bodies, commas


def _interleave(*columns: object) -> bytes:
    return b"".join(chain.from_iterable(zip(*columns, strict=False)))


def _rebuild(batch: DocumentBatch) -> bytes:
    lines = _lines_of(batch)
    names = _own_columns(batch)
    columns = {name: [msgspec.Raw(text) for text in json_texts(batch, name)] for name in names}
    rows = []
    for i, fields in enumerate(lines.objects()):
        row = {
            key: columns[key][i] if key in columns else text
            for key, text in fields.items()
            if key in columns or lines.is_live(key)
        }
        row.update((name, column[i]) for name, column in columns.items() if name not in row)
        rows.append(row)
    return _encoder.encode_lines(rows)


def _encode(batch: DocumentBatch) -> bytes:
    names = batch.get_columns()
    if not names:
        return b"{}\n" * batch.num_items
    pieces: list[object] = []
    for i, name in enumerate(names):
        pieces += [repeat((b"," if i else b"{") + _encoder.encode(name) + b":"), json_texts(batch, name)]
    return _interleave(*pieces, repeat(b"}\n"))


def json_texts(batch: DocumentBatch, name: str) -> list[bytes]:
    """A column's values as JSON text."""
    column = batch.column(name)
    if is_json(batch.field(name)):
        # JSON has line breaks between tokens only, where a space does as well.
        return [b"null" if v is None else v.replace("\r", " ").replace("\n", " ").encode() for v in column.to_pylist()]
    encode: Callable[[object], bytes] = _encoder.encode
    return [encode(value) for value in _in_microseconds(column).to_pylist()]


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Python's times end at microseconds; finer ones are written as Arrow prints them."""
    kind = column.type
    if not pa.types.is_temporal(kind) or getattr(kind, "unit", "us") != "ns":
        return column
    if pa.types.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False)
    coarser = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.time64("us")
    try:
        return column.cast(coarser)
    except pa.ArrowInvalid:
        return column.cast(pa.string())


def _lines_of(batch: DocumentBatch) -> JsonLines:
    assert batch.lines is not None  # noqa: S101  # the caller chose this way because there are lines
    return batch.lines
