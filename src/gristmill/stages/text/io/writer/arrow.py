"""`ArrowWriter`: one Arrow IPC file a batch, the cheapest thing to read again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.text.io.writer.file_writer import _FileWriter
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class ArrowWriter(_FileWriter):
    """Write each batch as `<path>/<task id>.arrow`. `write_kwargs` takes `storage_options` and `compression`."""

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "compression"})

    file_extension: str = "arrow"
    name: str = "arrow_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        table = batch.to_pyarrow()
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=self.write_kwargs.get("compression"))
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        yield memoryview(sink.getvalue())
