"""Tasks as bytes: a small header and a body that can be mapped and used where it lies.

A large batch travels as one Arrow IPC stream (its lines, and the columns parsed so far) and is loaded without copying.
Everything else is a pickle. Only processes of one run exchange these, through memory or through files of the run
directory; nothing here reads a file.
"""

import pickle
from typing import TYPE_CHECKING

import cloudpickle

from gristmill.tasks.document_check import DOCUMENT_MODULE, is_document_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from gristmill.tasks.document import DocumentBatch
    from gristmill.tasks.task import Task

Parts = tuple[bytes, "pa.Table | bytes"]

HEADER_KEY = b"gristmill.batch"  # where a file of the run directory keeps the header of its batch
_PICKLED = b"p"
_ARROW = b"a"
_SMALL_BYTES = 4096  # below, the cost of an Arrow stream (50 µs) is more than that of copying
_PLAIN_TYPES = (str, int, float, bool, type(None))


def dump(task: "Task[object]") -> Parts:
    """Return a header and what the body is made of; no data is copied yet, except what is pickled."""
    if is_document_batch(task) and type(task).__module__ == DOCUMENT_MODULE and task.nbytes > _SMALL_BYTES:
        state, table = task.to_parts()
        return _ARROW + _pickle(state, task), table
    return _PICKLED, _pickle(task, task)


def load(header: bytes, body: "memoryview | pa.Buffer | bytes") -> "Task[object]":
    """Return the task; its data refer to `body`, which must stay as it is while the task lives."""
    kind, payload = header[:1], memoryview(header)[1:]
    if kind == _PICKLED:
        return pickle.loads(body)  # type: ignore[no-any-return]
    import pyarrow as pa

    from gristmill.tasks.document import DocumentBatch

    buffer = body if isinstance(body, pa.Buffer) else pa.py_buffer(body)
    return DocumentBatch.from_parts(pickle.loads(payload), pa.ipc.open_stream(buffer).read_all())


def dump_batch(batch: "DocumentBatch") -> "tuple[bytes, pa.Table]":
    """Return everything but the rows, and the rows: a table that may be cut and loaded in pieces."""
    state, table = batch.to_parts()
    return _pickle(state, batch), table


def load_batch(header: bytes, table: "pa.Table") -> "DocumentBatch":
    """Return the batch of some rows of a dumped table."""
    from gristmill.tasks.document import DocumentBatch

    return DocumentBatch.from_parts({**pickle.loads(header), "_num_rows": table.num_rows}, table)


def dumped_size(parts: Parts) -> int:
    """Return how many bytes the body needs."""
    body = parts[1]
    if isinstance(body, bytes):
        return len(body)
    import pyarrow as pa

    counter = pa.MockOutputStream()
    _write_stream(counter, body)
    return int(counter.size())


def write_into(parts: Parts, target: memoryview) -> int:
    """Write the body into shared memory, the only copy there is; return how many bytes that were."""
    body = parts[1]
    if isinstance(body, bytes):
        target[: len(body)] = body
        return len(body)
    import pyarrow as pa

    sink = pa.FixedSizeBufferWriter(pa.py_buffer(target))
    _write_stream(sink, body)
    return int(sink.tell())


def _write_stream(sink: "pa.NativeFile", table: "pa.Table") -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _is_plain(entry: object) -> bool:
    return isinstance(entry, _PLAIN_TYPES) or (isinstance(entry, list) and all(isinstance(e, str) for e in entry))


def _pickle(value: object, task: "Task[object]") -> bytes:
    """Pickle fast where everything is ours; by value where a user's class may live in a script or a notebook."""
    plain = not task._metadata or all(_is_plain(entry) for entry in task._metadata.values())
    if plain and type(task).__module__.startswith("gristmill."):
        return pickle.dumps(value, protocol=5)
    dumped: bytes = cloudpickle.dumps(value, protocol=5)
    return dumped
