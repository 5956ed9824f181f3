"""The driver of a run: feeds the scheduler what happens and does what it says. It decides nothing.

pool, clock ─▶ events ─▶ scheduler.handle ─▶ commands ─▶ pool, ledger, renames

What a worker is, and how it is talked to, is the pool's: processes of this machine, actors of a cluster, or neither.
"""

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

import cloudpickle
import msgspec
from msgspec.structs import replace

from gristmill.backends.local.launch import where_prints_go
from gristmill.backends.scheduled.kept_records import (
    FILE_NAME,
    EventRecorder,
    ProfileStore,
    keep_earlier_logs,
    priors,
    remember,
)
from gristmill.backends.scheduled.pool import Pool
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.breaker import Failed
from gristmill.engine.events import NodeJoined
from gristmill.engine.plan import AnyStage, Group, Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import RunFailed
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs.books import Books
from gristmill.runs.directory import RunDirectory
from gristmill.runs.ledger import CommitRecord
from gristmill.runs.progress import MeasuredRun, SnapshotMaker, Telling, measure
from gristmill.runs.publication import store_options
from gristmill.runs.segment import COMMIT_S, Commits, Ending, Segment
from gristmill.runs.user import alive, waiting_for
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.worker.notes import Notes
from gristmill.worker.wire import BlockLost

# Less garbage collection where there is no garbage.
#
# The driver holds many small records and makes no cycles, so Python's collector walks them all again and again for
# nothing (a fifth of the driver's time at 5,000 tasks a second). Reference counts free everything as before.

SELDOM = (100_000, 50, 100)


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect a hundred times less often; the caller's setting is restored."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


# Runs `setup_on_node` of every stage that has one, once, before any worker starts on a machine.
#
# It runs in a process of its own: what it loads (a model, to fetch its files) must not stay in the memory of the
# driver, or of the keeper of a cluster's machine, nor be copied into every worker.

CODE = "from gristmill.backends.scheduled.driver import main; main()"


def node_work(groups: tuple[Group, ...]) -> bytes | None:
    """Return what `set_up_node` needs, which may be called on another machine; None if no stage wants it."""
    wanted = [
        (name, stage)
        for group in groups
        for name, stage in zip(group.names, group.stages, strict=True)
        if stage.wants_node_setup()
    ]
    return pickle.dumps((list(sys.path), cloudpickle.dumps(wanted))) if wanted else None


def set_up_node(work: bytes, node: NodeInfo) -> None:
    """Set up this machine; raises RunFailed with the stage's own error."""
    told = pickle.dumps((work, node))
    notes = Notes.create("starting a process for setup_on_node")
    # A file, not a pipe: processes the stage leaves running may hold it open, and a pipe would not end before they do.
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(
            [sys.executable, "-P", "-c", CODE, str(notes.fd)],
            stdin=subprocess.PIPE,
            stdout=where_prints_go(),
            stderr=errors,
            pass_fds=[notes.fd],
        ) as process:
            notes.close_fd()
            with waiting_for(lambda: f"{notes.read()} (process {process.pid})"):
                try:
                    process.communicate(told)
                except BaseException:
                    process.kill()
                    raise
        if process.returncode:
            errors.seek(0)
            raise RunFailed(f"setup_on_node failed:\n{errors.read().decode(errors='replace').strip()}")


def main() -> None:
    """Run in the new process."""
    notes, own = Notes.open(int(sys.argv[1])), os.getpid()
    work, node = pickle.loads(sys.stdin.buffer.read())
    path, stages = pickle.loads(work)
    sys.path += [entry for entry in path if entry not in sys.path]
    notes("loading the stages for setup_on_node")
    loaded: list[tuple[str, AnyStage]] = pickle.loads(stages)
    for name, stage in loaded:
        notes(f"in setup_on_node of stage {name}")
        stage.setup_on_node(node, WorkerMetadata())
        if os.getpid() != own:  # a process that the stage has forked and that has come back
            os._exit(1)


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
        logging_interval: float | None,
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
        # Made one by one: none is committed before it is listed, so this leaves out only those of earlier sessions.
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
        counts = tuple(zip(self.plan.stage_names, command.counts, strict=bool(command.counts)))
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
        others = f", and so have {command.others} other workers of its stage" if command.others else ""
        where = self.pool.where(command.worker)
        self.messages.append(
            f"{self.pool.describe(command.worker)} has been {busy} for {command.running_s:.0f} s{others}"
            + (f" ({where})" if where else "")
        )

    def _finish(self, command: c.Finish) -> None:
        self.finish = command

    # Observation

    def compile_missing(self) -> None:
        """Compile kernels that are missing on this machine, while no document waits for them."""
        if "numpy" not in sys.modules:
            return  # nothing here calls a kernel, and numpy is not loaded just for this
        from gristmill.stages.compiled_kernel import compile_missing

        doing = ["looking for kernels to compile"]  # the last line is what a watchdog says this waits for

        def tell(said: str) -> None:
            doing.append(said)
            self.messages.append(said)
            self._tell(at_once=True)

        with waiting_for(lambda: doing[-1]):
            compile_missing(tell)

    def _tell(self, *, state: str = "running", at_once: bool = False) -> None:
        def make(fresh: list[str]) -> RunSnapshot:
            return self.snapshots.make(state, self.pool.memory_bytes(), fresh, self.pool.samples())

        self._telling.tell(self.messages, make, at_once=at_once)

    def measured(self) -> MeasuredRun:
        """What this run has found out about its stages."""
        size = self.plan.input_bytes / max(1, len(self.plan.sources))
        return measure(self.plan.name, self.scheduler, _together(self.nodes), source_bytes=size)

    def tell_end(self, state: str) -> None:
        """Give the observer and the status file the last state of the run."""
        self._tell(state=state, at_once=True)


def _together(nodes: Sequence[e.NodeJoined]) -> e.NodeJoined:
    """Several machines as if they were one: what `measured.json` describes."""
    gpus = tuple(memory_gb for node in nodes for memory_gb in node.gpu_memory_gb)
    return e.NodeJoined(0, sum(node.cpus for node in nodes), gpus, sum(node.memory_bytes for node in nodes))


# Drives a run by gristmill's own scheduler: the same for worker processes of one machine and for actors of a cluster.
#
# An executor brings a pool, the machines and what the scheduler may do; everything after that is shared.


class Shell(msgspec.Struct, frozen=True):
    """What one executor brings to a run."""

    pool: Pool
    nodes: Sequence[NodeJoined]  # there at the start; the pool tells of others
    config: SchedulerConfig  # priors are added here
    memory_limit: int  # shown beside what is used
    logging_interval: float | None  # between lines of the history; None: as often as is worth a line
    event_log: bool
    profiles: ProfileStore | None
    notes_signals: bool  # False where a stage runs in this process, and the signal has to interrupt it
    works_here: bool = False  # workers are processes of this machine


def drive(run: Segment, shell: Shell) -> Ending:
    """Drive a run to its end. The pool is open, and is closed at the end; if this raises, the caller closes it."""
    gpus = tuple(memory_gb for node in shell.nodes for memory_gb in node.gpu_memory_gb)
    config = replace(
        shell.config,
        priors=priors(run.plan, gpus, shell.profiles),
        limit=run.limit,
        input_bytes=run.plan.input_bytes,
        passed_before=tuple(run.books.totals[name].has_passed for name in run.plan.stage_names),
        failed_before=Failed.of(run.books.totals.values(), 0),
    )
    driver = Driver(
        run.plan,
        Scheduler(run.plan.groups, config),
        shell.pool,
        run.books,
        run.kept_directory,
        run.options.observer,
        nodes=shell.nodes,
        memory_limit=shell.memory_limit,
        logging_interval=shell.logging_interval,
    )
    driver.messages += run.prepare_outputs()
    if shell.works_here:
        driver.compile_missing()
    noted = run.stop.only_noted() if shell.notes_signals else contextlib.nullcontext()
    with noted, _recorded(run, driver, shell):
        try:
            finish = driver.run(lambda: run.stop.noted)
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):  # Ctrl-C stops a run whose status cannot be written, too
                driver.tell_end("stopped")
            raise
    run.keep_errors(finish)
    peak = driver.snapshots.peak_memory_bytes or shell.pool.memory_bytes()  # a short run was never looked at
    shell.pool.close()
    measured = driver.measured()
    if shell.profiles is not None and finish.outcome == "finished":
        remember(run.plan, measured, shell.profiles)
    account, scheduler = driver.scheduler.account, driver.scheduler
    return Ending(
        finish,
        messages=driver.messages,
        efficiency=account.efficiency(scheduler.groups, scheduler.now),
        measured=measured,
        tell=driver.tell_end,
        peak_memory_bytes=peak,
    )


@contextlib.contextmanager
def _recorded(run: Segment, driver: Driver, shell: Shell) -> Iterator[None]:
    """Write the event log while the run is driven, if it has a directory that stays."""
    if not run.keeps_directory or not shell.event_log:
        yield
        return
    keep_earlier_logs(run.directory.path)
    with contextlib.suppress(OSError):  # a run goes on without its log
        run.directory.private_file(FILE_NAME)
    recorder = EventRecorder(run.directory.path, run.plan.groups, driver.scheduler.config)
    driver.recorder = recorder
    try:
        yield
    finally:
        recorder.close()
        driver.recorder = None
        driver.messages += [recorder.problem] if recorder.problem else []
