"""What readers and writers of files share, whatever the files hold."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar, cast

import pyarrow as pa
import xxhash

from gristmill.errors import (
    ConfigError,
    DamagedFile,
    GristmillError,
    NotOffered,
    OutputExists,
    StageError,
    nearest,
)
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.context import Quarantined, StageContext
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.io.splitting import Splitter, WholeFiles
from gristmill.storage.atomic_write import (
    Chunk,
    explained,
    force_file,
    make_directory,
    remove_for_good,
    stage_file,
    write_file,
)
from gristmill.storage.file_system import FileStatus, StorageOptions, absolute, file_system, is_url, plain
from gristmill.storage.open_read import InputFile, read_start
from gristmill.storage.sizes import parse_size
from gristmill.tasks import Batch, EmptyTask, FileGroupTask, FileSlice, StagedFile, TableBatch, Task

__all__ = [
    "FileReader",
    "FileWriter",
    "InputFile",
    "ReadingStage",
    "check_kwargs",
    "lost_part",
    "part_options",
    "planned",
    "storage_options",
    "too_large",
    "write_output",
]

# What readers of files share, whatever they make of them: parameters, checks before a run, records of what is lost.
#
# A reader is two stages to the planner: `FilePartitioningStage` lists files and divides them into parts, as the
# reader's `split` says, and a `ReadingStage` reads the parts. A format is one subclass of each:
# docs/guide/own-format.md.

DAMAGED, TOO_LARGE = "damaged", "too_large"
KINDS = {
    DAMAGED: "The file, or the rest of it, cannot be read: it is cut off, or its bytes are not those of its format.",
    TOO_LARGE: "The document has more than `max_document_bytes`.",
}
_SAMPLE_BYTES = 1 << 16
LARGEST_SHARE = 4  # one document may take the memory limit divided by this: it is copied once or twice on its way
LARGEST_BYTES = 1 << 30  # and where no limit was set: the same on every machine, or the output would differ

B = TypeVar("B", bound=Task)  # type: ignore[type-arg]  # what is made of the files
Wrong = tuple[str, str] | None  # what a file looks like instead, and what to do about it


@dataclass(eq=False)
class ReadingStage(ProcessingStage[FileGroupTask, B]):
    """Read files, or parts of files. Subclasses write `process` and, where they can tell it, `columns_of`."""

    can_read_again: ClassVar[bool] = True

    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None

    max_document_bytes: int | str | None = field(default=None, kw_only=True)

    _partitioning: FilePartitioningStage | None = field(default=None, init=False, repr=False)

    def for_columns(self, names: list[str] | None) -> Self:
        """Return a stage that reads the same documents as cheaply as it can when only these columns (None: all) matter.

        Compiled kernels are at hand where it runs. The files were looked at when the plan of the run was made, and are
        not looked at again.
        """
        again = cast("Self", self.with_())
        again.fields, again._partitioning = self.fields if names is None else names, None
        return again

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    def columns(self) -> list[str] | None:
        """The fields asked for, or the columns of the first file; None where that cannot be told."""
        self._check_format()
        if self.fields is not None:
            self._check_fields(self.fields)
            return list(self.fields)
        if self._partitioning is None:
            return None
        try:
            return self.columns_of(self._partitioning.first_file(), storage_options(self.read_kwargs)) or None
        except GristmillError:
            return None

    def _check_format(self) -> None:
        """Refuse files that are in another format: a mistake of the user's that would quarantine everything."""
        if self._partitioning is None:
            return
        options = storage_options(self.read_kwargs)
        try:
            paths = self._partitioning.some_files()
        except GristmillError:
            return  # listing them gives a better message
        for path in paths:
            try:
                sample = read_start(path, _SAMPLE_BYTES, storage_options=options)
            except GristmillError:
                continue  # damaged: the run puts it on record
            wrong = self.wrong_format(sample, is_whole=len(sample) < _SAMPLE_BYTES)
            if wrong is not None:
                looks, remedy = wrong
                expected = f"expected {self.format_name} in {path!r}"
                raise ConfigError(f"{self.stage_name()}: {expected}; got {looks}: {remedy}")

    def _check_fields(self, fields: list[str]) -> None:
        """Refuse a field that none of the files looked at has: a misspelt one would be null in every document."""
        if self._partitioning is None:
            return
        options, known = storage_options(self.read_kwargs), dict[str, None]()
        try:
            for path in self._partitioning.some_files():
                known |= dict.fromkeys(self.columns_of(path, options))
        except GristmillError:
            return  # a file that cannot be read may have any
        for name in fields:
            if known and name not in known:
                raise ConfigError(
                    f"{self.stage_name()}: expected fields that documents have, such as {list(known)[:12]}; "
                    f"got {name!r}{nearest(name, known)}"
                )

    format_name: ClassVar[str] = "documents"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        """What a file is instead, if its first bytes say so for certain; `is_whole` if they are all there are."""
        return None

    def most_bytes(self) -> int:
        """How large a document may be: as the user said, or a quarter of the memory limit that was set, or 1 GiB."""
        if self.max_document_bytes is not None:
            return parse_size(self.max_document_bytes)
        return self.context.memory_limit // LARGEST_SHARE or LARGEST_BYTES

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        """The columns a file has, or none if that cannot be told before it is read."""
        return []


@dataclass(eq=False)
class FileReader(CompositeStage[EmptyTask, B]):
    """Read files. Subclasses say how a file is split and, in `reading_stage`, which stage reads the parts.

    A document larger than `max_document_bytes` goes to quarantine. If it is not given, that is a quarter of the
    `memory_limit` given to the executor, or 1 GiB if that is not given either.
    """

    split: ClassVar[Splitter] = WholeFiles()
    makes: ClassVar[str] = "document"  # the only `task_type` it accepts
    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options"})
    limits_documents: ClassVar[bool] = True  # whether it can pass over a document that is too large

    file_paths: str | list[str]
    files_per_partition: int | None = None
    blocksize: int | str | None = None
    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    task_type: str = "document"
    file_extensions: list[str] = field(default_factory=list)
    max_document_bytes: int | str | None = field(default=None, kw_only=True)
    name: str = ""

    def __post_init__(self) -> None:
        check_kwargs(self.name, "read_kwargs", self.read_kwargs, self.known_kwargs)
        if self.task_type != self.makes:
            raise ConfigError(f"{self.name}: expected task_type {self.makes!r}; got {self.task_type!r}")
        if self.max_document_bytes is not None:
            parse_size(self.max_document_bytes, who=f"{self.name}: max_document_bytes")
            if not self.limits_documents:
                raise ConfigError(
                    f"{self.name}: expected no max_document_bytes, for rows of this format come a record batch or a "
                    f"block at a time; got {self.max_document_bytes!r}"
                )
        self._partitioning()  # what is wrong with the parameters is said here, not when the pipeline runs

    @classmethod
    def options_for(cls, names: list[str] | None) -> dict[str, object]:
        """Return parameters to read at least these columns with, as cheaply as the format can; None for all."""
        return {"fields": names}

    @property
    def block_bytes(self) -> int:
        return DEFAULT_BLOCK_BYTES if self.blocksize is None else parse_size(self.blocksize)

    def _partitioning(self) -> FilePartitioningStage:
        return FilePartitioningStage(
            self.file_paths,
            files_per_partition=self.files_per_partition,
            blocksize=self.blocksize,
            file_extensions=self.file_extensions,
            storage_options=storage_options(self.read_kwargs),
            split=self.split,
        )

    def reading_stage(self) -> ReadingStage[B]:
        raise NotImplementedError

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        reading = self.reading_stage()
        reading.max_document_bytes = self.max_document_bytes
        reading._partitioning = self._partitioning()
        return [reading._partitioning, reading]  # type: ignore[list-item]  # stages are invariant in their tasks


# Options of other tools' readers and writers that ask for what these do anyway: giving them changes nothing.
_DONE_ANYWAY: dict[str, tuple[object, ...]] = {
    "engine": ("pyarrow", "auto"),
    "dtype_backend": ("pyarrow",),
    "orient": ("records",),
    "lines": (True,),
    "index": (False, None),
    "force_ascii": (False,),
    "compression": ("infer", None),
}
# Options that have a parameter of their own here.
_SAID_ELSEWHERE = {"columns": "fields", "nrows": "--sample on the command line", "chunksize": "blocksize"}


def check_kwargs(who: str, option: str, given: Mapping[str, object] | None, known: Iterable[str]) -> None:
    """Refuse keys that would have no effect, unless they ask for what is done anyway."""
    known = sorted(known)
    for key, value in (given or {}).items():
        if key not in known and value not in _DONE_ANYWAY.get(key, ()):
            hint = f"; that is {_SAID_ELSEWHERE[key]} here" if key in _SAID_ELSEWHERE else nearest(key, known)
            raise ConfigError(f"{who}: expected {option} to have keys of {known}; got {key!r}{hint}")


def storage_options(given: Mapping[str, object] | None) -> StorageOptions | None:
    """Return the options meant for the file system."""
    return cast("StorageOptions | None", (given or {}).get("storage_options"))


def part_options(
    reader_config: Mapping[str, object], read_kwargs: Mapping[str, object] | None
) -> StorageOptions | None:
    """Return the reader's own storage options, or those the files were listed with."""
    return storage_options(read_kwargs) or storage_options(reader_config)


def planned(part: FileSlice) -> FileStatus | None:
    """The state of a part's file when it was listed; None for a part that was made by hand."""
    if not part.version and not part.file_size:
        return None
    return FileStatus(part.path, part.file_size, part.version)


def lost_part(error: DamagedFile, path: str) -> Quarantined:
    """The record of the rest of a file that cannot be read: how many documents it holds is unknown."""
    return Quarantined(
        error=str(error), kind=DAMAGED, source=path, block_start=error.position, num_documents=0,
        lost_bytes=error.lost_bytes,
    )  # fmt: skip


def too_large(path: str, place: str, num_bytes: int, most: int, *, num_documents: int = 1) -> Quarantined:
    """The record of a document that would not fit into memory."""
    limit = f"at most {most:,} bytes (max_document_bytes)"
    error = f"{path}, {place}: expected a document of {limit}; got {num_bytes:,} bytes"
    return Quarantined(error=error, kind=TOO_LARGE, source=path, num_documents=num_documents)


W = TypeVar("W", bound=Batch[Any])
Mode = Literal["ignore", "overwrite", "append", "error"]
_MODES = ("ignore", "overwrite", "error")
_CODECS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}


@dataclass(eq=False)
class FileWriter(ProcessingStage[W, FileGroupTask]):
    """Write each batch to a file of its own, named after the batch. One without items writes no file.

    Subclasses say in `encode` what the bytes of a file are. One with a field `max_file_bytes` makes several files of a
    batch in `write_parts` where that is set.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options"})
    joins_files: ClassVar[bool] = False  # whether files put end to end are a file of all their items

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
            raise NotOffered(
                f"{self.name}: expected mode to be one of {_MODES}; got 'append', which would make the output depend "
                "on how often the pipeline ran. Write to another directory instead"
            )
        if self.mode not in _MODES:
            raise ConfigError(
                f"{self.name}: expected mode to be one of {_MODES}; got {self.mode!r}{nearest(self.mode, _MODES)}"
            )

        _ = self.most_bytes

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    @property
    def most_bytes(self) -> int | None:
        """The most bytes a file may have, if the user set a limit."""
        given = getattr(self, "max_file_bytes", None)
        return None if given is None else parse_size(given, who=f"{self.name}: max_file_bytes")

    def write_parts(self, task: W, most: int) -> FileGroupTask:
        """Write a batch as files of at most that many bytes."""
        raise NotImplementedError

    def encode(self, batch: W) -> Iterable[Chunk]:
        """Yield the bytes of the file a batch becomes, uncompressed. The same batch gives the same bytes."""
        raise NotImplementedError

    def process(self, task: W) -> FileGroupTask:
        """Write the batch; return the file, or no file if there are no items."""
        if not task.num_items:
            return FileGroupTask(task.dataset_name, [])
        if (most := self.most_bytes) is not None:
            return self.write_parts(task, most)
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
                raise OutputExists(
                    f"{self.name}: expected {self.path!r} to have no files (mode 'error'); got {found!r}"
                )
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
    num_items: int | None = None,
    storage_options: StorageOptions | None = None,
) -> FileGroupTask:
    """Write what `task` became to the file `final`; return the file as a task, to be published by the ledger.

    The file counts for `num_items`: all of the task's, unless they are spread over several files.
    """
    directory, _, name = final.rpartition("/")
    temporary = context.staging_path(directory, name)
    if temporary is None:
        write_file(final, chunks, storage_options=storage_options)
        return FileGroupTask(task.dataset_name, [final])
    with explained(final):
        written = stage_file(temporary, chunks, storage_options=storage_options)
        if context.durable:
            force_file(temporary)
    held = task.num_items if num_items is None else num_items
    staged = StagedFile(temporary, final, written.num_bytes, held, written.checksum)
    return FileGroupTask(task.dataset_name, [final], staged=(staged,))


def _compress(chunks: Iterable[Chunk], codec: str) -> Iterator[Chunk]:
    """Arrow's codecs put neither time nor name into a header, so the bytes depend on the content only."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        for chunk in chunks:
            stream.write(chunk)
    yield memoryview(sink.getvalue())
