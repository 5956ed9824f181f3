"""`FileGroupTask`: files, or parts of files, to read; or files that were written.

One file of 100 GB is many tasks. What a part of a file is depends on its format, and is known to the splitter that made
the part (`stages/io/splitting.py`) and to the reader of that format; here it is numbers.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from gristmill.tasks.task import Task


@dataclass(frozen=True)
class FileSlice:
    """One file, or a part of it: `part` is what the file's splitter said, such as (first byte, byte behind it).

    `file_size` and `version` (modification time, or an object store's etag) identify the file's content, so that a
    changed input is noticed when a run is resumed.
    """

    path: str
    part: tuple[int, ...] | None = None  # None for all of it
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
