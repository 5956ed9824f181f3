"""Taking a failed task apart: which of its documents make the stage fail?

ISOLATE: the task is tried once more as a whole; if it fails again it is halved until single documents are left, at most
2 log2(n) probes for each bad one. STEP: its workers died, so every document is tried alone, with a crumb left before
each: if the process dies, the driver knows which document it was. Probes are thrown away. What is kept is one call with
the good documents, so the output is the same as if the bad ones had never been there.
"""

import contextlib
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gristmill.engine.commands import Care
from gristmill.engine.faults import FAILED_DOCUMENTS, Fault, fault_of
from gristmill.engine.plan import AnyStage, AnyTask, Group
from gristmill.secrets import without_secrets, without_url_secrets
from gristmill.stages.context import PAYLOADS_DIR, Quarantined, Rejected, StageContext
from gristmill.storage.atomic_write import Chunk, explain, explained, force_file, machine_error, remove, stage_file
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import Batch, FileGroupTask, ItemRecord, StagedFile
from gristmill.tasks.batch import Payload, divided, extension_of, number_or_text, payload_bytes
from gristmill.worker.failing import account_of, count_errors
from gristmill.worker.job import Job

# Rejected and quarantined items leave a worker as files beside the output, published with it.
#
#     <directory>/part-0-0000-s02.jsonl                 a record a line: which stage, why, which item, from where
#     <directory>/payloads/part-0-0000-s02-00003.jpg    an item that is bytes, whole, as a file that can be opened
#
# Text is in the record itself. All files of a call are staged under temporary names and committed together with what
# the partition gave, so a record and its payload are there both or not at all. What the bytes mean is the batch's
# business: nothing here knows a kind of item.

MAX_DOCUMENT_CHARS = 1 << 20  # of an item in words; the record says where the whole of it is


class SideFiles:
    """Writes what the stages of one group reject and quarantine."""

    def __init__(
        self,
        group: Group,
        rejects_path: str | None,
        quarantine_path: str | None,
        options: tuple[StorageOptions | None, StorageOptions | None] = (None, None),
        stages_before: int = 0,
    ) -> None:
        self._names = group.names
        self._first_stage = stages_before + group.first_stage
        self._rejects_path = rejects_path
        self._quarantine_path = quarantine_path
        self._rejects_options, self._quarantine_options = options  # where they are on a store

    def write(self, index: int, name: str, item_id: str, context: StageContext) -> list[StagedFile]:
        """Write what one call of stage `index` reported; `name` is unique in the run and the same in every attempt."""
        stage = self._names[index]
        stem = f"{name}-s{self._first_stage + index:02d}"
        staged = []
        if context.rejects and self._rejects_path:
            sheet = _Sheet(self._rejects_path, stem, context, self._rejects_options)
            for rejected in context.rejects:
                sheet.add_rejected(stage, rejected)
            staged += sheet.staged()
        if context.quarantined and self._quarantine_path:
            sheet = _Sheet(self._quarantine_path, stem, context, self._quarantine_options)
            for record in context.quarantined:
                sheet.add_quarantined(stage, item_id, record)
            staged += sheet.staged()
        return staged

    @staticmethod
    def discard(staged: Iterable[StagedFile], options: StorageOptions | None = None) -> None:
        """Remove files of a trial."""
        for file in staged:
            remove(file.temporary, storage_options=options)


class _Sheet:
    """The records of one call, and the payloads beside them."""

    def __init__(self, directory: str, stem: str, context: StageContext, options: StorageOptions | None) -> None:
        self._directory = directory.rstrip("/")
        self._stem = stem
        self._context = context
        self._options = options
        self._lines: list[bytes] = []
        self._payloads: list[StagedFile] = []
        self._items = 0

    def add_rejected(self, stage: str, rejected: Rejected) -> None:
        batch, size = rejected.items, rejected.items.num_items
        values = rejected.values or (None,) * size
        notes: dict[str, Sequence[object]] = {
            "reject_stage": [stage] * size,
            "reject_reason": [rejected.reason] * size,
            "reject_value": [None if value is None else _value(value) for value in values],
            "reject_threshold": [rejected.threshold] * size,
        }
        self._items += size
        lines = _json_lines(batch, notes | _origins(batch))
        if lines is not None:
            self._lines += lines
            return
        for row in range(size):
            item = shown_item(batch, row)
            fields: dict[str, object] = {
                "id": item.id or f"{batch.task_id}#{row}",
                "source": without_url_secrets(item.source),
                "preview": item.preview,
                "text": item.text[:MAX_DOCUMENT_CHARS],
            }
            fields |= {name: column[row] for name, column in notes.items()}
            self._lines.append(_line(fields | self._kept(item.payload, item.extension)))

    def add_quarantined(self, stage: str, item_id: str, record: Quarantined) -> None:
        fields: dict[str, object] = {
            "stage": stage,
            "task": item_id,
            "error": record.error,
            "kind": record.kind,
            "source": record.source,
            "line": record.line,
            "block_start": record.block_start,
            "row": record.row,
            "document_id": record.document_id,
            "num_documents": record.num_documents,
            "lost_bytes": record.lost_bytes,
            "traceback": record.traceback,
            "document": record.document[:MAX_DOCUMENT_CHARS],
        }
        self._items += 1
        self._lines.append(_line(fields | self._kept(record.payload, record.extension)))

    def _kept(self, payload: Payload | None, extension: str) -> dict[str, object]:
        """Stage the payload of an item; return what its record says about it."""
        if payload is None:
            return {}
        view = payload_bytes(payload)
        name = f"{PAYLOADS_DIR}/{self._stem}-{len(self._payloads):05d}{extension_of(view, extension)}"
        self._payloads.append(self._stage(name, [view], items=0))
        return {"payload": name}

    def staged(self) -> list[StagedFile]:
        """Stage the records; return all files, records first."""
        return [self._stage(f"{self._stem}.jsonl", self._lines, items=self._items), *self._payloads]

    def _stage(self, name: str, chunks: Iterable[Chunk], *, items: int) -> StagedFile:
        final = f"{self._directory}/{name}"
        with explained(final):
            temporary = self._context.staging_path(self._directory, name) or final
            written = stage_file(temporary, chunks, storage_options=self._options)
            if self._context.durable:
                force_file(written.path)
        return StagedFile(written.path, final, written.num_bytes, items, written.checksum)


def _origins(batch: Batch[object]) -> dict[str, Sequence[object]]:
    """Which items these are and where they came from, for records that are the items themselves with more fields."""
    from gristmill.tasks import TableBatch  # which needs Arrow; a worker without tables does not

    ids: list[object] = [None] * batch.num_items
    if isinstance(batch, TableBatch):
        with contextlib.suppress(Exception):  # a column of its author's that cannot be read: a number is an id too
            ids = batch.column("id").to_pylist() if batch.has_column("id") else ids
    return {
        "reject_id": [f"{batch.task_id}#{row}" if name is None else str(name) for row, name in enumerate(ids)],
        "reject_source": [without_url_secrets(", ".join(batch.sources()))] * batch.num_items,
    }


def _json_lines(batch: Batch[object], notes: dict[str, Sequence[object]]) -> list[bytes] | None:
    try:
        return batch.json_lines(notes)
    except Exception:  # its author's code: item by item there is more to say
        return None


def shown_item(batch: Batch[object], row: int) -> ItemRecord:
    """One item as it is written down. What broke a stage may break the batch's own `item`: then that is said."""
    try:
        item = batch.item(row)
        texts = (str(item.id), str(item.source), str(item.preview), str(item.text))
        payload = None if item.payload is None else payload_bytes(item.payload)
        return ItemRecord(*texts, payload, str(item.extension))
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    return ItemRecord(source=", ".join(batch.sources()), preview=f"({type(batch).__name__}.item raised {problem})")


def _value(value: object) -> float | str | None:
    """A measured value as a record has it: a number, or text of no great length, whatever a stage gave."""
    try:
        plain = number_or_text(value, MAX_DOCUMENT_CHARS)
        return float(plain) if isinstance(plain, bool | int | float) else plain
    except Exception as error:  # its author's code, or a number without end: the item is what counts
        return f"({type(value).__name__} that cannot be shown: {type(error).__name__})"


def _line(fields: dict[str, object]) -> bytes:
    # Half a surrogate pair, as in a name that is not UTF-8, is not valid JSON for every reader of it.
    sound = {key: _sound(value) if isinstance(value, str) else value for key, value in fields.items()}
    return json.dumps(sound, ensure_ascii=True, separators=(",", ":"), default=number_or_text).encode() + b"\n"


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


LeaveCrumb = Callable[[int, int, int], None]  # stage, first row, end row
Result = AnyTask | list[AnyTask] | Iterator[AnyTask] | None
Process = Callable[[int, AnyTask, StageContext], Result]  # the first: which stage
Bad = dict[int, Quarantined]  # by row

BEYOND_LIMIT = 10  # bad documents of a batch beyond what the run may have: few more are cheap, and the batch counts
MAX_ERROR_CHARS = 2_000  # of an error: some put the whole document into it
MAX_TRACE_CHARS = 20_000
SEARCHED_CHARS = 100_000  # of an error, for secrets: many times what is kept of it


class StageRaised(Exception):  # carries a user's exception and which stage it was; never leaves a worker
    """A stage raised, or what it reported could not be written down."""

    def __init__(self, stage: AnyStage, error: Exception, fault: Fault | None = None) -> None:
        super().__init__(describe(error))
        self.stage = stage
        self.error = error
        self._fault = fault

    @property
    def fault(self) -> Fault:
        """Whose fault it is."""
        if self._fault is None:
            writes = self.stage.output_directory() is not None
            self._fault = fault_of(self.error, writes=writes, transient=self.stage.transient_errors)
        return self._fault

    def explained(self) -> str:
        """The error in words. Of the machine's: the file, what is wrong with it, and how to go on."""
        error = self.error
        if self.fault in (Fault.MACHINE, Fault.MACHINE_FINAL) and isinstance(error, OSError):
            path = error.filename if isinstance(error.filename, str) else self.stage.output_directory()
            return _cut(explain(path or "a file this stage uses", error), MAX_ERROR_CHARS)
        if self.fault is Fault.BUG:
            return f"a bug in gristmill, not in the data: {describe(error)}"
        in_words = (Fault.INPUT, Fault.PROGRAM, Fault.LIMIT, Fault.SPENDING)
        return str(error) if self.fault in in_words else describe(error)


class GaveUp(Exception):  # becomes the words the user reads; never leaves a worker
    """So many documents of a batch failed that it is not worth going on."""


class Isolation:
    """Runs the stages of one group on tasks that failed before."""

    def __init__(
        self,
        stages: Sequence[AnyStage],
        session: str,
        process: Process,
        leave_crumb: LeaveCrumb,
        *,
        most_bad: int | None = None,  # documents that may fail in the whole run
    ) -> None:
        self._stages = stages
        self._session = session
        self._process = process
        self._leave_crumb = leave_crumb
        self._most_bad = most_bad
        self._passed = False  # whether any document of the task at hand has passed the stage at hand

    def process(self, index: int, task: AnyTask, job: Job, context: StageContext) -> Result:
        """Process a task, leaving out the documents that make the stage fail; they are quarantined."""
        if job.care is Care.CONDEMN:
            context.quarantine(_quarantined(task, None, _died(job.cause), "WorkerLost", ""))
            return None
        bad: Bad = {}
        self._passed = False
        divisible = isinstance(task, Batch) and self._stages[index].rows_are_independent
        if divisible:
            for crumb in job.condemned:
                if crumb.stage == index:
                    bad[crumb.first_row] = _condemned(self._stages[index], task, crumb.first_row, job.cause)
            if job.care is Care.STEP:
                self._step(index, task, job, bad)
        made = self._process_good(index, task, job, bad, context, divisible=divisible)
        for row in sorted(bad):
            context.quarantine(bad[row])
        return made

    def _process_good(
        self, index: int, task: AnyTask, job: Job, bad: Bad, context: StageContext, *, divisible: bool
    ) -> Result:
        """Process what is not known to be bad, learning what else is, until it passes or nothing more is learnt."""
        while True:
            if bad and len(bad) == task.num_items and job.care is Care.STEP:
                return None  # a stage that ends its process on anything would do so on an empty batch, and be condemned
            self._leave_crumb(index, 0, task.num_items)
            good = task
            trial = context.another(context.attempt)
            try:
                good = _without(self._stages[index], task, bad)
                made = self._process(index, good, trial)
            except StageRaised as raised:
                if not job.blames_documents(raised.fault):
                    raise
                error = raised.error
            else:
                # What is streamed has not been made yet: that nothing in it raises is found out by drawing it once.
                if divisible and isinstance(made, Iterator) and self._learn(index, task, job, bad):
                    continue
                context.take_over(trial)
                return made
            # Not in the handler above: an error raised there carries the one being handled, and a document's record
            # would tell whether it was found by halving or by stepping, which may be chance.
            if not divisible or not self._learn(index, task, job, bad, fails=True):  # no single document is to blame
                left = task.num_items - len(bad) if task.counts_documents else 0
                if left or not task.counts_documents:  # nothing is lost with an empty batch
                    context.quarantine(replace(record_of(error, good, None), num_documents=left))
                return None

    def _learn(self, index: int, task: AnyTask, job: Job, bad: Bad, *, fails: bool = False) -> bool:
        """Look for bad documents among those not known to be, which may be known to fail together; True if any is."""
        before = len(bad)
        rows = [row for row in range(task.num_items) if row not in bad]
        if fails and len(rows) > 1:
            self._halve(index, task, rows, job, bad)
        else:
            self._bisect(index, task, rows, job, bad)
        return len(bad) > before

    def _step(self, index: int, task: AnyTask, job: Job, bad: Bad) -> None:
        for row in range(task.num_items):
            if row not in bad:
                self._leave_crumb(index, row, row + 1)
                self._probe(index, task, [row], job, bad)

    def _bisect(self, index: int, task: AnyTask, rows: list[int], job: Job, bad: Bad) -> None:
        if not rows:
            return
        self._leave_crumb(index, rows[0], rows[-1] + 1)
        if not self._probe(index, task, rows, job, bad) and len(rows) > 1:
            self._halve(index, task, rows, job, bad)

    def _halve(self, index: int, task: AnyTask, rows: list[int], job: Job, bad: Bad) -> None:
        middle = len(rows) // 2
        self._bisect(index, task, rows[:middle], job, bad)
        self._bisect(index, task, rows[middle:], job, bad)

    def _probe(self, index: int, task: AnyTask, rows: list[int], job: Job, bad: Bad) -> bool:
        """Try some rows and throw the result away; a single row that fails is bad. True if they passed."""
        context = StageContext(session=self._session, attempt=f"{job.attempt}-probe")
        stage = self._stages[index]
        piece = task
        try:
            piece = _rows(stage, task, rows)
            made = self._process(index, piece, context)
            for output in made if isinstance(made, list | Iterator) else [made]:
                if isinstance(output, FileGroupTask):
                    self._discard(index, output)
        except StageRaised as raised:
            if not job.blames_documents(raised.fault):
                raise
            if len(rows) == 1:
                # One, even where the piece is still the whole batch, because it could not be divided.
                record = record_of(raised.error, piece, rows[0])
                bad[rows[0]] = replace(record, num_documents=int(task.counts_documents))
                self._give_up_if_hopeless(index, job, bad)
            return False
        self._passed = True
        return True

    def _discard(self, index: int, output: FileGroupTask) -> None:
        stage = self._stages[index]
        try:
            SideFiles.discard(output.staged, stage.output_options())
        except OSError as error:
            raise StageRaised(stage, machine_error(stage.output_directory() or "", error)) from error

    def _give_up_if_hopeless(self, index: int, job: Job, bad: Bad) -> None:
        """Stop taking a batch apart that has shown enough: the run stops, if no document has passed elsewhere."""
        stage = self._stages[index]
        if self._most_bad is not None and len(bad) > self._most_bad + BEYOND_LIMIT:
            raise StageRaised(stage, GaveUp(self._account(stage, bad, "of one batch failed")), Fault.LIMIT)
        if job.care is Care.ISOLATE and not self._passed and len(bad) >= FAILED_DOCUMENTS:
            raise StageRaised(stage, GaveUp(self._account(stage, bad, "failed and none has passed")), Fault.PROGRAM)

    @staticmethod
    def _account(stage: AnyStage, bad: Bad, what: str) -> str:
        errors = count_errors(stage.stage_name(), [bad[row] for row in sorted(bad)])
        return f"{len(bad)} document{'s' * (len(bad) != 1)} {what}\n{account_of(errors)}"


def describe(error: Exception) -> str:
    """An exception in words, even one that cannot say what it is."""
    said = "".join(traceback.format_exception_only(error))
    # Ten megabytes of words take 20 ms to search for secrets, for every document. Those at the seam are cut out below.
    ends = said if len(said) <= SEARCHED_CHARS else said[: SEARCHED_CHARS // 2] + said[-(SEARCHED_CHARS // 2) :]
    return _cut(without_secrets(ends.strip()), MAX_ERROR_CHARS, left_out=len(said) - len(ends))


def _cut(text: str, most: int, *, left_out: int = 0) -> str:
    """A text that may be long, without its middle: the beginning says what it is, the end of a traceback says where."""
    if len(text) <= most:
        return text
    left_out += len(text) - most
    return f"{text[: most // 2]} … [{left_out:,} characters left out] … {text[-(most // 2) :]}"


def record_of(error: Exception, task: AnyTask, row: int | None) -> Quarantined:
    """The quarantine record of a task, or of the one document in it, that made a stage raise."""
    _forget_what_callers_handle(error)
    trace = _cut("".join(traceback.format_exception(error)), MAX_TRACE_CHARS)
    return _shown(task, row, describe(error), type(error).__name__, trace)


def _forget_what_callers_handle(error: BaseException) -> None:
    """Cut off what the program was handling when it began the run: in its own process Python adds that to every error.

    A record must be the same bytes in every process, and whoever started the run is not what went wrong in it.
    """
    callers = set()
    caller = error.__traceback__.tb_frame.f_back if error.__traceback__ is not None else None
    while caller is not None:
        callers.add(caller)
        caller = caller.f_back
    while (context := error.__context__) is not None:
        if context.__traceback__ is not None and context.__traceback__.tb_frame in callers:
            error.__context__ = None
            return
        error = context


def _condemned(stage: AnyStage, task: AnyTask, row: int, cause: str) -> Quarantined:
    try:
        piece = _rows(stage, task, [row])
    except StageRaised:  # a batch that cannot take its own item: it is counted unseen
        return replace(_quarantined(task, row, _died(cause), "WorkerLost", ""), num_documents=1)
    return _shown(piece, row, _died(cause), "WorkerLost", "")


def _died(cause: str) -> str:
    return f"the worker ended while processing it: {cause}"


def _rows(stage: AnyStage, task: AnyTask, rows: list[int]) -> AnyTask:
    """Some items of a batch. How that is done is its author's code, and may fail like a stage."""
    if not isinstance(task, Batch):
        return task
    try:
        return divided(task, rows)
    except Exception as error:
        raise StageRaised(stage, error) from error


def _without(stage: AnyStage, task: AnyTask, bad: Bad) -> AnyTask:
    return _rows(stage, task, [row for row in range(task.num_items) if row not in bad]) if bad else task


def _shown(task: AnyTask, row: int | None, error: str, kind: str, trace: str) -> Quarantined:
    """A record that shows the item, if it is a single one."""
    record = _quarantined(task, row, error, kind, trace)
    if not isinstance(task, Batch) or task.num_items != 1:
        return record
    item = shown_item(task, 0)
    return replace(
        record,
        document=item.text or item.preview,
        document_id=item.id or record.document_id,
        source=item.source or record.source,
        payload=item.payload,
        extension=item.extension,
    )


def _quarantined(task: AnyTask, row: int | None, error: str, kind: str, trace: str) -> Quarantined:
    """A record made without looking into the items, which nothing can prevent."""
    return Quarantined(
        error,
        kind,
        "",
        f"{task.task_id}#{row or 0}",
        ", ".join(task.sources()),
        row=row,
        traceback=trace,
        # Nobody knows how many documents are in a file that cannot be read: what is known is its size.
        num_documents=task.num_items if task.counts_documents else 0,
        lost_bytes=0 if task.counts_documents else task.nbytes,
    )
