"""Taking a failed task apart: which of its documents make the stage fail?

ISOLATE: the task is tried once more as a whole; if it fails again it is halved until single documents are left, at most
2 log2(n) probes for each bad one. STEP: its workers died, so every document is tried alone, with a crumb left before
each: if the process dies, the driver knows which document it was. Probes are thrown away. What is kept is one call with
the good documents, so the output is the same as if the bad ones had never been there.
"""

import copy
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from gristmill.engine.commands import Care
from gristmill.engine.faults import FAILED_DOCUMENTS, Fault
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import DownloadFailed
from gristmill.stages.context import Quarantined, StageContext
from gristmill.storage.atomic_write import machine_error
from gristmill.tasks import Batch, FileGroupTask
from gristmill.tasks.batch import divided
from gristmill.worker.call_books import SideFiles, shown_item
from gristmill.worker.failing import StageRaised, account_of, count_errors, cut_out_middle, describe
from gristmill.worker.job import Job, Result


class LeaveCrumb(Protocol):
    """Writes down where the worker is, before it goes there."""

    def __call__(self, stage: int, first_row: int, end_row: int, turn: int = 0) -> None: ...


Process = Callable[[int, AnyTask, StageContext], Result]  # the first: which stage
Bad = dict[int, Quarantined]  # by row

BEYOND_LIMIT = 10  # bad documents of a batch beyond what the run may have: few more are cheap, and the batch counts
MAX_TRACE_CHARS = 20_000


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
        self._turn = 0

    def process(self, index: int, task: AnyTask, job: Job, context: StageContext, turn: int = 0) -> Result:
        """Process a task, leaving out the documents that make the stage fail; they are quarantined.

        `turn`: the number of this call among those made for the job.
        """
        self._turn = turn
        if job.care is Care.CONDEMN:
            context.quarantine(_quarantined(task, None, _died(job.cause), "WorkerLost", ""))
            return None
        bad: Bad = {}
        self._passed = False
        divisible = isinstance(task, Batch) and self._stages[index].rows_are_independent
        if divisible:
            for crumb, cause in job.condemned:
                if crumb.turn == turn and crumb.stage == index:
                    bad[crumb.first_row] = _condemned(self._stages[index], task, crumb.first_row, cause)
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
                return None  # a stage that ends its process on any input would do so on an empty one, and be condemned
            self._leave_crumb(index, 0, task.num_items, self._turn)
            good = task
            trial = context.another(context.attempt)
            try:
                good = _without(self._stages[index], task, bad)
                made = self._process(index, copy.copy(good), trial)  # the stage may change its input, and then raise
            except StageRaised as raised:
                if not job.blames_documents(raised.fault):
                    raise
                error = raised.error
            else:
                # What is streamed has not been made yet: only drawing it once shows that nothing in it raises.
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
        """Look for bad documents among those not in `bad`, which fail together if `fails`; True if any is found."""
        before = len(bad)
        rows = [row for row in range(task.num_items) if row not in bad]
        if fails and len(rows) > 1:
            self._halve(index, task, rows, job, bad)
        else:
            self._bisect(index, task, rows, job, bad)
        return len(bad) > before

    def _step(self, index: int, task: AnyTask, job: Job, bad: Bad) -> None:
        for row in range(self._first_row(task, job), task.num_items):
            if row not in bad:
                self._leave_crumb(index, row, row + 1, self._turn)
                self._probe(index, task, [row], job, bad)

    def _first_row(self, task: AnyTask, job: Job) -> int:
        """The first document that has not been alone in a worker which survived it."""
        start = job.step_from
        if start is None or self._turn > start.turn:
            return 0
        return start.first_row if self._turn == start.turn else task.num_items

    def _bisect(self, index: int, task: AnyTask, rows: list[int], job: Job, bad: Bad) -> None:
        if not rows:
            return
        self._leave_crumb(index, rows[0], rows[-1] + 1, self._turn)
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
            made = self._process(index, copy.copy(piece), context)
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
        """Stop taking apart a batch that has shown enough: the run stops, if no document has passed elsewhere."""
        stage = self._stages[index]
        if self._most_bad is not None and len(bad) > self._most_bad + BEYOND_LIMIT:
            raise StageRaised(stage, GaveUp(self._account(stage, bad, "of one batch failed")), Fault.LIMIT)
        if job.care is Care.ISOLATE and not self._passed and len(bad) >= FAILED_DOCUMENTS:
            raise StageRaised(stage, GaveUp(self._account(stage, bad, "failed and none has passed")), Fault.PROGRAM)

    @staticmethod
    def _account(stage: AnyStage, bad: Bad, what: str) -> str:
        errors = count_errors(stage.stage_name(), [bad[row] for row in sorted(bad)])
        return f"{len(bad)} document{'s' * (len(bad) != 1)} {what}\n{account_of(errors)}"


def record_of(error: Exception, task: AnyTask, row: int | None) -> Quarantined:
    """The quarantine record of a task, or of the one document in it, that made a stage raise."""
    _forget_what_callers_handle(error)
    trace = cut_out_middle("".join(traceback.format_exception(error)), MAX_TRACE_CHARS)
    kind = error.kind if isinstance(error, DownloadFailed) else type(error).__name__
    return _shown(task, row, describe(error), kind, trace)


def _forget_what_callers_handle(error: BaseException) -> None:
    """Cut off the error the program was handling when it began the run: in that process Python adds it to every error.

    A record must be the same bytes in every process, and an error from before the run is not what went wrong in it.
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
    except StageRaised:  # a batch that cannot take out its own item: it is counted unseen
        return replace(_quarantined(task, row, _died(cause), "WorkerLost", ""), num_documents=1)
    return _shown(piece, row, _died(cause), "WorkerLost", "")


def _died(cause: str) -> str:
    return f"the worker ended while processing it: {cause}"


def _rows(stage: AnyStage, task: AnyTask, rows: list[int]) -> AnyTask:
    """Some items of a batch. How they are taken is its author's code, and may fail like a stage."""
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
    """A record made without looking into the items, so that nothing can prevent it."""
    return Quarantined(
        error,
        kind,
        "",
        f"{task.task_id}#{row or 0}",
        ", ".join(task.sources()),
        row=row,
        traceback=trace,
        # How many documents are in a file that cannot be read is unknown: what is known is its size.
        num_documents=task.num_items if task.counts_documents else 0,
        lost_bytes=0 if task.counts_documents else task.nbytes,
    )
