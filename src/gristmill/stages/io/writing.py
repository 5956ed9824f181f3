"""What all writers of files share: names, modes, compression, and that a file appears whole or not at all.

Inside a run a file is written under a temporary name and appears when the ledger has committed it; outside one it
appears at once. Nothing happens when a writer is made: `mode` acts when a run starts.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import pyarrow as pa
import xxhash

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import StageContext
from gristmill.stages.io.reading import check_kwargs, storage_options
from gristmill.storage.atomic_write import Chunk, force_file, make_directory, remove_for_good, stage_file, write_file
from gristmill.storage.failures import explained
from gristmill.storage.file_system import StorageOptions, absolute, file_system, is_url, plain
from gristmill.tasks import Batch, FileGroupTask, StagedFile, TableBatch, Task

W = TypeVar("W", bound=Batch[Any])
Mode = Literal["ignore", "overwrite", "append", "error"]
_MODES = ("ignore", "overwrite", "error")
_CODECS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}


@dataclass(eq=False)
class FileWriter(ProcessingStage[W, FileGroupTask]):
    """Write each batch to a file of its own, named after the batch. One without items writes no file.

    Subclasses say in `encode` what the bytes of a file are.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options"})

    path: str
    file_extension: str = ""
    write_kwargs: Mapping[str, object] = field(default_factory=dict)
    fields: list[str] | None = None
    name: str = ""
    mode: Mode = "ignore"

    def __post_init__(self) -> None:
        self.path = str(self.path)
        self.file_extension = self.file_extension.lstrip(".")
        check_kwargs(self.name, "write_kwargs", self.write_kwargs, self.known_kwargs)
        if self.mode == "append":
            raise ConfigError(
                f"{self.name}: expected mode to be one of {_MODES}; got 'append', which would make the output depend "
                "on how often the pipeline ran. Write to another directory instead"
            )
        if self.mode not in _MODES:
            raise ConfigError(
                f"{self.name}: expected mode to be one of {_MODES}; got {self.mode!r}{nearest(self.mode, _MODES)}"
            )

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    def encode(self, batch: W) -> Iterable[Chunk]:
        """Yield the bytes of the file a batch becomes, uncompressed. The same batch gives the same bytes."""
        raise NotImplementedError

    def process(self, task: W) -> FileGroupTask:
        """Write the batch; return the file, or no file if there are no items."""
        if not task.num_items:
            return FileGroupTask(task.dataset_name, [])
        chunks = self._compressed(self.encode(task if self.fields is None else self._selected(task, self.fields)))
        stem = task.task_id
        if not stem:
            chunks = [bytes(chunk) for chunk in chunks]
            stem = xxhash.xxh3_128(b"".join(chunks)).hexdigest()
        name = f"{stem}.{self.file_extension}"
        options = storage_options(self.write_kwargs)
        return write_output(self.context, f"{self.path.rstrip('/')}/{name}", chunks, task, storage_options=options)

    def _selected(self, batch: W, fields: list[str]) -> W:
        if not isinstance(batch, TableBatch):
            kind = type(batch).__name__
            raise StageError(f"{self.stage_name()}: expected a batch with columns to write {fields} of; got a {kind}")
        return batch.select(fields)

    def _compressed(self, chunks: Iterable[Chunk]) -> Iterable[Chunk]:
        codec = _CODECS.get(self.file_extension.rpartition(".")[2])
        return chunks if codec is None else _compress(chunks, codec)

    def make_paths_absolute(self) -> None:
        self.path = absolute(self.path)

    def output_directory(self) -> str:
        return self.path

    def output_options(self) -> Mapping[str, object]:
        return storage_options(self.write_kwargs) or {}

    def prepare_output(self, *, resuming: bool) -> list[str]:
        """Make the directory; look at or remove what is in it, as `mode` says. Hidden files (.gristmill) stay."""
        options = storage_options(self.write_kwargs)
        fs = file_system(self.path, options)
        there: Iterator[str] = iter(())
        if self.mode != "ignore" and not resuming and fs.is_directory(self.path):
            there = (status.path for status in fs.walk(self.path) if status.kind == "file")
        if self.mode == "error":
            found = next(there, None)
            if found is not None:
                raise ConfigError(f"{self.name}: expected {self.path!r} to have no files (mode 'error'); got {found!r}")
        removed = sorted(there) if self.mode == "overwrite" else []
        if removed:
            self._refuse_precious()
        remove_for_good(removed, storage_options=options)
        make_directory(self.path, storage_options=options)
        return removed

    def _refuse_precious(self) -> None:
        if is_url(self.path):
            return
        real = os.path.realpath(plain(self.path))
        if real in ("/", os.path.realpath(plain("~"))):
            raise ConfigError(f"{self.name}: expected a directory of its own to overwrite; got {self.path!r}")


def write_output(
    context: StageContext,
    final: str,
    chunks: Iterable[Chunk],
    task: Task[object],
    *,
    storage_options: StorageOptions | None = None,
) -> FileGroupTask:
    """Write what `task` became to the file `final`; return the file as a task, to be published by the ledger."""
    directory, _, name = final.rpartition("/")
    temporary = context.staging_path(directory, name)
    if temporary is None:
        write_file(final, chunks, storage_options=storage_options)
        return FileGroupTask(task.dataset_name, [final])
    with explained(final):
        written = stage_file(temporary, chunks, storage_options=storage_options)
        if context.forces:
            force_file(temporary)
    staged = StagedFile(temporary, final, written.num_bytes, task.num_items, written.checksum)
    return FileGroupTask(task.dataset_name, [final], staged=(staged,))


def _compress(chunks: Iterable[Chunk], codec: str) -> Iterator[Chunk]:
    """Arrow's codecs put neither time nor name into a header, so the bytes depend on the content only."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        for chunk in chunks:
            stream.write(chunk)
    yield memoryview(sink.getvalue())
