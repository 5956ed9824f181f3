"""`ParquetWriter`: one Parquet file per batch, with the columns' Arrow types."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.text.io.writer.document_writer import Part, _DocumentWriter, cut_table
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class ParquetWriter(_DocumentWriter):
    """Write each batch as `<path>/<task id>.parquet`.

    `write_kwargs` takes `storage_options` and, with pyarrow's meanings, `compression`, `compression_level`,
    `row_group_size`, `use_dictionary` and `write_statistics`. The same batch gives the same bytes. Pages carry
    checksums, so readers of the file can tell a flipped bit from a text. With `max_file_bytes`, counted as the rows
    take in memory, a batch becomes several files, `<task id>.0000.parquet` and so on, where one would be larger.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset(
        {"storage_options", "compression", "compression_level", "row_group_size", "use_dictionary", "write_statistics"}
    )

    file_extension: str = "parquet"
    name: str = "parquet_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        return self._encode(batch.to_pyarrow())

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        for table in cut_table(batch.to_pyarrow(), most):
            yield table.num_rows, self._encode(table)

    def _encode(self, table: pa.Table) -> Iterator[Chunk]:
        import pyarrow.parquet as pq

        known = self.known_kwargs - {"storage_options"}  # others were accepted because they change nothing
        options = {key: value for key, value in self.write_kwargs.items() if key in known}
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, write_page_checksum=True, **options)
        yield memoryview(sink.getvalue())
