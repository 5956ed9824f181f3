"""Taking a failed task apart: which of its documents make the stage fail?

ISOLATE: the task is tried once more as a whole; if it fails again it is halved until single documents are left, at most
2 log2(n) probes for each bad one. STEP: its workers died, so every document is tried alone, with a crumb left before
each: if the process dies, the driver knows which document it was. Probes are thrown away. What is kept is one call with
the good documents, so the output is the same as if the bad ones had never been there.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gristmill.backends.side_files import SideFiles
from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.secrets import without_secrets
from gristmill.stages.context import Quarantined, StageContext
from gristmill.tasks import FileGroupTask
from gristmill.tasks.document_check import is_document_batch

LeaveCrumb = Callable[[int, int, int], None]  # stage, first row, end row
Result = AnyTask | list[AnyTask] | Iterator[AnyTask] | None
Process = Callable[[AnyStage, AnyTask, StageContext], Result]
Bad = dict[int, Quarantined]  # by row


class Job(NamedTuple):
    """One task to run. `item_id` names what is made of it."""

    item_id: str
    task: AnyTask
    care: Care = Care.NORMAL
    attempt: int = 0
    condemned: tuple[Crumb, ...] = ()
    cause: str = ""


class StageRaised(Exception):  # carries a user's exception and which stage it was; never leaves a worker
    """A stage raised."""

    def __init__(self, stage: AnyStage, error: Exception) -> None:
        super().__init__(str(error))
        self.stage = stage
        self.error = error

    @property
    def is_transient(self) -> bool:
        return isinstance(self.error, self.stage.transient_errors)


class Isolation:
    """Runs the stages of one group on tasks that failed before."""

    def __init__(self, stages: Sequence[AnyStage], session: str, process: Process, leave_crumb: LeaveCrumb) -> None:
        self._stages = stages
        self._session = session
        self._process = process
        self._leave_crumb = leave_crumb

    def process(self, index: int, task: AnyTask, job: Job, context: StageContext) -> Result:
        """Process a task, leaving out the documents that make the stage fail; they are quarantined."""
        if job.care is Care.CONDEMN:
            context.quarantine(_quarantined(task, None, _died(job.cause), "WorkerLost", ""))
            return None
        bad: Bad = {}
        divisible = is_document_batch(task) and self._stages[index].rows_are_independent
        if divisible:
            for crumb in job.condemned:
                if crumb.stage == index:
                    bad[crumb.first_row] = _condemned(task, crumb.first_row, job.cause)
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
            good = _without(task, bad)
            trial = context.another(context.attempt)
            try:
                made = self._process(self._stages[index], good, trial)
            except StageRaised as raised:
                if raised.is_transient:
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
                if good.num_items or not bad:
                    context.quarantine(record_of(error, good, None))
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
        piece = _rows(task, rows)
        try:
            made = self._process(self._stages[index], piece, context)
            for output in made if isinstance(made, list | Iterator) else [made]:
                if isinstance(output, FileGroupTask):
                    SideFiles.discard(output.staged)
        except StageRaised as raised:
            if raised.is_transient:
                raise
            if len(rows) == 1:
                bad[rows[0]] = record_of(raised.error, piece, rows[0])
            return False
        return True


def describe(error: Exception) -> str:
    """An exception in one line, even one that cannot say what it is."""
    return without_secrets("".join(traceback.format_exception_only(error)).strip())


def record_of(error: Exception, task: AnyTask, row: int | None) -> Quarantined:
    """The quarantine record of a task, or of the one document in it, that made a stage raise."""
    trace = "".join(traceback.format_exception(error))
    return _shown(task, row, describe(error), type(error).__name__, trace)


def _condemned(task: AnyTask, row: int, cause: str) -> Quarantined:
    return _shown(_rows(task, [row]), row, _died(cause), "WorkerLost", "")


def _died(cause: str) -> str:
    return f"the worker ended while processing it: {cause}"


def _rows(task: AnyTask, rows: list[int]) -> AnyTask:
    if not is_document_batch(task):
        return task
    piece = task.take(rows)
    piece.task_id = task.task_id
    return piece


def _without(task: AnyTask, bad: Bad) -> AnyTask:
    if not bad or not is_document_batch(task):
        return task
    good = task.filter([row not in bad for row in range(task.num_items)])
    good.task_id = task.task_id
    return good


def _shown(task: AnyTask, row: int | None, error: str, kind: str, trace: str) -> Quarantined:
    """A record that shows the document, if it is one and can be written down."""
    record = _quarantined(task, row, error, kind, trace)
    if not is_document_batch(task) or task.num_items != 1:
        return record
    document_id = SideFiles.document_id(task) or record.document_id
    return replace(record, document=SideFiles.document_text(task), document_id=document_id)


def _quarantined(task: AnyTask, row: int | None, error: str, kind: str, trace: str) -> Quarantined:
    """A record made without looking into the documents, which nothing can prevent."""
    source = task.data if isinstance(task, FileGroupTask) else task._metadata.get("source_files")
    return Quarantined(
        error,
        kind,
        "",
        f"{task.task_id}#{row or 0}",
        ", ".join(map(str, source)) if isinstance(source, list) else "",
        row=row,
        traceback=trace,
        # A file that cannot be read is one loss: nobody knows how many documents it holds.
        num_documents=task.num_items if task.counts_documents else 1,
    )
