"""`ArrowWriter`: one Arrow IPC file per batch, the cheapest format to read again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.stages.text.io.writer.document_writer import Part, _DocumentWriter, cut_table
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch

_OFFSETS = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}


@dataclass(eq=False)
class ArrowWriter(_DocumentWriter):
    """Write each batch as `<path>/<task id>.arrow`. `write_kwargs` takes `storage_options` and `compression`.

    With `max_file_bytes`, counted as the rows take in memory, a batch becomes several files, `<task id>.0000.arrow` and
    so on, where one would be larger.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "compression"})

    file_extension: str = "arrow"
    name: str = "arrow_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        return self._encode(batch.to_pyarrow())

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        for table in cut_table(batch.to_pyarrow(), most):
            yield table.num_rows, self._encode(table.combine_chunks())

    def _encode(self, given: pa.Table) -> Iterator[Chunk]:
        table = _without_leftovers(given)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=self.write_kwargs.get("compression"))
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        yield memoryview(sink.getvalue())


def _without_leftovers(table: pa.Table) -> pa.Table:
    """Cut the buffers of texts where the last text ends. Arrow leaves room behind it, and would write what is there."""
    columns = [
        pa.chunked_array([_cut(chunk) for chunk in column.chunks], column.type) if column.type in _OFFSETS else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _cut(chunk: pa.Array) -> pa.Array:
    valid, offsets, data = chunk.buffers()
    if data is None or not len(chunk):
        return chunk
    last = np.frombuffer(offsets, _OFFSETS[chunk.type])[chunk.offset + len(chunk)]
    return pa.Array.from_buffers(
        chunk.type, len(chunk), [valid, offsets, data.slice(0, int(last))], offset=chunk.offset
    )
