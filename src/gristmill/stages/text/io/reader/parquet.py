"""`ParquetReader`: Parquet files, split by row groups. Types and schema metadata are kept as they are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.stages.io.files import ReadingStage, Wrong, planned, too_large
from gristmill.stages.io.splitting import RowGroups, Splitter
from gristmill.stages.io.table_reading import TableReadingStage, damaged
from gristmill.stages.text.io.reader.document_reader import _DocumentReader, wrong_for_parquet
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, unreadable
from gristmill.tasks import DocumentBatch, FileSlice

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BUFFER_BYTES = 1 << 20


@dataclass(eq=False)
class ParquetReader(_DocumentReader):
    """Read Parquet files as batches of documents.

    `fields` are the only columns read, null where a file lacks them. Files of more than 32 MiB, or of more than
    `blocksize`, are read some row groups at a time, and what takes more than four times that in memory, some rows at
    a time. `read_kwargs` takes `storage_options`.
    """

    split: ClassVar[Splitter] = RowGroups()

    file_extensions: list[str] = field(default_factory=lambda: [".parquet"])
    name: str = "parquet_reader"

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        return ParquetReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class ParquetReaderStage(TableReadingStage[DocumentBatch]):
    """Read files, or row groups of files."""

    name: str = field(default="parquet_reader", kw_only=True)

    format_name: ClassVar[str] = "Parquet"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_parquet(sample, is_whole=is_whole)

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        with _Opened(FileSlice(path), options) as file:
            return list(file.schema_arrow.names)

    def tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        with _Opened(part, options) as file:
            yield from self._read(part, file)

    def _read(self, part: FileSlice, file: "pq.ParquetFile") -> Iterator[pa.Table]:
        """The tables of a part: one, unless its rows would be too much at once."""
        # Schema names, not the file's leaf columns: "a" must also bring a struct's children.
        columns = None if self.fields is None else [name for name in file.schema_arrow.names if name in self.fields]
        groups = list(range(file.num_row_groups) if part.part is None else part.part)
        groups = [number for number in groups if not self._is_too_large(part.path, file, number)]
        sizes = [file.metadata.row_group(number).total_byte_size for number in groups]
        if sum(sizes) <= self._most_at_once:
            # One thread: the cores are busy with other partitions.
            yield file.read_row_groups(groups, columns=columns, use_threads=False)
            return
        for number, size in zip(groups, sizes, strict=True):
            num_rows = file.metadata.row_group(number).num_rows
            rows = max(1, num_rows * self.block_bytes // max(1, size))
            for batch in file.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])

    def _is_too_large(self, path: str, file: "pq.ParquetFile", number: int) -> bool:
        """Whether the rows of a group are too large on average; the size of single rows is not known beforehand."""
        most, group = self.most_bytes(), file.metadata.row_group(number)
        size = group.total_byte_size // max(1, group.num_rows)
        if size <= most:
            return False
        place = f"row group {number} of {group.num_rows} rows"
        self.context.quarantine(too_large(path, place, size, most, num_documents=group.num_rows))
        return True


class _Opened:
    """A Parquet file for the time of a `with`; what Arrow cannot read in it is reported as damage of this file.

    Pages that carry a checksum are compared with it: otherwise a flipped bit would be another text.
    """

    def __init__(self, part: FileSlice, options: StorageOptions | None) -> None:
        self._part, self._options = part, options

    def __enter__(self) -> "pq.ParquetFile":
        import pyarrow.parquet as pq

        self._file = InputFile(self._part.path, planned=planned(self._part), storage_options=self._options)
        self._stream: pa.NativeFile | None = None
        try:
            self._stream = self._file.native()
            # A buffer: without one a whole column of a row group is in memory as it is stored.
            return pq.ParquetFile(self._stream, page_checksum_verification=True, buffer_size=_BUFFER_BYTES)
        except BaseException as error:
            self.__exit__(type(error), error)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        self._file.__exit__(kind, error)
        if isinstance(error, ReadError) or not isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError):
            return
        self._file.check_unchanged()  # a file that is being replaced looks damaged
        if isinstance(error, OSError) and error.errno is not None:  # the disk's; Arrow's own have no number
            raise unreadable(self._part.path, error) from error
        raise damaged(self._part, "a whole Parquet file", error) from error
