"""`FileGroupTask`: files, or parts of files, to read; or files that were written.

A part is a byte range of a line-based file (a line belongs to the range its first byte is in) or some row groups of a
Parquet file. So one file of 100 GB is many tasks, and no task needs to know where its neighbours' lines end.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from gristmill.tasks.task import Task


@dataclass(frozen=True)
class FileSlice:
    """One file, or a part of it. `start`, `end` are bytes; None means the whole file.

    `file_size` and `version` (modification time, or an object store's etag) identify the file's content, so that a
    changed input is noticed when a run is resumed.
    """

    path: str
    start: int | None = None
    end: int | None = None
    row_groups: tuple[int, ...] | None = None
    file_size: int = 0
    version: str = ""
    num_bytes: int = 0  # expected bytes of this part, for scheduling


@dataclass(frozen=True)
class StagedFile:
    """A file written under a temporary name. It appears as `final` once the ledger has committed it."""

    temporary: str
    final: str
    num_bytes: int
    num_documents: int
    checksum: str  # "xxh3:<32 hex digits>" of the bytes

    @property
    def is_payload(self) -> bool:
        """Whether a side file is the payload of one item; the record beside it tells of the item, and counts it."""
        return self.num_documents == 0


@dataclass
class FileGroupTask(Task[list[str]]):
    """Paths, with the parts of them that are meant.

    `slices` is empty when whole files are meant and nothing is known about them. `partition_name` names what is
    written from this task; `staged` lists files a writer has written but nobody has published yet.
    """

    counts_documents: ClassVar[bool] = False

    data: list[str] = field(default_factory=list)
    reader_config: dict[str, object] = field(default_factory=dict)
    slices: tuple[FileSlice, ...] = field(default=(), kw_only=True)
    partition_name: str = field(default="", kw_only=True)
    staged: tuple[StagedFile, ...] = field(default=(), kw_only=True)

    @property
    def num_items(self) -> int:
        return len(self.data)

    @property
    def nbytes(self) -> int:
        return sum(s.num_bytes for s in self.slices)

    def sources(self) -> list[str]:
        return list(self.data)

    def parts(self) -> tuple[FileSlice, ...]:
        """The slices, or one whole-file slice for each path."""
        return self.slices or tuple(FileSlice(path) for path in self.data)
