"""`Barrier`: nothing behind it starts before everything ahead of it is done. Rows stay with their source partition.

It is the exchange for stages that have to know something about all rows before they judge the first one, such as the
quantiles of a score. Such a stage is a `LooksBack`: it is shown the rows of the whole dataset once, in the driver,
between the two segments. Rows go through files of the run directory and come back as they were: the same batches, in
the same order, under the same names, so the output has the files it would have had without a barrier.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.exchange.exchange import Exchange
from gristmill.stages.exchange.read_partition import read_rows
from gristmill.stages.io.partitions import Partitions
from gristmill.storage.atomic_write import write_file
from gristmill.tasks import FileGroupTask, FileSlice, TableBatch

FilesOf = Callable[[int], Sequence[str]]  # number of a source partition -> the files its rows are in
Rows = Callable[[], Iterable[TableBatch]]  # all rows of a dataset, a batch at a time; may be called again


class Findings:
    """What stages have found out about a dataset, left in the run directory for the user and for later runs.

    A file is a JSON object with an entry for each stage, by the column it adds. It is written as a whole: stages look
    back in every session of a run, so what an earlier run has left in the directory is not needed and not kept.
    """

    def __init__(self, run_dir: Path | None) -> None:
        self._run_dir = run_dir  # None where the run keeps none
        self._files: dict[str, dict[str, object]] = {}

    def save(self, file: str, name: str, entry: Mapping[str, object]) -> None:
        """Write an entry beside those of other stages of the run."""
        entries = self._files.setdefault(file, {})
        entries[name] = dict(entry)
        if self._run_dir is not None:
            write_file(str(self._run_dir / file), [json.dumps(entries, indent=1).encode() + b"\n"])


@runtime_checkable
class LooksBack(Protocol):
    """A stage behind a barrier that has to know all rows before its first task."""

    def look_back(self, rows: Rows, findings: Findings) -> AnyStage:
        """Return a copy of the stage that knows what it has to.

        The same rows must give the same copy: a run that is continued asks again.
        """
        ...


@dataclass(eq=False)
class Barrier(Exchange):
    """Wait here until everything ahead is done."""

    name: str = "barrier"

    def partition_count(self, input_bytes: int) -> int:
        """One in each file that is written."""
        return 1

    def _second_half(self) -> AnyStage:
        return ReadBack(name=f"{self.stage_name()}_read")

    def _tasks_behind(
        self, directory: str, number: int, before: Sequence[str], input_bytes: int
    ) -> Sequence[FileGroupTask]:
        return SamePartitions(directory.rpartition("/")[2], before, input_bytes)


class SamePartitions(Partitions):
    """The source partitions of the segment before, whose rows are read again."""

    def __init__(self, label: str, names: Sequence[str], num_bytes: int, files_of: FilesOf | None = None) -> None:
        self._label = label
        self._names = names
        self._num_bytes = num_bytes
        self._files_of = files_of  # known when the segment before is done

    def with_files(self, files_of: FilesOf) -> Self:
        """Return the same partitions, with the files their rows are in."""
        return type(self)(self._label, self._names, self._num_bytes, files_of)

    @property
    def names(self) -> Sequence[str]:
        return self._names

    @property
    def files(self) -> Sequence[tuple[str, int, str]]:
        return [(self._label, 0, "")]  # the name alone: a run in a moved directory is the same run

    @property
    def nbytes(self) -> int:
        return self._num_bytes

    def __len__(self) -> int:
        return len(self._names)

    def _make(self, index: int) -> FileGroupTask:
        return FileGroupTask(
            self._label,
            [] if self._files_of is None else list(self._files_of(index)),
            slices=(FileSlice(self._label, num_bytes=self._num_bytes // len(self)),),
            partition_name=self._names[index],
        )


@dataclass(eq=False)
class ReadBack(ProcessingStage[FileGroupTask, TableBatch]):
    """Read the batches of one source partition again, one at a time."""

    name: str = field(default="barrier_read", kw_only=True)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def process(self, task: FileGroupTask) -> TableBatch | Iterator[TableBatch] | None:
        if len(task.data) > 1:
            return read_batches(task.data)
        return next(read_batches(task.data), None)


def read_batches(files: Iterable[str]) -> Iterator[TableBatch]:
    """Yield what was written ahead of a barrier: one batch per file, mapped and not copied."""
    for path in files:
        batch = read_rows(Path(path), 0)
        if batch is not None:
            yield batch


def in_order(files: Iterable[str]) -> list[str]:
    """Return the files of one source partition in the order of their batches: number 10,000 comes behind 9,999.

    >>> in_order(["x/a.10000.arrow", "x/a.9999.arrow"])
    ['x/a.9999.arrow', 'x/a.10000.arrow']
    """
    return sorted(files, key=lambda path: [int(part) if part.isdecimal() else -1 for part in path.split(".")])
