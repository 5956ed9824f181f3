"""The driver of a run: feeds the scheduler what happens and does what it says. It decides nothing.

pool, clock ─▶ events ─▶ scheduler.handle ─▶ commands ─▶ pool, ledger, renames

What a worker is, and how it is talked to, is the pool's: processes of this machine, actors of a cluster, or neither.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gristmill.backends.scheduled.garbage import seldom_collecting
from gristmill.backends.scheduled.pool import Pool
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.ledger import CommitRecord
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs.books import Books
from gristmill.runs.commits import COMMIT_S, Commits
from gristmill.runs.directory import RunDirectory
from gristmill.runs.hang_watch import alive
from gristmill.runs.measured import MeasuredRun, measure
from gristmill.runs.publication import store_options
from gristmill.runs.snapshots import SnapshotMaker
from gristmill.runs.telling import Telling
from gristmill.worker.wire import BlockLost

if TYPE_CHECKING:  # named only, for whoever sets it
    from gristmill.backends.scheduled.event_recorder import EventRecorder

TICK_S = 0.1


class Driver:
    """One run."""

    def __init__(
        self,
        plan: Plan,
        scheduler: Scheduler,
        pool: Pool,
        books: Books,
        directory: RunDirectory | None,
        observer: Callable[[RunSnapshot], None] | None,
        *,
        nodes: Sequence[e.NodeJoined],
        memory_limit: int,
        logging_interval: float,
    ) -> None:
        self.plan = plan
        self.scheduler = scheduler
        self.pool = pool
        self.books = books
        self.nodes = tuple(nodes)
        self.snapshots = SnapshotMaker(plan, scheduler, books, memory_limit)
        self.recorder: EventRecorder | None = None
        self.finish: c.Finish | None = None
        self.messages: list[str] = []
        self._events: list[e.Event] = []
        # One after the other: none is committed before it was listed, so those of this session are never left out.
        self._source = (index for index in range(len(plan.sources)) if index not in books.records)
        self._commits = Commits(books, directory, store_options(plan))
        self._telling = Telling(directory, observer, logging_interval)
        self._do: dict[type, Callable[..., None]] = {
            c.StartWorker: self._start_worker,
            c.DrainWorker: lambda command: pool.drain(command.worker),
            c.KillWorker: lambda command: pool.kill(command.worker, command.reason),
            c.SendTask: self._send_task,
            c.RecallTask: lambda command: pool.recall(command.worker, command.tasks),
            c.GrantEmit: lambda command: pool.grant(command.worker, command.task),
            c.PullSource: self._pull_source,
            c.ListAgain: self._list_again,
            c.Release: lambda command: pool.release(command.payload),
            c.Commit: self._commit,
            c.Publish: lambda command: None,
            c.Warn: self._warn,
            c.Tell: lambda command: self.messages.append(command.text),
            c.Finish: self._finish,
        }

    def run(self, must_stop: Callable[[], bool] = lambda: False) -> c.Finish:
        """Drive the run to its end, or until `must_stop` says so; what is committed then stays."""
        with seldom_collecting():
            return self._run(must_stop)

    def _run(self, must_stop: Callable[[], bool]) -> c.Finish:
        self._handle(e.Ticked(time.monotonic()), *self.nodes)
        while self.finish is None:
            events = self.pool.poll(self._timeout())
            events += self._take_events()
            self._handle(e.Ticked(time.monotonic()), *events)
            self.messages += self.pool.take_messages()
            self._force_ledger()
            self._tell()
            alive()
            if must_stop():
                self._handle(e.Cancelled("interrupted"))
        self._force_ledger(at_once=True)
        return self.finish

    def _handle(self, *events: e.Event) -> None:
        if self.recorder is not None:
            self.recorder.took(events)
        commands = self.scheduler.handle(*events)
        if self.recorder is not None:
            self.recorder.gave(commands)
        for command in commands:
            self._do[type(command)](command)
        self.pool.flush()

    def _take_events(self) -> list[e.Event]:
        events, self._events = self._events, []
        return events

    def _timeout(self) -> float:
        if self._events:
            return 0.0
        wait = TICK_S
        if self._commits:
            wait = COMMIT_S
        wakeup = self.scheduler.next_wakeup()
        return wait if wakeup is None else max(0.0, min(wait, wakeup - time.monotonic()))

    # Commands

    def _start_worker(self, command: c.StartWorker) -> None:
        self.pool.start(command.worker, command.group, command.node, command.gpus, command.learnt)

    def _send_task(self, command: c.SendTask) -> None:
        for call in command.calls:
            self.pool.send(command.worker, call)

    def _pull_source(self, command: c.PullSource) -> None:
        items = []
        for index in self._source:
            items.append(self._source_item(index))
            if len(items) == command.count:
                break
        self._events.append(e.SourceListed(tuple(items)))
        if len(items) < command.count:
            self._events.append(e.SourceExhausted())

    def _list_again(self, command: c.ListAgain) -> None:
        self._events.append(e.ListedAgain(self._source_item(command.root), command.attempt))

    def _source_item(self, index: int) -> e.SourceItem:
        task = self.plan.sources[index]
        return e.SourceItem(index, self.plan.source_names[index], task.nbytes, self.pool.pack(task))

    def _commit(self, command: c.Commit) -> None:
        if self.plan.ends_in_writer:
            for output in command.outputs:
                self.pool.release(output.payload)
        elif not self._keep_tasks(command):
            self._events.append(e.OutputsLost(command.root))
            return
        counts = tuple(zip(self.plan.stage_names, command.counts, strict=True))
        record = CommitRecord(command.root, command.name, command.files, command.side_files, counts, command.facts)
        self._commits.add(record)

    def _keep_tasks(self, command: c.Commit) -> bool:
        """Keep the final tasks of a partition, or say that one was lost with its machine, and keep none."""
        payloads = [output.payload for output in command.outputs]
        kept = []
        while payloads:
            try:
                kept.append(self.pool.keep(payloads.pop(0)))
            except BlockLost:
                for payload in payloads:
                    self.pool.release(payload)
                return False
        self.books.tasks[command.root] = kept
        return True

    def _force_ledger(self, *, at_once: bool = False) -> None:
        # Waiting for company pays only while there is other work to do.
        committed = self._commits.force(at_once=at_once or not self.scheduler.tasks)
        self._events += [e.Committed(root) for root in committed]
        if committed:
            self.messages += self.books.take_hints()

    def _warn(self, command: c.Warn) -> None:
        busy = {"task": f"busy with {command.item_id}", "set-up": "setting up", "end": "ending"}[command.doing]
        others = f", and so have {command.others} others of its stage" if command.others else ""
        where = self.pool.where(command.worker)
        self.messages.append(
            f"{self.pool.describe(command.worker)} has been {busy} for {command.running_s:.0f} s{others}"
            + (f" ({where})" if where else "")
        )

    def _finish(self, command: c.Finish) -> None:
        self.finish = command

    # Observation

    def _tell(self, *, state: str = "running", at_once: bool = False) -> None:
        def make(fresh: list[str]) -> RunSnapshot:
            return self.snapshots.make(state, self.pool.memory_bytes(), fresh)

        self._telling.tell(self.messages, make, at_once=at_once)

    def measured(self) -> MeasuredRun:
        """What this run has found out about its stages."""
        size = self.plan.input_bytes / max(1, len(self.plan.sources))
        return measure(self.plan.name, self.scheduler, _together(self.nodes), source_bytes=size)

    def tell_end(self, state: str) -> None:
        """Give the observer and the status file the last word."""
        self._tell(state=state, at_once=True)


def _together(nodes: Sequence[e.NodeJoined]) -> e.NodeJoined:
    """Several machines as if they were one: what `measured.json` describes."""
    gpus = tuple(memory_gb for node in nodes for memory_gb in node.gpu_memory_gb)
    return e.NodeJoined(0, sum(node.cpus for node in nodes), gpus, sum(node.memory_bytes for node in nodes))
