"""The driver of a run that another engine schedules: waits for receipts, commits what is done, tells who watches.

The other engine runs in a thread of this process, and is given the source partitions and nothing else to decide. Its
outputs are not looked at: everything about the run comes through the registrar, whose answers are small.
"""

from collections.abc import Callable, Sequence
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Protocol

from gristmill.backends.base import RunOptions
from gristmill.backends.commits import Commits
from gristmill.backends.delegated.envelope import Envelope, pack
from gristmill.backends.delegated.registrar_actor import RegistrarOffice, RemoteRegistrar
from gristmill.backends.delegated.root_books import RootBooks
from gristmill.backends.delegated.view import View
from gristmill.backends.run import Ending, Run
from gristmill.backends.run_result import RunResult
from gristmill.engine.commands import Finish
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import SHARE_NEEDS
from gristmill.engine.uniting import unite_streaming

POLL_S = 0.1


def execute(plan: Plan, options: RunOptions, drive_run: Callable[[Run], Ending], *, ignore_failures: bool) -> RunResult:
    """Run a plan by whatever `drive_run` prepares: the engine, and a call of `drive`."""
    run = Run(unite_streaming(plan), options, ignore_failures=ignore_failures, forces=True)
    try:
        return run.execute(drive_run)
    finally:
        run.close()


class Engine(Protocol):
    """The other engine. Raises whatever is wrong with it."""

    def run(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> None:
        """Take the sources through all groups; return when there is nothing left to do."""
        ...


def drive(run: Run, engine: Engine, office: RegistrarOffice, *, logging_interval: float) -> Ending:
    """Drive a run to its end."""
    registrar = office.open(run.session)
    loop = _Loop(run, registrar, logging_interval)
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
    return Ending(outcome, messages=loop.view.messages, tell=loop.tell_end)


class _Loop:
    """One run, from the driver's side."""

    def __init__(self, run: Run, registrar: RemoteRegistrar, logging_interval: float) -> None:
        self._run = run
        self._registrar = registrar
        self._books = RootBooks(run.plan)
        self._commits = Commits(run.books, run.durable_directory)
        self.view = View(run, self._books, logging_interval)
        self._stopping = ""

    def follow(self, work: AsyncResult[None], errors: Sequence[BaseException]) -> Finish:
        """Until the engine is done. Whatever has stopped it is in `errors` by then."""
        failure = ""
        while not failure:
            alive = not work.ready()
            failure = self._take()  # after having asked: what was reported before the end is not missed
            self.view.tell()
            if not alive:
                break
            self._stop_if_asked()
            work.wait(POLL_S)
        if failure:
            return Finish("failed", failure)
        if self._stopping:
            return Finish(self._stopping)
        if errors:
            return Finish("failed", f"{type(errors[0]).__name__}: {errors[0]}")
        missing = len(self._run.plan.sources) - len(self._run.books.records)
        if missing:
            return Finish("failed", f"the engine ended with {missing} source partitions undone; run again to continue")
        return Finish("finished")

    def _take(self) -> str:
        news = self._registrar.take()
        self.view.workers, self.view.busy = news.workers, news.busy
        for group, item_id in news.lost:
            name = self._run.plan.groups[group].name
            self.view.messages.append(f"a worker of {name} was lost while it processed {item_id}")
        for receipt in news.receipts:
            done = self._books.add(receipt)
            if done is not None:
                self._commits.add(done.record)
                if not self._run.plan.ends_in_writer:
                    fetched = [self._registrar.fetch(reference) for _, reference in done.final]
                    self._run.books.tasks[done.record.root] = fetched
        self._registrar.close(self._commits.force())
        return news.failure

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
        limit = self._run.max_quarantined
        if limit is None:
            return False
        read, quarantined = self.view.read_and_quarantined()
        if isinstance(limit, int):
            return quarantined > limit
        return quarantined > limit * read and read >= SHARE_NEEDS

    def tell_end(self, state: str) -> None:
        """Give whoever watches the last word."""
        self.view.tell(state=state, at_once=True)
