"""The loop of one worker process: take calls in order, run them, send results.

Results of quick tasks are held back for a few milliseconds and sent together; nothing is held back while the worker
would otherwise wait. What is still held back when a long call begins is sent when that call is over. Crumbs are written
to a shared block that outlives the process.
"""

import gc
import mmap
import os
import resource
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from gristmill.engine.commands import EMIT_CREDITS, Care
from gristmill.engine.events import Crumb, Learnt
from gristmill.engine.faults import Fault
from gristmill.engine.plan import AnyTask, Group
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.worker import shared_memory
from gristmill.worker.channel import MAX_FDS, Channel, ChannelClosed, Message
from gristmill.worker.crumbs import CRUMB, NO_CRUMB, empty_block, method_crumb
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job, JobFailure, JobResult, RunSettings
from gristmill.worker.silence import Silence
from gristmill.worker.wire import BlockLost, Blocks, Parcel, counts_to_wire, pack, unpack

HOLD_S = 0.002
RSS_S = 0.05
STEP_S = 0.02  # between two reports that a worker has come a step further
FAN_OUT = 100  # outputs in one message, at most
RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there and in KiB elsewhere


def work(
    loaded: tuple[tuple[Group, ...], RunSettings],
    which: tuple[int, int, tuple[str, ...], Learnt],
    sock: socket.socket,
    crumb_fd: int,
) -> None:
    """Run one worker until it is told to drain or the driver is gone."""
    from gristmill.worker.worker_log import take_over  # loaded in the server, when the driver has its answer

    gc.enable()  # the server had no use for it
    worker, group_index, gpus, learnt = which
    groups, settings = loaded
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    group = groups[group_index]
    limit_threads(group)
    crumbs = mmap.mmap(crumb_fd, len(empty_block(group.lanes)))
    os.close(crumb_fd)
    last = group_index + 1 == len(groups)
    process = make_loop(Channel(sock), group, settings, crumbs, last=last)
    process.own_fd = sock.fileno()
    metadata = WorkerMetadata(worker_id=f"{group.name}-{worker}", gpu_ids=gpus, learnt=dict(learnt))
    log = take_over(str(worker), process.stage_name)
    try:
        if process.set_up(metadata):
            process.run()
    except ChannelClosed:
        return
    finally:
        log.flush()


def make_loop(
    channel: "Line",
    group: Group,
    settings: RunSettings,
    crumbs: mmap.mmap,
    *,
    last: bool,
    blocks: Blocks = shared_memory,
) -> "WorkerLoop":
    """The loop a worker of a group runs: one call after another, or as many at once as it has lanes."""
    if group.lanes == 1:
        return WorkerLoop(channel, group, settings, crumbs, last=last, blocks=blocks)
    from gristmill.worker.lane_loop import LaneLoop

    return LaneLoop(channel, group, settings, crumbs, last=last, blocks=blocks)


def limit_threads(group: Group) -> None:
    """One worker of many: its libraries must not each start a thread per core."""
    threads = max(1, int(group.resources.cpus))
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.set_cpu_count(threads)
    else:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # Arrow reads it, if a stage loads Arrow later


class Line(Protocol):
    """A worker's way to the driver: messages, and the blocks that ride beside them."""

    def send(self, message: Message, fds: Sequence[int] = ()) -> None: ...  # they stay open here
    def receive(self) -> list[tuple[Message, list[int]]]: ...
    def poll(self) -> list[tuple[Message, list[int]]]: ...


class WorkerLoop:
    """The state of the loop."""

    runner_type = GroupRunner

    def __init__(
        self,
        channel: Line,
        group: Group,
        settings: RunSettings,
        crumbs: mmap.mmap,
        *,
        last: bool,
        blocks: Blocks = shared_memory,
    ) -> None:
        self.channel = channel
        self.blocks = blocks
        self.crumbs = crumbs
        self.runner = self.runner_type(
            group,
            last=last,
            settings=settings,
            leave_crumb=self._leave_crumb,
            enter_method=self._enter_method,
            keeps_inputs=False,
        )
        self.calls: deque[list[tuple[Message, Parcel]]] = deque()
        self.draining = False
        self.credits: dict[int, int] = {}
        self.own_fd = -1  # of its way to the driver, where that is a file of this process
        self.running = -1
        self._taking_apart = False
        self._has_deadline = group.deadline_s is not None
        self._no_deadline = [self._has_deadline and stage.deadline_s is None for stage in group.stages]
        self._unhurried = False  # as the driver knows it
        self._says_steps = False
        self._stepped_at = 0.0
        self._results: list[tuple[object, ...]] = []
        self._fds: list[int] = []
        self._sent_at = 0.0
        self._listened_at = 0.0
        self._rss_at = 0.0
        self._rss_bytes = 0

    def set_up(self, metadata: WorkerMetadata) -> bool:
        started = time.perf_counter()
        error = self.runner.setup(metadata)
        self.crumbs[: CRUMB.size] = NO_CRUMB
        if error:
            self.channel.send([("setup_failed", error)])
            return False
        self.channel.send([("ready", time.perf_counter() - started)])
        return True

    def run(self) -> None:
        with Silence(self.crumbs, lambda: (self.crumbs[: CRUMB.size], self.running)):
            self._run_until_drained()

    def _run_until_drained(self) -> None:
        while True:
            if not self.calls:
                self._flush()
                if self.draining:
                    self.runner.teardown()
                    self.channel.send([("drained",)])
                    return
                self._take(self.channel.receive())
                self._listened_at = time.perf_counter()
                continue
            if time.perf_counter() - self._listened_at > HOLD_S:
                self._take(self.channel.poll())  # what has waited behind a long call may have been given to others
                self._listened_at = time.perf_counter()
                if not self.calls:
                    continue
            self._run_call(self.calls.popleft())
            if self._fds or time.perf_counter() - self._sent_at > HOLD_S:
                self._flush()

    def _take(self, messages: list[tuple[Message, list[int]]]) -> None:
        for batch, fds in messages:
            queue = iter(fds)
            for kind, payload in batch:
                if kind == "call":
                    self.calls.append([(wire, _parcel(wire, queue)) for wire in payload])
                elif kind == "recall":
                    self._skip(frozenset(payload))
                elif kind == "grant":
                    self.credits[payload] = self.credits.get(payload, 0) + 1
                else:
                    self.draining = True

    def _skip(self, tasks: frozenset[int]) -> None:
        """Forget the calls of these tasks. The driver has given them to others and wants to hear nothing about them."""
        calls: deque[list[tuple[Message, Parcel]]] = deque()
        for call in self.calls:
            kept = [(wire, parcel) for wire, parcel in call if wire[0] not in tasks]
            for wire, parcel in call:
                if wire[0] in tasks and parcel.fd >= 0:
                    self.blocks.let_go(parcel.fd)
            if kept:
                calls.append(kept)
        self.calls = calls

    def stage_name(self) -> str:
        """The stage that is at work, or the first of its group."""
        stage = CRUMB.unpack_from(self.crumbs)[1]
        return str(self.runner.group.names[max(0, stage)])

    def _enter_method(self, method: str, stage: int) -> None:
        self.crumbs[: CRUMB.size] = method_crumb(method, stage)

    def _leave_crumb(self, stage: int, first_row: int, end_row: int, turn: int = 0) -> None:
        if self._taking_apart and self.own_fd >= 0:
            os.fstat(self.own_fd)  # a stage that closed it ends the worker here, while the crumb still names that stage
        CRUMB.pack_into(self.crumbs, 0, 0, stage, first_row, end_row, turn)
        # A deadline is for one call of a stage. One message may lead to many: of several stages, of several tasks, of
        # each alone after they have failed together, of a task that is taken apart. So the worker reports its steps; at
        # once when it goes from a stage with a deadline to one without, or back: 30 µs, twice for each task.
        if self._says_steps:
            unhurried = self._no_deadline[stage]
            if unhurried is not self._unhurried or time.perf_counter() - self._stepped_at > STEP_S:
                self._stepped_at = time.perf_counter()
                self._unhurried = unhurried
                self.channel.send([("stepped", self.running, unhurried)])

    # One call

    def _run_call(self, call: list[tuple[Message, Parcel]]) -> None:
        self.running = call[0][0][0]
        self.crumbs[: CRUMB.size] = NO_CRUMB
        call, jobs = self._unpacked(call)
        if not jobs:
            return
        self._taking_apart = any(job.care is not Care.NORMAL for job in jobs)
        self._says_steps = self._taking_apart or self._has_deadline
        if self._has_deadline:
            self._stepped_at = time.perf_counter()  # the driver knows when it began
            self._unhurried = False
        emitted = [0] * len(jobs)

        def emit(number: int, item_id: str, task: AnyTask) -> None:
            self._emit(call[number][0], emitted[number], item_id, task)
            emitted[number] += 1

        outcomes = self.runner.run(jobs, emit)
        for (wire, _), outcome, index in zip(call, outcomes, emitted, strict=True):
            self._tell(wire, outcome, index)
        self.running = -1

    def _unpacked(self, call: list[tuple[Message, Parcel]]) -> tuple[list[tuple[Message, Parcel]], list[Job]]:
        """Return the part of a call that can be done; the data of the rest is lost, through no fault of its own."""
        kept, jobs = [], []
        for wire, parcel in call:
            try:
                jobs.append(self._job(wire, parcel))
                kept.append((wire, parcel))
            except BlockLost as lost:
                self._results.append(("raised", wire[0], self.runner.group.name, str(lost), Fault.TRANSIENT))
        return kept, jobs

    def _job(self, wire: Message, parcel: Parcel) -> Job:
        _, item_id, _, how = wire
        if not how:
            return Job(item_id, unpack(parcel, self.blocks))
        care, attempt, condemned, cause, out_of_patience, step_from, _ = how
        left_out = tuple((Crumb(*crumb), how_ended) for crumb, how_ended in condemned)
        start = None if step_from is None else Crumb(*step_from)
        return Job(item_id, unpack(parcel, self.blocks), Care(care), attempt, left_out, cause, out_of_patience, start)

    def _tell(self, wire: Message, outcome: JobResult | JobFailure, first_index: int) -> None:
        # Not in one line: for a call that made much, `_outcome` sends what is ready, and then another list begins.
        said = self._outcome(wire, outcome, first_index)
        self._results.append(said)

    def _outcome(self, wire: Message, outcome: JobResult | JobFailure, first_index: int) -> tuple[object, ...]:
        task = wire[0]
        if isinstance(outcome, JobFailure):
            return ("raised", task, outcome.stage, outcome.error, outcome.fault, outcome.divisible)
        numbered = list(enumerate(outcome.outputs, first_index))
        if len(numbered) > FAN_OUT:
            # Descriptors are few, in a message and in the driver: most of a large fan-out goes ahead as if streamed.
            for n, (item_id, made) in numbered[:-FAN_OUT]:
                self._emit(wire, n, item_id, made)
            numbered = numbered[-FAN_OUT:]
        self.credits.pop(task, None)
        if len(self._fds) > MAX_FDS - FAN_OUT:
            self._flush()
        outputs = [self._output(n, item_id, made) for n, (item_id, made) in numbered]
        return ("done", task, outputs, outcome.useful_s, _notes(outcome), self._rss())

    def _rss(self) -> int:
        """The most memory this process has had. Asking costs 20 µs, so a worker with quick tasks asks now and then."""
        now = time.perf_counter()
        if now - self._rss_at > RSS_S:
            self._rss_at = now
            self._rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
        return self._rss_bytes

    def _output(self, index: int, item_id: str, task: AnyTask) -> tuple[object, ...]:
        parcel = pack(task, self.blocks)
        if parcel.fd >= 0:
            self._fds.append(parcel.fd)
        # For a task that does not say what it holds, its size when sent is known: no task is free of charge.
        num_bytes = task.nbytes or parcel.size
        return (index, item_id, num_bytes, parcel.header, parcel.body, parcel.size, task.num_items)

    def _emit(self, wire: Message, index: int, item_id: str, task: AnyTask) -> None:
        """Send one output of a task that goes on, waiting while the driver has too many of them."""
        number: int = wire[0]
        skip: int = wire[3][-1] if wire[3] else 0
        if index < skip:
            return  # an earlier attempt delivered it
        credits = self.credits.setdefault(number, EMIT_CREDITS)
        while credits == 0:
            self._flush()
            self._take(self._receive())
            credits = self.credits[number]
        self.credits[number] = credits - 1
        self._results.append(("emitted", number, self._output(index, item_id, task)))
        self._flush()

    def _receive(self) -> list[tuple[Message, list[int]]]:
        return self.channel.receive()

    def _flush(self) -> None:
        self._sent_at = time.perf_counter()
        if self._results:
            self.channel.send(self._results, self._fds)
            for fd in self._fds:
                self.blocks.let_go(fd)
            self._results, self._fds = [], []


def _notes(outcome: JobResult) -> tuple[object, ...]:
    """What a task did to documents and files: nothing, where it holds none."""
    counted = not all(stage.is_empty() for stage in outcome.counts)
    if not (counted or outcome.files or outcome.side_files or outcome.facts or outcome.learnt):
        return ()
    counts = [counts_to_wire(stage) for stage in outcome.counts] if counted else []
    return (counts, outcome.side_files, outcome.facts, outcome.files, tuple(outcome.learnt.items()))


def _parcel(wire: Message, fds: Iterator[int]) -> Parcel:
    header, body, size = wire[2]
    return Parcel(header, body, size, -1 if body is not None else next(fds))
