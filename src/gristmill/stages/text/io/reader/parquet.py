"""`ParquetReader`: Parquet files, split by row groups. Types and schema metadata are kept as they are."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.stages.file_partitioning import Split
from gristmill.stages.text.io.kwargs import part_options
from gristmill.stages.text.io.reader.file_reader import _FileReader
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage, planned
from gristmill.stages.text.io.reader.whole_files import damaged, read_tables
from gristmill.stages.text.io.reader.wrong_format import Wrong, wrong_for_parquet
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, unreadable
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

    _format: ClassVar[str] = "Parquet"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_parquet(sample, is_whole=is_whole)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        with _Opened(FileSlice(path), options) as file:
            return list(file.schema_arrow.names)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        return read_tables(task, self.fields, lambda part: self._read(part, options), self.context)

    def _read(self, part: FileSlice, options: StorageOptions | None) -> pa.Table:
        with _Opened(part, options) as file:
            # Schema names, not the file's leaf columns: "a" must also bring a struct's children.
            columns = None if self.fields is None else [name for name in file.schema_arrow.names if name in self.fields]
            groups = range(file.num_row_groups) if part.row_groups is None else part.row_groups
            # One thread: the cores are busy with other partitions.
            return file.read_row_groups(list(groups), columns=columns, use_threads=False)


class _Opened:
    """A Parquet file for the time of a `with`; what Arrow cannot read of it is damage, and named.

    Pages that carry a checksum are compared with it: a flipped bit would be another text otherwise.
    """

    def __init__(self, part: FileSlice, options: StorageOptions | None) -> None:
        self._part, self._options = part, options

    def __enter__(self) -> "pq.ParquetFile":
        import pyarrow.parquet as pq

        self._file = InputFile(self._part.path, planned=planned(self._part), storage_options=self._options)
        self._stream: pa.NativeFile | None = None
        try:
            self._stream = self._file.native()
            return pq.ParquetFile(self._stream, page_checksum_verification=True)
        except BaseException as error:
            self.__exit__(type(error), error)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        with self._file:
            if isinstance(error, ReadError) or not isinstance(error, pa.ArrowException | OSError):
                return
            self._file.check_unchanged()  # a file that is being exchanged looks damaged
            if isinstance(error, OSError) and error.errno is not None:  # the disk's; Arrow's own have no number
                raise unreadable(self._part.path, error) from error
            raise damaged(self._part, "a whole Parquet file", error) from error
