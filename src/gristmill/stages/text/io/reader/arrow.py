"""`ArrowReader`: Arrow IPC files and streams."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.stages.io.reading import ReadingStage, Wrong, planned
from gristmill.stages.io.table_reading import TableReadingStage, damaged, in_blocks
from gristmill.stages.text.io.reader.document_reader import _DocumentReader
from gristmill.stages.text.io.reader.wrong_format import wrong_for_arrow
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, open_stream, read_all, read_start
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileSlice

_FILE_MAGIC = b"ARROW1"
_FILE_START_BYTES = 8  # the magic bytes, padded


@dataclass(eq=False)
class ArrowReader(_DocumentReader):
    """Read Arrow IPC files or streams; which of the two is seen from their first bytes.

    Each file is one batch, unless it has more than 128 MiB, or four times `blocksize`.
    """

    limits_documents: ClassVar[bool] = False

    file_extensions: list[str] = field(default_factory=lambda: [".arrow", ".arrows", ".feather", ".ipc"])
    name: str = "arrow_reader"

    def _reading(self) -> ReadingStage[DocumentBatch]:
        return ArrowReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class ArrowReaderStage(TableReadingStage):
    """Read Arrow files."""

    name: str = field(default="arrow_reader", kw_only=True)

    _format: ClassVar[str] = "Arrow"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_arrow(sample, is_whole=is_whole)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        """From the schema alone: a file is a stream behind its magic bytes, so both begin with it."""
        is_file = read_start(path, len(_FILE_MAGIC), storage_options=options) == _FILE_MAGIC
        try:
            with open_stream(path, storage_options=options) as source:
                source.read(_FILE_START_BYTES if is_file else 0)
                return list(pa.ipc.open_stream(source).schema.names)
        except (pa.ArrowException, OSError) as error:
            raise damaged(FileSlice(path), "an Arrow IPC file or stream", error) from error

    def _tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        """A small or compressed file at once, a large one by its record batches."""
        try:
            if is_compressed(part.path) or part.file_size <= self._most_at_once:
                content = read_all(part.path, planned=planned(part), storage_options=options)
                yield _opened(pa.BufferReader(content)).read_all()
                return
            with InputFile(part.path, planned=planned(part), storage_options=options) as file, file.native() as native:
                reader = _opened(native)
                numbers = range(getattr(reader, "num_record_batches", 0))
                yield from in_blocks(map(reader.get_batch, numbers) if numbers else reader, self.block_bytes)
        except pa.ArrowException as error:
            raise damaged(part, "an Arrow IPC file or stream", error) from error
        except OSError as error:
            if isinstance(error, ReadError) or error.errno is not None:
                raise
            raise damaged(part, "an Arrow IPC file or stream", error) from error


def _opened(source: pa.NativeFile) -> "pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader":
    is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    source.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
