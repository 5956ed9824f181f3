"""The books of a run: what is committed, here or in an earlier session, and the result made of it."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine.ledger import CommitRecord
from gristmill.engine.plan import AnyTask, Plan
from gristmill.metrics.stage_counts import StageCounts
from gristmill.runs.result import LazyTasks, RunResult
from gristmill.storage.file_list import Made, Packed, PathList
from gristmill.tasks import FileGroupTask, StagedFile

if TYPE_CHECKING:
    from collections.abc import Callable

_PackedFile = tuple[int, str, int, str, int, int, str]  # numbers of two directories, names in them; the rest as it is
_PackedRecord = tuple[list[_PackedFile], list[_PackedFile], list[tuple[str, bytes]]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_PackedRecord).decode
NOTHING = -1  # tasks that are kept in memory leave none of it


class CommittedRecords(Mapping[int, CommitRecord]):
    """Committed partitions by number, in order, without their counts. About 150 bytes each: there may be millions."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names  # of all partitions
        # Where each is in `_packed`, counted from 1; 0: not committed; NOTHING: committed, with nothing to its name.
        self._places = array("q", bytes(8 * len(names)))
        self._number = 0
        self.has_files = False  # any of them
        self.has_side_files = False
        self._packed = Packed()
        self._directories: list[str] = []
        self._directory_numbers: dict[str, int] = {}

    def add(self, record: CommitRecord) -> None:
        """Enter a record, in place of an earlier one of its partition."""
        self._number += not self._places[record.root]
        if not (record.files or record.side_files or record.facts):
            self._places[record.root] = NOTHING
            return
        files = [self._pack(file) for file in record.files]
        side_files = [self._pack(file) for file in record.side_files]
        self._packed.append(_encode((files, side_files, record.facts)))
        self.has_files = self.has_files or bool(files)
        self.has_side_files = self.has_side_files or bool(side_files)
        self._places[record.root] = len(self._packed)

    def __contains__(self, root: object) -> bool:
        return isinstance(root, int) and 0 <= root < len(self._places) and self._places[root] != 0

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[int]:
        return (root for root, place in enumerate(self._places) if place)

    def __getitem__(self, root: int) -> CommitRecord:
        if root not in self:
            raise KeyError(root)
        place = self._places[root]
        if place == NOTHING:
            return CommitRecord(root, self._names[root], (), (), (), ())
        packed = _decode(self._packed[place - 1])
        files, side_files = (tuple(map(self._unpack, some)) for some in packed[:2])
        return CommitRecord(root, self._names[root], files, side_files, (), tuple(packed[2]))

    def _pack(self, file: StagedFile) -> _PackedFile:
        temporary, final = self._cut(file.temporary), self._cut(file.final)
        return (*temporary, *final, file.num_bytes, file.num_documents, file.checksum)

    def _unpack(self, packed: _PackedFile) -> StagedFile:
        place, name, final_place, final_name, num_bytes, num_documents, checksum = packed
        temporary, final = self._directories[place] + name, self._directories[final_place] + final_name
        return StagedFile(temporary, final, num_bytes, num_documents, checksum)

    def _cut(self, path: str) -> tuple[int, str]:
        """A path as the number of its directory and the name in it: directories are few."""
        cut = path.rfind("/") + 1
        number = self._directory_numbers.setdefault(path[:cut], len(self._directories))
        if number == len(self._directories):
            self._directories.append(path[:cut])
        return number, path[cut:]


class Books:
    """Committed partitions by number."""

    def __init__(self, plan: Plan, records: Mapping[int, CommitRecord]) -> None:
        self.plan = plan
        self.records = CommittedRecords(plan.source_names)  # without their counts, which are in `totals`
        self.totals = {name: StageCounts() for name in plan.stage_names}  # of every stage over everything committed
        self.input_bytes_done = 0
        self._hinted: set[str] = set()  # stages
        self.tasks: dict[int, list[Callable[[], AnyTask]]] = {}  # final tasks of a pipeline without a writer at its end
        for record in records.values():
            self.add(record)
        self.resumed = len(records)

    def take_hints(self) -> list[str]:
        """Return what to tell about stages that gave back nothing for all they were given, once for each."""
        hints = []
        for name, counts in self.totals.items():
            if counts.returned_none and counts.returned_none == counts.documents_in and name not in self._hinted:
                self._hinted.add(name)
                hints.append(
                    f"stage {name} returned None for all {counts.documents_in:,} documents it was given so far, so "
                    "they count as dropped. If it is meant to change or pass them on, does it forget `return`?"
                )
        return hints

    def add(self, record: CommitRecord) -> None:
        """Enter a committed partition."""
        for name, counts in record.counts:
            self.totals[name].add(counts)
        self.input_bytes_done += self.plan.sources[record.root].nbytes
        self.records.add(record)

    def side_files(self, rejects_path: str | None) -> tuple[PathList, PathList]:
        """Return the files of rejected and of quarantined documents, in the order of the source partitions."""
        # Directly in their directory: the quarantine may be below the same one.
        directory = (rejects_path or "").rstrip("/")
        rejects, quarantine = PathList(), PathList()
        records = self.records.values() if self.records.has_side_files else ()
        for file in chain.from_iterable(record.side_files for record in records):
            if file.is_payload:
                continue
            is_rejects = directory and file.final.rpartition("/")[0] == directory
            (rejects if is_rejects else quarantine).append(file.final)
        return rejects, quarantine

    def result(self, *, run_dir: str | None, rejects_path: str | None) -> RunResult:
        """Return the result, tasks and files in the order of the source partitions."""
        files, roots = PathList(), array("q")
        for root, record in self.records.items() if self.records.has_files else ():
            for file in record.files:
                files.append(file.final)
            if record.files:
                roots.append(root)
        rejects, quarantine = self.side_files(rejects_path)
        if self.plan.ends_in_writer:
            tasks: Sequence[AnyTask] = _WrittenTasks(self.records, roots)
        else:
            tasks = LazyTasks([unpack for root in sorted(self.tasks) for unpack in self.tasks[root]])
        return RunResult(
            tasks=tasks,
            counts=self.totals,
            output_files=files,
            rejects_files=rejects,
            quarantine_files=quarantine,
            run_dir=run_dir,
            resumed=self.resumed > 0,
        )


class _WrittenTasks(Made[AnyTask]):
    """A task for each partition of which files were written, made when it is asked for."""

    def __init__(self, records: CommittedRecords, roots: "array[int]") -> None:
        self._records = records
        self._roots = roots

    def __len__(self) -> int:
        return len(self._roots)

    def _make(self, index: int) -> AnyTask:
        record = self._records[self._roots[index]]
        task = FileGroupTask(record.name, [file.final for file in record.files], partition_name=record.name)
        task.task_id = record.name
        return task
