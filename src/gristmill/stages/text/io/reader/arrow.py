"""`ArrowReader`: Arrow IPC files and streams."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import DamagedFile, ReadError
from gristmill.stages.io.files import ReadingStage, Wrong, lost_part, planned
from gristmill.stages.io.table_reading import TableReadingStage, damaged, in_blocks
from gristmill.stages.text.io.reader.document_reader import _DocumentReader, wrong_for_arrow
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, open_stream, read_all, read_start
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileSlice

_FILE_MAGIC = b"ARROW1"
_FILE_START_BYTES = 8  # the magic bytes, padded


@dataclass(eq=False)
class ArrowReader(_DocumentReader):
    """Read Arrow IPC files or streams; the first bytes tell which of the two a file is.

    Each file is one batch, unless it has more than 128 MiB, or four times `blocksize`.
    """

    limits_documents: ClassVar[bool] = False

    file_extensions: list[str] = field(default_factory=lambda: [".arrow", ".arrows", ".feather", ".ipc"])
    name: str = "arrow_reader"

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        return ArrowReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class ArrowReaderStage(TableReadingStage[DocumentBatch]):
    """Read Arrow files."""

    name: str = field(default="arrow_reader", kw_only=True)

    format_name: ClassVar[str] = "Arrow"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_arrow(sample, is_whole=is_whole)

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        """From the schema alone: behind its magic bytes a file is a stream, so both begin with the schema."""
        is_file = read_start(path, len(_FILE_MAGIC), storage_options=options) == _FILE_MAGIC
        try:
            with open_stream(path, storage_options=options) as source:
                source.read(_FILE_START_BYTES if is_file else 0)
                return list(pa.ipc.open_stream(source).schema.names)
        except (pa.ArrowException, OSError) as error:
            raise damaged(FileSlice(path), "an Arrow IPC file or stream", error) from error

    def tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        """A small or compressed file at once, a large one by its record batches."""
        if is_compressed(part.path) or part.file_size <= self._most_at_once:
            content = read_all(part.path, planned=planned(part), storage_options=options)
            try:
                yield _opened(pa.BufferReader(content)).read_all()
            except (pa.ArrowException, OSError):  # a second time, with care: what is not damaged is kept
                yield from in_blocks(self._good_batches(part, pa.BufferReader(content), len(content)), self.block_bytes)
            return
        with InputFile(part.path, planned=planned(part), storage_options=options) as file, file.native() as native:
            yield from in_blocks(self._good_batches(part, native, file.size), self.block_bytes)

    def _good_batches(self, part: FileSlice, source: pa.NativeFile, size: int) -> Iterator[pa.RecordBatch]:
        """The record batches that can be read; those that cannot are put on record with the bytes they have.

        Batches of a file are independent: one that is damaged costs no other. In a stream nothing is known of what
        follows the damage, nor in a file whose list of batches, at its end, is damaged or was cut off.
        """
        position = 0
        try:
            try:
                reader = _opened(source)
            except (pa.ArrowException, OSError) as error:
                reader, problem = _opened_as_stream(source), error
            else:
                problem = None
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                yield from self._batches_of_file(part, reader, source, size)
                return
            while True:
                position = source.tell()
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                yield batch
            if problem is not None:  # every batch was there; the list of them is what is lost
                raise problem
        except (pa.ArrowException, OSError) as error:
            raise _told(part, error, size - position, size) from error

    def _batches_of_file(
        self, part: FileSlice, reader: "pa.ipc.RecordBatchFileReader", source: pa.NativeFile, size: int
    ) -> Iterator[pa.RecordBatch]:
        sizes: list[int] = []
        for number in range(reader.num_record_batches):
            try:
                yield reader.get_batch(number)
            except (pa.ArrowException, OSError) as error:
                sizes = sizes or _batch_sizes(source)
                lost = sizes[number] if number < len(sizes) else size // reader.num_record_batches
                told = _told(part, error, lost, size)
                if not isinstance(told, DamagedFile):
                    raise
                self.context.quarantine(lost_part(told, part.path))


def _told(part: FileSlice, error: Exception, lost: int, size: int) -> Exception:
    """The error of a decoder as damage; an error of a disk or a store stays what it is.

    `lost` bytes of the content, which has `size`, are the same share of a file that may be compressed.
    """
    if isinstance(error, ReadError) or (isinstance(error, OSError) and error.errno is not None):
        return error
    told = damaged(part, "an Arrow IPC file or stream", error)
    told.lost_bytes = min(part.file_size or size, -(-lost * (part.file_size or size) // max(1, size)))
    return told


def _batch_sizes(source: pa.NativeFile) -> list[int]:
    """How many bytes each record batch of a file has, as far as its messages can be told apart."""
    sizes: list[int] = []
    source.seek(_FILE_START_BYTES)
    messages = pa.ipc.MessageReader.open_stream(source)
    with contextlib.suppress(pa.ArrowException, OSError, StopIteration):
        while True:
            start = source.tell()
            message = messages.read_next_message()
            if message.type == "record batch":
                sizes.append(source.tell() - start)
    return sizes


def _opened_as_stream(source: pa.NativeFile) -> "pa.ipc.RecordBatchStreamReader":
    """A file without its end, opened as the stream that comes before it; if it is not even that, it raises again."""
    source.seek(_FILE_START_BYTES)
    return pa.ipc.open_stream(source)


def _opened(source: pa.NativeFile) -> "pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader":
    source.seek(0)
    is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    source.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
