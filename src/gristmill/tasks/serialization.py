"""Tasks as bytes: a small header and a body that can be mapped and used where it lies.

The body of a large task is a pickle (protocol 5) and, after it, everything large that the pickle refers to:

    pickle of the task | buffer | Arrow stream | buffer ...        each begins at a multiple of 64 bytes

Buffers of numpy arrays and of Arrow, and tables as Arrow streams, are written into the body once and used there without
a copy, whatever the class of the task that holds them. Large `bytes` leave without a copy too but are copied when they
arrive: a `bytes` object has its memory to itself. A small task is a pickle and nothing else. Only processes of one run
exchange these, through memory or through files of the run directory; nothing here reads a file.
"""

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gristmill.tasks.batch import Batch

if TYPE_CHECKING:
    import pyarrow as pa

    from gristmill.tasks.table import TableBatch
    from gristmill.tasks.task import Task

HEADER_KEY = b"gristmill.batch"  # where a file of the run directory keeps the header of its batch
WRITABLE = b"w"  # a body with arrays that may be written to: map it privately, so that writing changes no other copy
_PICKLED = b"p"
_PIECES = b"b"
_ROWS = b"a"  # a header with everything but the rows, and a body that is one Arrow stream
_OF_ROWS = ("gristmill.tasks.document", "gristmill.tasks.table")
_SMALL_BYTES = 4096  # below, the cost of a piece of its own (of a stream: 50 µs) is more than that of copying
_ALIGNED = 64
_PLAIN_TYPES = (str, int, float, bool, type(None))


class Place(NamedTuple):
    """Where a piece is in the body, and what it is: "b" bytes, "t" a table, "r" a buffer to read, "w" one to write."""

    kind: str
    start: int
    end: int


class Pieces(NamedTuple):
    """A body that is still where it was made."""

    pieces: "list[memoryview | pa.Table]"
    places: list[Place]

    @property
    def size(self) -> int:
        return self.places[-1].end


Parts = tuple[bytes, Pieces | bytes]


def dump(task: "Task[object]") -> Parts:
    """Return a header and what the body is made of; no data is copied yet, except what is pickled."""
    ours = _is_ours(task)
    if ours and not (isinstance(task, Batch) and task.nbytes > _SMALL_BYTES):
        return _PICKLED, pickle.dumps(task, protocol=5)
    if ours and type(task).__module__ in _OF_ROWS:  # the shortest way for what travels most: 50 µs instead of 110
        state, table = task.to_parts()  # type: ignore[attr-defined]
        return _ROWS + pickle.dumps((type(task), state), protocol=5), _placed([_Found("t", table)])
    stream = io.BytesIO()
    aside = _Aside()
    (_OurPickler if ours else _user_pickler())(stream, aside).dump(task)
    if not aside.found:
        return _PICKLED, stream.getvalue()
    pieces = _placed([_Found("p", stream.getbuffer()), *aside.found])
    kind = WRITABLE if any(place.kind == "w" for place in pieces.places) else _PIECES
    return kind + pickle.dumps([tuple(place) for place in pieces.places], protocol=5), pieces


def load(header: bytes, body: "memoryview | pa.Buffer | bytes") -> "Task[object]":
    """Return the task; its data refer to `body`, which must stay as it is while the task lives."""
    if header[:1] == _PICKLED:
        return pickle.loads(body)  # type: ignore[no-any-return]
    if header[:1] == _ROWS:
        kind, state = pickle.loads(memoryview(header)[1:])
        batch: Task[object] = kind.from_parts(state, _read_table(body))
        return batch
    view = memoryview(body)
    places = [Place(*place) for place in pickle.loads(memoryview(header)[1:])]
    loaded: Task[object] = _Unpickler(view, places).load()
    return loaded


def dump_batch(batch: "TableBatch") -> "tuple[bytes, pa.Table]":
    """Return everything but the rows, and the rows: a table that may be cut and loaded in pieces."""
    state, table = batch.to_parts()
    state["class"] = type(batch)
    if _is_ours(batch):
        return pickle.dumps(state, protocol=5), table
    import cloudpickle

    return cloudpickle.dumps(state, protocol=5), table


def load_batch(header: bytes, table: "pa.Table") -> "TableBatch":
    """Return the batch of some rows of a dumped table."""
    from gristmill.tasks.document import DocumentBatch

    state = pickle.loads(header)
    kind: type[TableBatch] = state.pop("class", DocumentBatch)  # files of earlier versions hold documents
    return kind.from_parts({**state, "_num_rows": table.num_rows}, table)


def dumped_size(parts: Parts) -> int:
    """Return how many bytes the body needs."""
    return len(parts[1]) if isinstance(parts[1], bytes) else parts[1].size


def write_into(parts: Parts, target: memoryview) -> int:
    """Write the body into shared memory, the only copy that is made; return how many bytes were written."""
    body = parts[1]
    if isinstance(body, bytes):
        target[: len(body)] = body
        return len(body)
    for piece, place in zip(body.pieces, body.places, strict=True):
        if isinstance(piece, memoryview):
            target[place.start : place.end] = piece
        else:
            _write_table(piece, target[place.start : place.end])
    return body.size


# Out of the pickle


class _Found(NamedTuple):
    kind: str
    data: "memoryview | pa.Table"


class _Aside:
    """What is large in a task, found while it is pickled."""

    def __init__(self) -> None:
        self.found: list[_Found] = []
        self._numbers: dict[int, int] = {}  # by the object's id, which is not reused: `found` holds the object

    def keep_in(self, buffer: pickle.PickleBuffer) -> bool:
        """Called for every buffer that may travel beside the pickle; True for a small one, which stays in it."""
        raw = buffer.raw()
        if raw.nbytes < _SMALL_BYTES:
            return True
        self.found.append(_Found("r" if raw.readonly else "w", raw))
        return False

    def number_of(self, obj: object) -> int | None:
        """Called for every object in the task; the number of one that is written beside the pickle."""
        if type(obj) is bytes:
            return self._put("b", memoryview(obj), obj) if len(obj) >= _SMALL_BYTES else None
        arrow = _arrow()
        if arrow is None or not isinstance(obj, arrow.Table):
            return None
        return self._put("t", obj, obj) if obj.nbytes >= _SMALL_BYTES or _is_cut(obj) else None

    def _put(self, kind: str, data: "memoryview | pa.Table", obj: object) -> int:
        number = self._numbers.get(id(obj))
        if number is None:
            number = self._numbers[id(obj)] = len(self.found)
            self.found.append(_Found(kind, data))
        return number


class _OurPickler(pickle.Pickler):
    """For tasks whose every class can be imported by its name."""

    def __init__(self, stream: io.BytesIO, aside: _Aside) -> None:
        super().__init__(stream, protocol=5, buffer_callback=aside.keep_in)
        self._aside = aside

    def persistent_id(self, obj: object) -> int | None:
        return self._aside.number_of(obj)

    def reducer_override(self, obj: object) -> Any:
        return _reduced(obj)


@cache
def _user_pickler() -> "Callable[[io.BytesIO, _Aside], pickle.Pickler]":
    """A pickler by value, for a user's classes that may live in a script or a notebook.

    Made when first needed: importing cloudpickle takes 3 ms, a twentieth of a worker's start, and most runs send
    nothing but tasks of ours.
    """
    import cloudpickle

    class UserPickler(cloudpickle.Pickler):  # type: ignore[misc]  # has no types
        def __init__(self, stream: io.BytesIO, aside: _Aside) -> None:
            super().__init__(stream, protocol=5, buffer_callback=aside.keep_in)
            self._aside = aside

        def persistent_id(self, obj: object) -> int | None:
            return self._aside.number_of(obj)

        def reducer_override(self, obj: object) -> object:
            reduced = _reduced(obj)
            return super().reducer_override(obj) if reduced is NotImplemented else reduced

    return UserPickler


def _reduced(obj: object) -> object:
    """How objects are pickled whose own way would copy; NotImplemented for all others.

    Arrow pickles a slice with everything it was cut from; a stream holds the rows only.
    """
    arrow = _arrow()
    if arrow is None:
        return NotImplemented
    from gristmill.tasks.table import TableBatch

    if isinstance(obj, TableBatch):
        state, table = obj.to_parts()
        return type(obj).from_parts, (state, table)
    if isinstance(obj, arrow.Buffer):  # nothing writes into one, even where Arrow would allow it
        return arrow.py_buffer, (pickle.PickleBuffer(memoryview(obj).toreadonly()),)
    if isinstance(obj, arrow.Array | arrow.ChunkedArray) and _is_cut(obj):
        return _only_column, (arrow.table([obj], names=[""]), isinstance(obj, arrow.ChunkedArray))
    if isinstance(obj, arrow.RecordBatch) and _is_cut(obj):
        return _only_batch, (arrow.Table.from_batches([obj]),)
    return NotImplemented


def _arrow() -> "type[pa] | None":
    """Arrow, if it was loaded: where it was not, nothing of it can be in a task."""
    return sys.modules.get("pyarrow")  # type: ignore[return-value]


def _is_cut(data: "pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table") -> bool:
    return bool(data.get_total_buffer_size() > 4 * data.nbytes + _SMALL_BYTES)


def _only_column(table: "pa.Table", chunked: bool) -> "pa.Array | pa.ChunkedArray":  # noqa: FBT001  # from a pickle
    column = table.column(0)
    return column if chunked else column.combine_chunks()


def _only_batch(table: "pa.Table") -> "pa.RecordBatch":
    import pyarrow as pa

    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)  # of no rows


# Into the body, and out of it


def _placed(found: list[_Found]) -> Pieces:
    places, end = [], 0
    for kind, data in found:
        start = -(-end // _ALIGNED) * _ALIGNED
        end = start + (data.nbytes if isinstance(data, memoryview) else _table_size(data))
        places.append(Place(kind, start, end))
    return Pieces([data for _, data in found], places)


def _table_size(table: "pa.Table") -> int:
    import pyarrow as pa

    counter = pa.MockOutputStream()
    _write_stream(counter, table)
    return int(counter.size())


def _write_table(table: "pa.Table", target: memoryview) -> None:
    import pyarrow as pa

    _write_stream(pa.FixedSizeBufferWriter(pa.py_buffer(target)), table)


def _read_table(body: "memoryview | pa.Buffer | bytes") -> "pa.Table":
    import pyarrow as pa

    return pa.ipc.open_stream(body if isinstance(body, pa.Buffer) else pa.py_buffer(body)).read_all()


def _write_stream(sink: "pa.NativeFile", table: "pa.Table") -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


class _Unpickler(pickle.Unpickler):
    """Puts the pieces in place again."""

    def __init__(self, view: memoryview, places: list[Place]) -> None:
        pickled, *self._places = places
        # The buffers must not refer to this object: a cycle would hold the body until garbage is collected.
        super().__init__(io.BytesIO(view[pickled.start : pickled.end]), buffers=_buffers(view, self._places))
        self._view = view

    def persistent_load(self, number: int) -> "bytes | pa.Table":
        kind, start, end = self._places[number]
        piece = self._view[start:end]
        return bytes(piece) if kind == "b" else _read_table(piece)


def _buffers(view: memoryview, places: list[Place]) -> Iterator[memoryview | bytearray]:
    for kind, start, end in places:
        if kind in "rw":
            piece = view[start:end]
            # A stage may change its array in place, here as in the process that made it. Where the body cannot be
            # written to, as in Ray's store, the array needs memory of its own.
            yield bytearray(piece) if kind == "w" and piece.readonly else piece


def _is_ours(task: "Task[object]") -> bool:
    """Whether everything in the task can be imported by its name, so that the fast pickle will do."""
    if getattr(task, "holds_user_objects", False):
        return False
    plain = not task._metadata or all(_is_plain(entry) for entry in task._metadata.values())
    return plain and type(task).__module__.startswith("gristmill.")


def _is_plain(entry: object) -> bool:
    return isinstance(entry, _PLAIN_TYPES) or (isinstance(entry, list) and all(isinstance(e, str) for e in entry))
