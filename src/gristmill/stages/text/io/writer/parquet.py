"""`ParquetWriter`: one Parquet file a batch, with the columns' Arrow types."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.io.files import FileWriter
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class ParquetWriter(FileWriter[DocumentBatch]):
    """Write each batch as `<path>/<task id>.parquet`.

    `write_kwargs` takes `storage_options` and, with pyarrow's meanings, `compression`, `compression_level`,
    `row_group_size`, `use_dictionary` and `write_statistics`. The same batch gives the same bytes. Pages carry
    checksums, so whoever reads the file can tell a flipped bit from a text.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset(
        {"storage_options", "compression", "compression_level", "row_group_size", "use_dictionary", "write_statistics"}
    )

    file_extension: str = "parquet"
    name: str = "parquet_writer"

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        import pyarrow.parquet as pq

        options = {key: value for key, value in self.write_kwargs.items() if key != "storage_options"}
        sink = pa.BufferOutputStream()
        pq.write_table(batch.to_pyarrow(), sink, write_page_checksum=True, **options)
        yield memoryview(sink.getvalue())
