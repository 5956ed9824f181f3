"""What readers of files share, whatever they make of them: parameters, checks before a run, records of what is lost.

A reader is two stages to the planner: `FilePartitioningStage` lists files and divides them into parts, as the reader's
`split` says, and a `ReadingStage` reads the parts. A format is one subclass of each: docs/guide/own-format.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar, cast

from gristmill.errors import ConfigError, DamagedFile, GristmillError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.io.splitting import Splitter, WholeFiles
from gristmill.storage.file_system import FileStatus, StorageOptions
from gristmill.storage.open_read import read_start
from gristmill.storage.sizes import parse_size
from gristmill.tasks import EmptyTask, FileGroupTask, FileSlice, Task

_SAMPLE_BYTES = 1 << 16
LARGEST_SHARE = 4  # one document may take the memory limit divided by this: it is copied once or twice on its way
LARGEST_BYTES = 1 << 30  # and where nobody has set a limit: the same on every machine, or the output would differ

B = TypeVar("B", bound=Task)  # type: ignore[type-arg]  # what is made of the files
Wrong = tuple[str, str] | None  # what a file looks like instead, and what to do about it


@dataclass(eq=False)
class ReadingStage(ProcessingStage[FileGroupTask, B]):
    """Read files, or parts of files. Subclasses write `process` and, where they can tell it, `columns_of`."""

    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None

    max_document_bytes: int | str | None = field(default=None, kw_only=True)

    _partitioning: FilePartitioningStage | None = field(default=None, init=False, repr=False)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    def columns(self) -> list[str] | None:
        """The fields asked for, or the columns of the first file; None where that cannot be told."""
        self._check_format()
        if self.fields is not None:
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
            return  # listing them says it better
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

    format_name: ClassVar[str] = "documents"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        """What a file is instead, if its first bytes say so for certain; `is_whole` if they are all there are."""
        return None

    def most_bytes(self) -> int:
        """What a document may have: as was said, or a quarter of the memory limit that was set, or 1 GiB."""
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


def check_kwargs(who: str, option: str, given: Mapping[str, object] | None, known: Iterable[str]) -> None:
    """Refuse keys that would have no effect."""
    known = sorted(known)
    for key in given or {}:
        if key not in known:
            raise ConfigError(f"{who}: expected {option} to have keys of {known}; got {key!r}{nearest(key, known)}")


def storage_options(given: Mapping[str, object] | None) -> StorageOptions | None:
    """Return what is meant for the file system."""
    return cast("StorageOptions | None", (given or {}).get("storage_options"))


def part_options(
    reader_config: Mapping[str, object], read_kwargs: Mapping[str, object] | None
) -> StorageOptions | None:
    """Return the reader's own storage options, or those the files were listed with."""
    return storage_options(read_kwargs) or storage_options(reader_config)


def planned(part: FileSlice) -> FileStatus | None:
    """What the file of a part was when it was listed; None for a part that somebody made by hand."""
    if not part.version and not part.file_size:
        return None
    return FileStatus(part.path, part.file_size, part.version)


def lost_part(error: DamagedFile, path: str) -> Quarantined:
    """The record of the rest of a file that cannot be read: nobody knows how many documents it holds."""
    return Quarantined(
        error=str(error), kind="damaged", source=path, block_start=error.position, num_documents=0,
        lost_bytes=error.lost_bytes,
    )  # fmt: skip


def too_large(path: str, place: str, num_bytes: int, most: int, *, num_documents: int = 1) -> Quarantined:
    """The record of a document that would not fit into memory."""
    limit = f"at most {most:,} bytes (max_document_bytes)"
    error = f"{path}, {place}: expected a document of {limit}; got {num_bytes:,} bytes"
    return Quarantined(error=error, kind="too_large", source=path, num_documents=num_documents)
