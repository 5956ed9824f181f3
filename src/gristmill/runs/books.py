"""The books of a run: what is committed, here or in an earlier session, and the result made of it."""

import io
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, ClassVar, cast, overload
from weakref import WeakSet

import msgspec

from gristmill.engine.plan import AnyTask, Plan
from gristmill.metrics.snapshot import ErrorCount, ErrorCounts, ErrorExample, StageCounts, balance, of_record
from gristmill.metrics.tally import Distribution
from gristmill.runs.ledger import CommitRecord
from gristmill.runs.result_view import ShownInNotebooks
from gristmill.stages.context import Completer, CompletesRecords
from gristmill.storage.atomic_write import make_directory, stage_file
from gristmill.storage.file_system import StorageOptions, file_system, is_url
from gristmill.storage.paths import Made, Packed, PathList
from gristmill.tasks import FileGroupTask, StagedFile

if TYPE_CHECKING:
    from gristmill.engine.account import Efficiency

# `RunResult`: what `Pipeline.run` returns. A sequence of the final tasks, with the books of the run.


class LazyTasks(Sequence[AnyTask]):
    """Final tasks, unpacked when they are looked at.

    On a cluster that means fetched. Scripts stop the cluster first and look at their results then, so what stops it
    calls `fetch_all` first: afterwards nothing could be fetched any more.
    """

    _held: ClassVar[WeakSet["LazyTasks"]] = WeakSet()  # those that may still be looked at

    def __init__(self, unpack: list[Callable[[], AnyTask]]) -> None:
        self._unpack = unpack
        self._tasks: dict[int, AnyTask] = {}
        self._held.add(self)

    @classmethod
    def fetch_all(cls) -> None:
        """Unpack the tasks of every result that this program still holds."""
        for tasks in list(cls._held):
            list(tasks)

    __hash__ = object.__hash__

    @overload
    def __getitem__(self, index: int) -> AnyTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyTask]: ...
    def __getitem__(self, index: int | slice) -> AnyTask | list[AnyTask]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index not in self._tasks:
            self._tasks[index] = self._unpack[index]()
        return self._tasks[index]

    def __len__(self) -> int:
        return len(self._unpack)


@dataclass(repr=False)
class RunResult(ShownInNotebooks, Sequence[AnyTask]):
    """The final tasks (the files written, if the pipeline ends in a writer) and what became of every document.

    `print(result)` says it in words. `errors` are kept even where the run leaves no directory behind.
    """

    tasks: Sequence[AnyTask]
    counts: dict[str, StageCounts]
    output_files: Sequence[str] = ()
    rejects_files: Sequence[str] = ()
    quarantine_files: Sequence[str] = ()
    run_dir: str | None = None
    wall_s: float = 0.0
    resumed: bool = False
    already_finished: bool = False
    messages: list[str] = field(default_factory=list)
    errors: "list[ErrorCount]" = field(default_factory=list)  # by stage and kind, with an example of each
    peak_memory_bytes: int = 0
    efficiency: "Efficiency | None" = None  # of the session that ended the run; None if nothing was left to do
    found: dict[str, dict[str, object]] = field(default_factory=dict)  # stage -> what it has found out about documents

    @overload
    def __getitem__(self, index: int) -> AnyTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyTask]: ...
    def __getitem__(self, index: int | slice) -> AnyTask | list[AnyTask]:
        return self.tasks[index] if isinstance(index, int) else list(self.tasks[index])

    def __len__(self) -> int:
        return len(self.tasks)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, list) and list(self.tasks) == other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        from gristmill.runs.summary import summarise

        return summarise(self)

    def __repr__(self) -> str:
        books = f"read={self.read}, written={self.written}, dropped={self.dropped_total}"
        return f"RunResult({len(self)} tasks, {books}, quarantined={self.quarantined})"

    @property
    def read(self) -> int:
        """Documents the readers met, the malformed ones included."""
        return sum(c.read for c in self.counts.values())

    @property
    def created(self) -> int:
        """Documents made out of others."""
        return sum(c.created for c in self.counts.values())

    @property
    def written(self) -> int:
        """Documents that came out at the end."""
        return sum(c.written for c in self.counts.values())

    @property
    def quarantined(self) -> int:
        """Documents that could not be processed."""
        return sum(c.quarantined for c in self.counts.values())

    @property
    def lost_parts(self) -> int:
        """Files, or parts of files, that could not be read: how many documents they held is unknown."""
        return sum(c.lost_parts for c in self.counts.values())

    @property
    def lost_bytes(self) -> int:
        """The size of those parts."""
        return sum(c.lost_bytes for c in self.counts.values())

    @property
    def dropped(self) -> dict[str, dict[str, int]]:
        """Documents a stage left out: stage -> reason -> number."""
        return {name: dict(c.dropped) for name, c in self.counts.items() if c.dropped}

    @property
    def dropped_total(self) -> int:
        return sum(c.dropped_total for c in self.counts.values())

    @property
    def balanced(self) -> bool:
        """Whether read + created = written + dropped + quarantined."""
        return balance(list(self.counts.values())) == 0

    @property
    def stage_metrics(self) -> dict[str, dict[str, float]]:
        """Documents, bytes and seconds of each stage, and what else is counted there, including by its author."""
        always = ("documents_in", "documents_out", "quarantined", "bytes_in", "process_s")
        return {
            name: dict.fromkeys(always, 0) | c.numbers() | {"dropped": c.dropped_total} | c.counted
            for name, c in self.counts.items()
        }

    @property
    def observed(self) -> dict[str, dict[str, Distribution]]:
        """Values that stages have noted with `context.observe`: stage -> name -> how they are distributed."""
        return {
            stage: {name: Distribution(slots) for name, slots in sorted(c.observed.items())}
            for stage, c in self.counts.items()
            if c.observed
        }

    def to_json(self) -> dict[str, object]:
        """The books as one JSON object."""
        said = self.books() | {"output_files": list(self.output_files)}
        del said["tallies"]  # for programs that add runs up: `observed` tells people the same
        return said

    def books(self) -> dict[str, object]:
        """The same for a file: without the names of the output files, of which there may be millions, and with the
        tallies behind the figures of `observed`, so that those of several runs can be added up.
        """
        return {
            "read": self.read,
            "created": self.created,
            "written": self.written,
            "dropped": self.dropped,
            "quarantined": self.quarantined,
            "lost_parts": self.lost_parts,
            "lost_bytes": self.lost_bytes,
            "errors": [error.to_json() for error in self.errors],
            "output_files": [],
            "run_dir": self.run_dir,
            "wall_s": round(self.wall_s, 3),
            "resumed": self.resumed,
            "already_finished": self.already_finished,
            "balanced": self.balanced,
            "metrics": {stage: dict(sorted(c.counted.items())) for stage, c in self.counts.items() if c.counted},
            "observed": {
                stage: {name: values.to_json() for name, values in own.items()} for stage, own in self.observed.items()
            },
            "tallies": {stage: c.observed for stage, c in self.counts.items() if c.observed},
            "efficiency": None if self.efficiency is None else self.efficiency.to_json(),
            "found": self.found,
        }


# What is in the quarantine of a run, when it ends: `completed_text` and `read_errors`.
#
# Stages that noted facts about their partitions first complete the records, say with line numbers. Then the files
# are read once, line by line, and counted by error: so the errors of a run in a temporary directory outlive it, and
# those of earlier sessions count like the latest one's. Only the documents shown as examples are ever decoded.


class _Record(msgspec.Struct):
    """A line as `SideFiles` writes it, without its long fields."""

    stage: str
    error: str
    kind: str
    task: str = ""
    source: str = ""
    line: int | None = None
    block_start: int | None = None
    row: int | None = None
    document_id: str = ""
    num_documents: int = 1
    lost_bytes: int = 0


class _Shown(msgspec.Struct):
    """The long fields."""

    traceback: str = ""
    document: str = ""
    payload: str = ""


_records = msgspec.json.Decoder(_Record)
_shown = msgspec.json.Decoder(_Shown)


def read_errors(quarantine_files: Iterable[str], options: StorageOptions | None = None) -> list[ErrorCount]:
    """Count what the files hold. A damaged line counts as one: the books know the documents anyway."""
    counts = ErrorCounts()
    for path in quarantine_files:
        try:
            file = file_system(path, options).open_read(path)
            with file if is_url(path) else _in_large_pieces(file) as lines:
                for line in lines:
                    _count(counts, path, line)
        except FileNotFoundError:
            counts.add(_damaged(path, "a file of the quarantine is gone"))
    return counts.all()


def _in_large_pieces(file: BinaryIO) -> BinaryIO:
    """Buffer a file of this machine, which would otherwise be read byte by byte to find the ends of lines."""
    return io.BufferedReader(cast("io.RawIOBase", file))


def _damaged(path: str, message: str) -> ErrorCount:
    return ErrorCount("quarantine", "damaged_record", message, example=ErrorExample(source=path))


def _count(counts: ErrorCounts, path: str, line: bytes) -> None:
    try:
        counts.add(_error(counts, path, line))
    except (msgspec.DecodeError, UnicodeDecodeError):
        counts.add(_damaged(path, "a line of the quarantine is damaged"))


def _error(counts: ErrorCounts, path: str, line: bytes) -> ErrorCount:
    """What a line says; its long fields are decoded only if they will be shown, and may be what is damaged."""
    record = _records.decode(line)
    # Until all blocks of a file are read, a line is known only by its place in the block.
    line_number = record.line if not record.block_start else None
    example = ErrorExample(record.document_id, record.source, line_number, record.row, record.task)
    error = of_record(
        record.stage,
        record.kind,
        record.error,
        example,
        num_documents=record.num_documents,
        lost_bytes=record.lost_bytes,
    )
    if counts.would_show(error):
        long = _shown.decode(line)
        beside = f"{path.rpartition('/')[0]}/{long.payload}" if long.payload else ""
        shown = " in ".join(filter(None, (long.document, beside)))  # for an item that is bytes: what it is, and where
        error.example = msgspec.structs.replace(example, traceback=long.traceback, document=shown)
    return error


def completers_of(plan: Plan, committed: Iterable[CommitRecord]) -> list[Completer]:
    """What the stages make of the facts they noted."""
    facts: dict[str, list[bytes]] = {}
    for record in committed:
        for stage, fact in record.facts:
            facts.setdefault(stage, []).append(fact)
    stages = {name: stage for group in plan.groups for name, stage in zip(group.names, group.stages, strict=True)}
    return [
        stage.completer(facts[name])
        for name, stage in stages.items()
        if name in facts and isinstance(stage, CompletesRecords)
    ]


def completed_file(
    file: StagedFile, completers: Sequence[Completer], staging: str, storage_options: StorageOptions
) -> StagedFile:
    """Return a quarantine file with its records completed, staged again; the same file if nothing was left to do."""
    if file.is_payload:
        return file
    with file_system(file.final, storage_options).open_read(file.final) as content:
        text = completed_text(content.read().decode(encoding="utf-8", errors="replace"), completers)
    if text is None:
        return file
    make_directory(staging, storage_options=storage_options)
    name = file.final.rpartition("/")[2]
    written = stage_file(f"{staging}/{name}.completed", [text.encode()], storage_options=storage_options)
    return StagedFile(written.path, file.final, written.num_bytes, file.num_documents, written.checksum)


def completed_text(text: str, completers: Sequence[Completer]) -> str | None:
    """Return the text of a quarantine file with its records completed, or None if nothing was left to complete.

    Text that is damaged stays as it is: a later session that resumes the run compares the file with its checksum, and
    makes it again.
    """
    try:
        entries = [json.loads(line) for line in text.split("\n") if line]
        changed = [complete(entry) for entry in entries for complete in completers]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not any(changed):
        return None
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


_PackedFile = tuple[int, str, int, str, int, int, str]  # numbers of two directories, names in them; the rest as it is
_PackedRecord = tuple[list[_PackedFile], list[_PackedFile], list[tuple[str, bytes]]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_PackedRecord).decode
NOTHING = -1  # tasks that are kept in memory leave no files


class CommittedRecords(Mapping[int, CommitRecord]):
    """Committed partitions by number, in order, without their counts. About 150 bytes each: there may be millions."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names  # of all partitions
        # Where each is in `_packed`, counted from 1; 0: not committed; NOTHING: committed, with nothing to show for it.
        self._places = array("q", bytes(8 * len(names)))
        self._number = 0
        self.has_files = False  # whether any of them has
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
        self.has_side_files = self.has_side_files or any(not file.is_payload for file in record.side_files)
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
        """A path as its directory's number and the name in it: directories are few."""
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
        """Return what to tell about stages that returned nothing for everything they were given, once for each."""
        hints = []
        for name, counts in self.totals.items():
            if counts.returned_none and counts.returned_none == counts.documents_in and name not in self._hinted:
                self._hinted.add(name)
                hints.append(
                    f"stage {name} returned None for all {counts.documents_in:,} documents it was given so far, so "
                    "they count as dropped. If it is meant to change or pass them on, is a `return` missing?"
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
        # Rejects lie directly in their directory; the quarantine may be below the same one.
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
    """A task for each partition that wrote files, made when it is asked for."""

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
