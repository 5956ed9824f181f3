"""`DocumentIterator` reads the records of a file; `DocumentIterateExtractStage` makes documents of them.

To the planner that is three stages. The first divides files where the iterator knows how, so that one file keeps all
cores busy. The second streams records, in batches of 64 or of 64 MiB: memory does not grow with a file. The third
extracts, and a batch is a task of its own: whatever a record does to `extract`, it can be taken out of its batch, and
what was made of others is not made again. So nothing that depends on time or chance may happen while iterating.

A quick extractor is not worth that: handing records from process to process costs as much as making documents of some
of them, and one of two cores would only read, or only extract. There the same process reads a part of a file, extracts
and goes on to the writer (`fuses_to_the_end`). If it dies, the part is begun again, batch by batch and in the end
record by record, as any task is that kills its workers (`engine/policies/retry.py`). A slow extractor that minds the
time itself, and so seldom ends its process, works like that too if there are many parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

from gristmill.errors import ConfigError, DownloadFailed, GristmillError, StageError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.io.files import Wrong
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.io.splitting import Splitter, WholeFiles
from gristmill.stages.text.download.base.download import DocumentDownloadStage
from gristmill.stages.text.download.base.extract import DocumentExtractor, Dropped, Extracted
from gristmill.stages.text.download.base.parts import parts_of_files
from gristmill.storage.open_read import read_start
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice, RecordBatch, Task
from gristmill.tasks.records import Record, name_of_record, record_bytes, records_table, why_not_sent

MAX_BATCH_BYTES = 64 * 1024**2  # of records: more leave as another batch
MAX_LEFT_OUT_BYTES = 8 * 1024**2  # of records that are left out, before they are reported
MAX_DOCUMENT_BYTES = 32 * 1024**2  # the same where records are the documents, and a batch becomes a file
MANY_PARTS = 8  # that keep a machine busy; with fewer, a slow extractor has its own processes, one for each core
_SAMPLE_BYTES = 1 << 12
NOT_EXTRACTED = "not_extracted"
REASONS = {NOT_EXTRACTED: "The extractor returned None for the record."}
NOT_READ = "not_read"
NOT_SENDABLE = "not_sendable"
NOT_JSON = "not_json"
KINDS = {
    NOT_JSON: "The record, which is the document, holds an object that no file can hold.",
    NOT_READ: "The iterator returned None for the file.",
    NOT_SENDABLE: "The record holds an object that cannot be sent to another process, such as a generator or a file.",
}


@dataclass(frozen=True)
class LeftOut:
    """What `iterate_part` may yield for a record that is not wanted at all: the record, and why."""

    record: Record
    why: Dropped


Found = dict[str, Any] | LeftOut | Quarantined
AnyStages = list[ProcessingStage[Task[object], Task[object]]]


class DocumentIterator(ABC):
    """Subclass it and write `iterate`.

    An iterator for files that can be cut says how in `split`, and reads parts in `iterate_part`. The same part must
    give the same records in the same order every time.
    """

    split: ClassVar[Splitter] = WholeFiles()
    block_bytes: ClassVar[int] = DEFAULT_BLOCK_BYTES  # about how large the parts of a file are
    declares_all_columns: ClassVar[bool] = False  # True: a record never has a field beside `output_columns`
    reads_urls: ClassVar[bool] = False  # True: `iterate_part` takes URLs, so that files need not be stored

    @abstractmethod
    def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a file, one dict each."""

    @abstractmethod
    def output_columns(self) -> list[str]:
        """Return the fields a record has."""

    def iterate_part(self, part: FileSlice) -> Iterable[Found]:
        """Yield the records of a part of a file, or of the whole if `part.part` is None.

        A `Quarantined` among them is put on record: what could not be read, where, and how many bytes that was. A
        `LeftOut` is counted as dropped, for the reason it has.
        """
        if part.part is not None:
            raise StageError(f"{type(self).__name__}: expected whole files, since it has no iterate_part; got {part}")
        found: Iterator[dict[str, Any]] | None = self.iterate(part.path)
        if found is None:  # how some iterators say that they cannot read a file
            said = f"{part.path}: expected {type(self).__name__}.iterate to give records; got None"
            return [Quarantined(said, NOT_READ, source=part.path, num_documents=0, lost_bytes=part.num_bytes)]
        return found

    def wrong_format(self, sample: bytes) -> Wrong:
        """What a file is instead, and what to do about it, if its first bytes (unpacked) say so for certain."""
        return None

    def check_ready(self) -> None:
        """Raise MissingDependency or ConfigError if something is missing; called while the plan is made."""

    def setup(self) -> None:
        """Load what is needed; called once in every worker."""


@dataclass(eq=False)
class DocumentIterateExtractStage(CompositeStage[FileGroupTask, DocumentBatch]):
    """Read the records of files, and make a document of each; without an extractor records are documents already.

    `record_limit`          records that are taken from each file, from its beginning
    `add_filename_column`   True adds the name of the file as `file_name`; a text is the name of the column
    `keep_columns`          fields of a record that its document has too, beside what the extractor makes of it
    `max_calls_per_worker`  accepted without effect. Nothing here grows with the files a worker has read;
                            `LocalExecutor(worker_max_tasks=...)` replaces workers for libraries that do
    """

    iterator: DocumentIterator
    extractor: DocumentExtractor | None = None
    record_limit: int | None = None
    add_filename_column: bool | str = True
    max_calls_per_worker: int | None = None
    _: KW_ONLY
    keep_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kind = type(self.iterator).__name__.lower()
        extracts = "" if self.extractor is None else f"_{type(self.extractor).__name__.lower()}"
        self.name = f"iterate_extract_{kind}{extracts}" if extracts else f"iterate_{kind}"
        self._own_name = self.name
        for option in ("record_limit", "max_calls_per_worker"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise ConfigError(f"{self.name}: expected {option} ≥ 1 or None; got {value!r}")
        self.filename_col = filename_column(self.add_filename_column, who=self.name)

    def decompose(self) -> AnyStages:
        columns = [*self.keep_columns, *([] if self.filename_col is None else [self.filename_col])]
        reading = _IterateFiles(self.iterator, self.filename_col, self.record_limit, extracts=bool(self.extractor))
        # Without an extractor it is a reader like any other, if it reads parts.
        reading._is_apart = isinstance(self.iterator.split, WholeFiles)
        if self.extractor is not None:
            reading.batch_records = self.extractor.batch_records
            is_divided = self.record_limit is None and not isinstance(self.iterator.split, WholeFiles)
            reading._is_apart = not (self.extractor.is_quick or (self.extractor.keeps_time and is_divided))
            reading._shares_from = 0 if self.extractor.is_quick else MANY_PARTS
        stages: list[ProcessingStage[Any, Any]] = [_SplitFiles(self.iterator, self.record_limit), reading]
        if self.extractor is not None:
            stages.append(_ExtractRecords(self.extractor, columns))
        named = None if self.name == self._own_name else self.name
        if named and self.extractor is not None:
            stages[1] = reading.with_(name=f"{named}_iterate")
        stages[-1] = stages[-1].with_(name=named, resources=self.resources, num_workers=self.num_workers())
        return stages


def filename_column(wanted: bool | str, *, who: str) -> str | None:  # noqa: FBT001  # as users know it
    """Return what the column of file names is called, or None if there is to be none."""
    if isinstance(wanted, bool):
        return "file_name" if wanted else None
    if not wanted:
        raise ConfigError(f"{who}: expected add_filename_column to be True, False or a name; got {wanted!r}")
    return wanted


@dataclass(eq=False)
class _SplitFiles(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Divide files into parts. The stage before does that, where it knows the files already."""

    fusible: ClassVar[bool] = False  # the worker that divides a file would read all of its parts

    iterator: DocumentIterator
    record_limit: int | None = None
    name: str = field(default="split_files", kw_only=True)

    def done_by(self, before: Sequence[ProcessingStage[Any, Any]]) -> Sequence[ProcessingStage[Any, Any]] | None:
        splitter = self._splitter
        last = before[-1] if before else None
        if isinstance(last, DocumentDownloadStage) and last.downloader.streams and not self.iterator.reads_urls:
            who = type(self.iterator).__name__
            raise ConfigError(f"{who}: expected files to be stored, since it does not read URLs; got download_dir=None")
        if isinstance(splitter, WholeFiles):
            return before
        if isinstance(last, DocumentDownloadStage):
            return [*before[:-1], last.splitting(splitter, self.iterator.block_bytes)]
        if isinstance(last, FilePartitioningStage) and last.split == "none" and last.files_per_partition is None:
            listing = last.with_()
            listing.__dict__["split"] = splitter
            return [*before[:-1], listing]
        return None

    @property
    def _splitter(self) -> Splitter:
        """How files are divided: not at all, where only their beginning is wanted."""
        return WholeFiles() if self.record_limit is not None else self.iterator.split

    def process(self, task: FileGroupTask) -> list[FileGroupTask]:
        return parts_of_files(task, self._splitter, self.iterator.block_bytes)


@dataclass(eq=False)
class _IterateFiles(ProcessingStage[FileGroupTask, RecordBatch | DocumentBatch]):
    """Stream the records of files, or of parts of files."""

    fuses_to_the_end: ClassVar[bool] = True
    makes_small_tasks: ClassVar[bool] = True
    transient_errors: ClassVar[tuple[type[BaseException], ...]] = (DownloadFailed,)  # of a file that is not stored

    iterator: DocumentIterator
    filename_col: str | None = None
    record_limit: int | None = None
    extracts: bool = field(default=True, kw_only=True)  # a later stage makes documents of the records
    batch_records: int = field(default=64, kw_only=True)
    _is_apart: bool = field(default=False, init=False, repr=False)
    _shares_from: int = field(default=0, init=False, repr=False)

    @property
    def fusible(self) -> bool:  # type: ignore[override]  # it depends on what follows it
        return not self._is_apart

    @property
    def fusible_from(self) -> int:  # type: ignore[override]  # likewise
        return self._shares_from

    def __post_init__(self) -> None:
        self.name = f"iterate_{type(self.iterator).__name__.lower()}"

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [] if self.extracts else self._columns()

    def columns(self) -> list[str] | None:
        self._check_format()
        return None if self.extracts or not self.iterator.declares_all_columns else self._columns()

    def reading(self, partitioning: FilePartitioningStage) -> "_IterateFiles":
        """Return a copy that looks into some of the files this stage lists, before a run."""
        changed = self.with_()
        changed.__dict__["_partitioning"] = partitioning
        return changed  # type: ignore[return-value]  # `with_` copies

    def _check_format(self) -> None:
        partitioning: FilePartitioningStage | None = self.__dict__.get("_partitioning")
        if partitioning is None:
            return
        for path in partitioning.some_files():
            try:
                sample = read_start(path, _SAMPLE_BYTES, storage_options=partitioning.storage_options)
            except GristmillError:
                continue  # damaged: the run puts it on record
            if (wrong := self.iterator.wrong_format(sample)) is not None:
                looks, remedy = wrong
                raise ConfigError(f"{self.stage_name()}: expected another format in {path!r}; got {looks}: {remedy}")

    def _columns(self) -> list[str]:
        return [*self.iterator.output_columns(), *([] if self.filename_col is None else [self.filename_col])]

    def check_ready(self) -> None:
        self.iterator.check_ready()

    def setup(self, worker_metadata: object = None) -> None:
        self.iterator.setup()

    def streams(self, task: FileGroupTask) -> bool:
        """Whether one of the files is more than a part, and could not be divided: others may help, not with reading."""
        most = self.iterator.block_bytes
        return any(part.part is None and not 0 < part.file_size <= most for part in task.parts())

    def process(self, task: FileGroupTask) -> Iterator[RecordBatch | DocumentBatch]:
        most_records = self.batch_records if self.extracts else None
        most_bytes = MAX_BATCH_BYTES if self.extracts else MAX_DOCUMENT_BYTES
        records: list[Record] = []
        size = 0
        left_out = _LeftOutRecords(self, task.dataset_name)
        try:
            for record in chain.from_iterable(self._records(part, left_out) for part in task.parts()):
                records.append(record)
                size += record_bytes(record)
                if len(records) == most_records or size >= most_bytes:
                    left_out.report()
                    yield self._batch(task, records)
                    records, size = [], 0
        except Exception:  # what came before it is good
            left_out.report()
            if records:
                yield self._batch(task, records)
            raise
        left_out.report()
        if records:
            yield self._batch(task, records)

    def _records(self, part: FileSlice, left_out: "_LeftOutRecords") -> Iterator[Record]:
        name = part.path.rpartition("/")[2]
        taken = 0
        for found in self.iterator.iterate_part(part):
            if isinstance(found, Quarantined):
                self.context.quarantine(found)
                continue
            if isinstance(found, LeftOut):
                left_out.add(found)
                continue
            given: object = found  # by a user's code
            if not isinstance(given, dict):
                who = f"{type(self.iterator).__name__}.iterate"
                raise StageError(f"{who}: expected to yield dicts; got {given!r:.200}")
            # A copy: records wait for one another here, and an iterator may fill the same dict again for each.
            record = dict(given)
            if self.filename_col is not None:
                record[self.filename_col] = name
            if (why := why_not_sent(record)) is None:
                yield record
            else:
                said = f"{type(self.iterator).__name__}.iterate: expected values that can be pickled; got {why}"
                named = name_of_record(record) or f"{name}#{taken}"
                self.context.quarantine(Quarantined(said, NOT_SENDABLE, document_id=named, source=part.path))
            taken += 1
            if taken == self.record_limit:
                return

    def _batch(self, task: FileGroupTask, records: list[Record]) -> RecordBatch | DocumentBatch:
        if self.extracts:
            return RecordBatch(task.dataset_name, records)
        try:
            table = records_table(records, self._columns())
        except StageError:  # the caller cannot take a file apart, so what is wrong is looked for here
            table = records_table(list(self._tellable(task, records)), self._columns())
        return DocumentBatch(task.dataset_name, table)

    def _tellable(self, task: FileGroupTask, records: list[Record]) -> Iterator[Record]:
        """Yield the records a table can hold; the others are put on record."""
        for record in records:
            try:
                records_table([record])
            except StageError as error:
                source = ", ".join(task.sources())
                lost = Quarantined(str(error), NOT_JSON, document_id=name_of_record(record), source=source)
                self.context.quarantine(lost)
            else:
                yield record


class _LeftOutRecords:
    """Records that are not wanted, held until there are enough to report together: one by one is slow."""

    def __init__(self, stage: _IterateFiles, dataset_name: str) -> None:
        self._stage = stage
        self._dataset_name = dataset_name
        self._held: dict[Dropped, list[Record]] = {}
        self._size = 0

    def add(self, found: LeftOut) -> None:
        self._held.setdefault(found.why, []).append(found.record)
        self._size += record_bytes(found.record) + 1
        if self._size > MAX_LEFT_OUT_BYTES:
            self.report()

    def report(self) -> None:
        for why, records in self._held.items():
            batch = RecordBatch(self._dataset_name, records)
            values = None if why.value is None else [why.value] * len(records)
            mask = [True] * len(records)
            self._stage.context.drop(batch, mask, reason=why.reason, values=values, threshold=why.threshold)
        self._held, self._size = {}, 0


@dataclass(eq=False)
class _ExtractRecords(ProcessingStage[RecordBatch, DocumentBatch]):
    """Make a document of each record."""

    extractor: DocumentExtractor
    kept_columns: list[str] = field(default_factory=list)  # of the record, beside what the extractor makes

    def __post_init__(self) -> None:
        self.name = f"extract_{type(self.extractor).__name__.lower()}"

    @property
    def fusible(self) -> bool:  # type: ignore[override]  # it is the extractor that knows
        return self.extractor.is_quick or self.extractor.keeps_time

    @property
    def deadline_s(self) -> float | None:  # type: ignore[override]
        return self.extractor.batch_deadline_s

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self._columns()

    def columns(self) -> list[str] | None:
        return self._columns() if self.extractor.declares_all_columns else None

    def _columns(self) -> list[str]:
        return [*self.extractor.output_columns(), *self.kept_columns]

    def check_ready(self) -> None:
        self.extractor.check_ready()

    def setup(self, worker_metadata: object = None) -> None:
        self.extractor.setup()

    def process(self, task: RecordBatch) -> DocumentBatch:
        documents: list[Record] = []
        dropped: dict[str, dict[int, Dropped]] = {}
        for row, record in enumerate(task.data):
            # A copy, because the batch may have to be processed again, and an extractor may change its record.
            found = self.extractor.extract(dict(record))
            if isinstance(found, dict):
                documents.append(found | {name: record.get(name) for name in self.kept_columns})
            elif isinstance(found, Quarantined):
                self.context.quarantine(_placed(found, task, row))
            else:
                why = self._why(found)
                dropped.setdefault(why.reason, {})[row] = why
        for reason, rows in dropped.items():
            mask = [row in rows for row in range(task.num_items)]
            values = [rows[row].value if row in rows else None for row in range(task.num_items)]
            measured = any(value is not None for value in values)
            threshold = next(iter(rows.values())).threshold
            self.context.drop(task, mask, reason=reason, values=values if measured else None, threshold=threshold)
        return DocumentBatch(task.dataset_name, records_table(documents, self._columns()))

    def _why(self, found: Extracted) -> Dropped:
        if found is None:
            return Dropped(NOT_EXTRACTED)
        if isinstance(found, Dropped):
            return found
        who = f"{type(self.extractor).__name__}.extract"
        raise StageError(f"{who}: expected a dict, None, Dropped or Quarantined; got {found!r:.200}")


def _placed(found: Quarantined, task: RecordBatch, row: int) -> Quarantined:
    """A record for quarantine with what the batch knows of it."""
    item = task.item(row)
    return replace(
        found,
        row=row,
        document=found.document or item.text,
        document_id=found.document_id or name_of_record(task.data[row]) or f"{task.task_id}#{row}",
        source=found.source or item.source,
        payload=item.payload if found.payload is None else found.payload,
    )
