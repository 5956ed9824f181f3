"""`Task`, the unit that flows through a pipeline: some data, where it came from, and what happened to it.

A task's id is given by the engine and derives from the source partition it descends from, so the same input has the
same ids in every run, on every executor. Nothing here does I/O.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

T = TypeVar("T")
_PERF_NUMBERS = ("process_time", "actor_idle_time", "input_data_size_mb", "num_items_processed")


class StagePerfStats(msgspec.Struct):
    """What one stage did to one task."""

    stage_name: str
    process_time: float = 0.0
    actor_idle_time: float = 0.0
    input_data_size_mb: float = 0.0
    num_items_processed: int = 0
    custom_metrics: dict[str, float] = {}

    def items(self) -> list[tuple[str, float]]:
        """Return the numbers by name; the stage's own as `custom.<name>`."""
        own = [(f"custom.{name}", value) for name, value in self.custom_metrics.items()]
        return [(name, getattr(self, name)) for name in _PERF_NUMBERS] + own

    def to_dict(self) -> dict[str, object]:
        """Return the name of the stage and the numbers."""
        return {"stage_name": self.stage_name, **dict(self.items())}


@cache
def _slots_of(kind: Hashable) -> tuple[str, ...]:
    """Attributes of a class that are not in the `__dict__` of its instances."""
    given = [vars(each).get("__slots__", ()) for each in kind.__mro__]  # type: ignore[attr-defined]  # a class
    names = [name for slots in given for name in ([slots] if isinstance(slots, str) else slots)]
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"})


@dataclass
class Task(Generic[T]):
    """A small batch of data with a history.

    Subclass `Batch` for a new kind of data that comes in bulk, and this one for what cannot be divided.
    `counts_documents` is False for tasks that only steer the work (paths to read, files written): their items are not
    in the books.
    """

    counts_documents: ClassVar[bool] = True

    dataset_name: str
    data: T
    _stage_perf: list[StagePerfStats] = field(default_factory=list)
    _metadata: dict[str, object] = field(default_factory=dict)
    task_id: str = field(default="", kw_only=True)  # what is given does not last: in a pipeline the engine names tasks

    @property
    def num_items(self) -> int:
        """How many documents (images, clips, ...) the task holds."""
        raise NotImplementedError(f"{type(self).__name__}: a Task must say its num_items")

    @property
    def nbytes(self) -> int:
        """About how much memory the data takes; 0 if unknown."""
        return 0

    @property
    def content_bytes(self) -> int:
        """Its bytes in the books. Unlike `nbytes`, they must not depend on what happens to be parsed or cached."""
        return self.nbytes

    def validate(self) -> bool:
        """Return False if the data is not what the type promises."""
        return True

    def add_stage_perf(self, perf: StagePerfStats) -> None:
        """Append what a stage did to the history."""
        self._stage_perf.append(perf)

    def sources(self) -> list[str]:
        """Return the files the data came from, as far as they are known."""
        known = self._metadata.get("source_files")
        return [str(path) for path in known] if isinstance(known, list) else []

    def inherit(self, parent: "Task[Any]") -> None:
        """Take over the metadata of a parent, if the task has none itself."""
        if not self._metadata and parent._metadata:
            self._metadata = dict(parent._metadata)

    def settle(self) -> None:
        """Called when a stage has returned the task: from then on nothing that the stage still holds may change it."""

    def __copy__(self) -> Self:
        # A worker copies every task it takes up. By default `copy` works as a pickle does: four times as slow.
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        for name in _slots_of(type(self)):  # type: ignore[arg-type]  # a class is hashable
            if hasattr(self, name):
                setattr(new, name, getattr(self, name))
        return new

    def descended_from(self, parent: "Task[Any]", *, new_items: bool = False) -> "Task[T]":
        """Take over from the input what a stage need not pass on itself; return the task that goes on, mostly this one.

        `new_items`: the stage makes different items of those it gets, so that nothing of a single item carries over.
        """
        del new_items
        self.inherit(parent)
        if self.counts_documents and not parent.counts_documents and parent.sources():
            self._metadata.setdefault("source_files", parent.sources())
        return self


# `FileGroupTask`: files, or parts of files, to read; or files that were written.
#
# One file of 100 GB is many tasks. What a part of a file is depends on its format, and is known to the splitter that
# made the part (`stages/io/splitting.py`) and to the reader of that format; here it is numbers.


class FileSlice(msgspec.Struct, frozen=True):
    """One file, or a part of it: `part` is what the file's splitter gave, such as (first byte, byte after it).

    `file_size` and `version` (modification time, or an object store's etag) identify the file's content, so that a
    changed input is noticed when a run is resumed.
    """

    path: str
    part: tuple[int, ...] | None = None  # None for all of it
    file_size: int = 0
    version: str = ""
    num_bytes: int = 0  # expected bytes of this part, for scheduling
    # How many bytes of the plan one of its bytes stands for: where a file's size was unknown, the plan assumed one.
    weight: float = 1.0


class StagedFile(msgspec.Struct, frozen=True):
    """A file written under a temporary name. It appears as `final` once the ledger has committed it."""

    temporary: str
    final: str
    num_bytes: int
    num_documents: int
    checksum: str  # "xxh3:<32 hex digits>" of the bytes

    @property
    def is_payload(self) -> bool:
        """Whether a side file records no item: it is the payload of one, or holds what was measured on many.

        The record beside a payload describes its item, and counts it.
        """
        return self.num_documents == 0


@dataclass
class FileGroupTask(Task[list[str]]):
    """Paths, and which parts of the files are meant.

    `slices` is empty when whole files are meant and nothing is known about them. `partition_name` names what is
    written from this task; `staged` lists files that are written but not yet published.
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

    @property
    def weight(self) -> float:
        """How many bytes of the plan one byte of its files stands for."""
        return self.slices[0].weight if self.slices else 1.0

    def sources(self) -> list[str]:
        return list(self.data)

    def parts(self) -> tuple[FileSlice, ...]:
        """The slices, or one whole-file slice for each path."""
        return self.slices or tuple(FileSlice(path) for path in self.data)


# Tasks without data.


@dataclass
class SentinelTask(Task[None]):
    """A task that says something by its mere presence."""

    counts_documents: ClassVar[bool] = False

    dataset_name: str = ""
    data: None = field(default=None)

    @property
    def num_items(self) -> int:
        return 0


@dataclass
class EmptyTask(SentinelTask):
    """A start signal for the first stage: what a pipeline starts from when it is given nothing."""

    task_id: str = field(default="0", kw_only=True)


class NoneTask(SentinelTask):
    """Known from elsewhere as the result of a stage that returned None. Here None is enough."""


class FailedTask(SentinelTask):
    """Known from elsewhere as what is left of a task that failed. Here its documents are in quarantine."""
