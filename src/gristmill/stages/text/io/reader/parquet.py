"""`ParquetReader`: Parquet files, split by row groups. Types and schema metadata are kept as they are."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.stages.file_partitioning import Split
from gristmill.stages.text.io.kwargs import part_options
from gristmill.stages.text.io.reader.file_reader import _FileReader
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage
from gristmill.stages.text.io.reader.whole_files import read_tables
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import open_stream
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(eq=False)
class ParquetReader(_FileReader):
    """Read Parquet files as batches of documents.

    `fields` are the only columns read, null where a file lacks them. Files of more than 32 MiB, or of more than
    `blocksize`, are read some row groups at a time. `read_kwargs` takes `storage_options`.
    """

    split: ClassVar[Split] = "row_groups"

    file_extensions: list[str] = field(default_factory=lambda: [".parquet"])
    name: str = "parquet_reader"

    def _reading(self) -> _ReadingStage:
        return ParquetReaderStage(self.fields, self.read_kwargs, name=self.name)


@dataclass(eq=False)
class ParquetReaderStage(_ReadingStage):
    """Read files, or row groups of files."""

    name: str = field(default="parquet_reader", kw_only=True)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        with _Opened(path, options) as file:
            return list(file.schema_arrow.names)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        return read_tables(task, self.fields, lambda part: self._read(part, options))

    def _read(self, part: FileSlice, options: StorageOptions | None) -> pa.Table:
        with _Opened(part.path, options) as file:
            # Schema names, not the file's leaf columns: "a" must also bring a struct's children.
            columns = None if self.fields is None else [name for name in file.schema_arrow.names if name in self.fields]
            # One thread: the cores are busy with other partitions.
            try:
                if part.row_groups is None:
                    return file.read(columns=columns, use_threads=False)
                return file.read_row_groups(list(part.row_groups), columns=columns, use_threads=False)
            except (OSError, pa.ArrowInvalid) as error:
                raise ReadError(f"{part.path}: expected a whole Parquet file; got {error}") from error


class _Opened:
    """A Parquet file for the time of a `with`, its errors naming it."""

    def __init__(self, path: str, options: StorageOptions | None) -> None:
        self._path, self._options = path, options

    def __enter__(self) -> "pq.ParquetFile":
        import pyarrow.parquet as pq

        self._stream = open_stream(self._path, storage_options=self._options)
        try:
            return pq.ParquetFile(self._stream)
        except (OSError, pa.ArrowInvalid) as error:
            self._stream.close()
            raise ReadError(f"{self._path}: expected a Parquet file; got {error}") from error

    def __exit__(self, *exc: object) -> None:
        self._stream.close()
