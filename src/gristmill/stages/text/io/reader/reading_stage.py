"""What the stages behind the readers share: which columns they give, before anything is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gristmill.errors import ConfigError, DamagedFile, GristmillError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.io.kwargs import storage_options
from gristmill.stages.text.io.reader.wrong_format import Wrong
from gristmill.storage.file_system import FileStatus, StorageOptions
from gristmill.storage.open_read import read_start
from gristmill.storage.sizes import parse_size
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

_SAMPLE_BYTES = 1 << 16
LARGEST_SHARE = 4  # one document may take the memory limit divided by this: it is copied once or twice on its way
LARGEST_BYTES = 1 << 30  # and where nobody has set a limit: the same on every machine, or the output would differ


@dataclass(eq=False)
class _ReadingStage(ProcessingStage[FileGroupTask, DocumentBatch]):
    """Read files, or parts of files, as documents with these fields."""

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
            return self._columns_of(self._partitioning.first_file(), storage_options(self.read_kwargs)) or None
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
            wrong = self._wrong_format(sample, is_whole=len(sample) < _SAMPLE_BYTES)
            if wrong is not None:
                looks, remedy = wrong
                raise ConfigError(f"{self.stage_name()}: expected {self._format} in {path!r}; got {looks}: {remedy}")

    _format: ClassVar[str] = "documents"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return None

    def _most_bytes(self) -> int:
        """What a document may have: as was said, or a quarter of the memory limit that was set, or 1 GiB."""
        if self.max_document_bytes is not None:
            return parse_size(self.max_document_bytes)
        return self.context.memory_limit // LARGEST_SHARE or LARGEST_BYTES

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        raise NotImplementedError


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
