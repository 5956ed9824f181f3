"""The driver of a run that another engine schedules: waits for receipts, commits what is done, informs the user.

The other engine runs in a thread of this process, and is given the source partitions and nothing else to decide. Its
outputs are not looked at: everything about the run comes through the registrar, whose answers are small.
"""

import time
from collections.abc import Sequence
from multiprocessing.pool import AsyncResult, ThreadPool
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from gristmill.backends.delegated.envelope import Envelope, pack
from gristmill.backends.delegated.registrar_actor import RegistrarOffice, RemoteRegistrar
from gristmill.backends.delegated.root_books import DoneRoot, RootBooks
from gristmill.backends.delegated.standstill import Standstill, free_resources
from gristmill.backends.delegated.task_times import FILE_NAME, TaskTimes
from gristmill.backends.delegated.view import View
from gristmill.engine.breaker import Failed
from gristmill.engine.commands import Finish
from gristmill.engine.faults import FAILED_DOCUMENTS
from gristmill.engine.plan import Plan, unite_streaming
from gristmill.runs.books import RunResult
from gristmill.runs.run import Drive, Ending, Run, Segment
from gristmill.runs.segment import Commits
from gristmill.runs.user import RunOptions, alive, waiting_for, watched
from gristmill.tasks import StagedFile

POLL_S = 0.1


class Settings(Protocol):
    """What the configurations of these executors have in common."""

    @property
    def logging_interval(self) -> float | None: ...
    @property
    def ignore_failures(self) -> bool: ...
    @property
    def watchdog_s(self) -> float: ...


def execute(plan: Plan, options: RunOptions, drive_run: Drive, *, settings: Settings) -> RunResult:
    """Run a plan by whatever `drive_run` prepares: the engine, and a call of `drive`."""
    with watched(f"the run of {plan.name!r} has been held up for", settings.watchdog_s):
        run = Run(_united(plan), options, ignore_failures=settings.ignore_failures, durable=True)
        try:
            return run.execute(drive_run)
        finally:
            run.close()


def _united(plan: Plan) -> Plan:
    return replace(unite_streaming(plan), then=None if plan.then is None else _united(plan.then))


class Engine(Protocol):
    """The other engine. Raises whatever goes wrong in it."""

    def run(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> None:
        """Take the sources through all groups; return when there is nothing left to do."""
        ...


def drive(run: Segment, engine: Engine, office: RegistrarOffice, settings: Settings) -> Ending:
    """Drive a run to its end."""
    with waiting_for(lambda: "waiting for Ray to start the process that keeps the books of the run"):
        registrar = office.open(run.session)
    loop = _Loop(run, registrar, settings)
    loop.view.messages += run.prepare_outputs()
    plan = run.plan
    left = [index for index in range(len(plan.sources)) if index not in run.books.records]
    sources = [pack(index, plan.source_names[index], plan.sources[index]) for index in left]
    errors: list[BaseException] = []
    threads = ThreadPool(1)  # of daemons, so that a stuck engine does not keep the process from ending
    with run.stop.only_noted():
        work = threads.apply_async(engine.run, (sources, registrar), error_callback=errors.append)
        threads.close()
        outcome = loop.follow(work, errors)
    peak = loop.view.peaks.memory_bytes
    return Ending(outcome, messages=loop.view.messages, tell=loop.tell_end, peak_memory_bytes=peak)


def _times_path(run: Segment) -> Path | None:
    if run.kept_directory is None:
        return None
    try:
        return run.kept_directory.private_file(FILE_NAME)
    except OSError:  # a run goes on without the times of its tasks
        return None


class _Loop:
    """One run, from the driver's side."""

    def __init__(self, run: Segment, registrar: RemoteRegistrar, settings: Settings) -> None:
        self._run = run
        self._registrar = registrar
        self._books = RootBooks(run.plan)
        self._commits = Commits(run.books, run.kept_directory, run.directory.options_of)
        self.view = View(run, self._books, settings.logging_interval)
        self._standstill = Standstill(run.plan, settings.watchdog_s, registrar.running, free_resources)
        self._stopping = ""
        self._outcome = "failed"
        self._times = TaskTimes(_times_path(run), run.plan.groups)
        self._held: list[DoneRoot] = []  # with documents that failed in a stage none has passed yet

    def follow(self, work: AsyncResult[None], errors: Sequence[BaseException]) -> Finish:
        """Follow the run until the engine is done; by then `errors` has whatever stopped it."""
        failure = ""
        while not failure:
            alive()
            is_at_work = not work.ready()
            failure = self._take()  # after the check: so nothing reported before the end is missed
            self.view.tell()
            if not is_at_work:
                break
            self._stop_if_asked()
            if not self._stopping and (failure := self._broken(at_least=FAILED_DOCUMENTS)):
                self._outcome = "broken"
                self._registrar.stop()
            work.wait(POLL_S)
        if failure:
            return Finish(self._outcome, failure, self._evidence())
        if errors and not self._stopping:
            return Finish("failed", f"{type(errors[0]).__name__}: {errors[0]}")
        return self._ended()

    def _ended(self) -> Finish:
        """How a run ends whose engine has nothing left to do."""
        broken = "" if self._stopping else self._broken(at_least=1)
        if broken:
            return Finish("broken", broken, self._evidence())
        if self._stopping == "stopped":
            return Finish("stopped")
        for done in self._held:
            self._commit(done)
        self._registrar.close(self._commits.force())
        if self._stopping:
            return Finish(self._stopping)
        missing = len(self._run.plan.sources) - len(self._run.books.records)
        given_up = self._books.given_up
        if missing and missing == len(given_up):
            return Finish("inputs_changed", "\n".join(given_up.values()))
        if missing:
            return Finish("failed", f"the engine ended with {missing} source partitions undone; run again to continue")
        return Finish("finished")

    def _take(self) -> str:
        news = self._registrar.take()
        self.view.messages += self._standstill.words(news, time.monotonic())
        self._times.add(news.times)
        self.view.heard(news)
        for group, item_id in news.lost:
            name = self._run.plan.groups[group].name
            self.view.messages.append(f"a worker of {name} was lost while it processed {item_id}")
        for receipt in news.receipts:
            done = self._books.add(receipt)
            self.view.progressed(receipt)
            if done is not None:
                self._held.append(done)
        self.view.messages += news.messages
        held, self._held = self._held, []
        for done in held:
            if self._is_suspect(done):
                self._held.append(done)
            else:
                self._commit(done)
        self._registrar.close(self._commits.force())
        self._outcome = news.outcome
        return news.failure

    def _commit(self, done: DoneRoot) -> None:
        self._commits.add(done.record)
        if not self._run.plan.ends_in_writer:
            fetched = [self._registrar.fetch(reference) for _, reference in done.final]
            self._run.books.tasks[done.record.root] = fetched

    def _is_suspect(self, done: DoneRoot) -> bool:
        """Whether a partition is held, because documents of it failed in a stage none has passed (`Breaker`)."""
        passed = dict(zip(self._run.plan.stage_names, self._passed(), strict=True))
        return any((own.quarantined or own.lost_parts) and not passed[name] for name, own in done.record.counts)

    def _passed(self) -> list[bool]:
        totals = self.view.counts()
        return [counts.has_passed for counts in totals]

    def _broken(self, *, at_least: int) -> str:
        """Say which stage lets nothing pass, if at least that many documents have failed in one."""
        counts = self.view.counts()
        for name, failed, passed in zip(self._run.plan.stage_names, counts, self._passed(), strict=True):
            number = failed.quarantined + failed.lost_parts
            if not passed and number >= at_least and (failed.quarantined or not any(c.read for c in counts)):
                return f"{name}: no document has passed it; {number:,} failed"
        return ""

    def _evidence(self) -> tuple[StagedFile, ...]:
        files = (file for done in self._held for file in done.record.side_files if not file.is_payload)
        return tuple(files)[:FAILED_DOCUMENTS]

    def _stop_if_asked(self) -> None:
        if self._stopping:
            return
        if self._run.stop.noted:
            self._stopping = "stopped"
        elif self._too_many_quarantined():
            self._stopping = "quarantine_limit"
        if self._stopping:
            self._registrar.stop()

    def _too_many_quarantined(self) -> bool:
        if self._run.limit.is_default and self._broken(at_least=1):
            return False  # better to name the broken stage than to count failures
        return self._run.limit.is_exceeded(Failed.of(self.view.counts(), self._run.plan.input_bytes))

    def tell_end(self, state: str) -> None:
        """Show the last state to those who watch the run."""
        self.view.tell(state=state, at_once=True)
