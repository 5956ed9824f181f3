"""The schedule of a run: what each worker was doing when, told from the steps of a replay.

    steps ─▶ Spans (a worker at one thing), Marks (something happened), Levels (a number that changes)

Pure like the scheduler: nothing is recorded for this, as the event log has it all. Placing things in time is
`spans.py`'s. A worker with several lanes has its calls side by side: each is on the first lane free for all of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.commands import Care
from gristmill.engine.event_log import GroupShape
from gristmill.engine.replay import Step
from gristmill.engine.spans import NO_GROUP, Level, Mark, Rows, Shown, Span


def schedule(steps: Iterable[Step], groups: Sequence[GroupShape], *, began: float | None = None) -> Iterator[Shown]:
    """Yield the schedule of a run; spans of one lane in order, all others nearly so.

    `began` is the moment seconds count from, by the run's clock: the first step's if it is None.
    """
    follower = _Follower(groups, began)
    for step in steps:
        yield from follower.follow(step)
    yield from follower.close()


class _Sent(msgspec.Struct):
    """A task that a worker has."""

    number: int
    item_id: str
    attempt: int
    care: str
    at: float
    waited_s: float


class _Call(msgspec.Struct):
    since: float
    tasks: dict[int, _Sent]


class _Worker(msgspec.Struct):
    number: int
    group: int
    lanes: int
    rows: Rows
    since: float  # when it was started, or told to end
    state: str = "set-up"  # then "ready", then "ending"
    calls: dict[int, _Call] = msgspec.field(default_factory=dict)  # by the number of the first task, in order
    call_of: dict[int, int] = msgspec.field(default_factory=dict)
    was_sampled: bool = False

    def begin_next(self, now: float) -> None:
        """What is first in line has begun: as many calls as there are lanes."""
        for call in list(self.calls.values())[: self.lanes]:
            call.since = call.since or now

    def take(self, task: int, now: float) -> tuple[_Sent, float] | None:
        """A task is over; return it and since when its call ran. After the last task of a call the next call begins."""
        number = self.call_of.pop(task, None)
        if number is None:
            return None
        call = self.calls[number]
        sent = call.tasks.pop(task)
        since = call.since or sent.at
        if not call.tasks:
            del self.calls[number]
            self.begin_next(now)
        return sent, since


class _Follower:
    def __init__(self, groups: Sequence[GroupShape], began: float | None) -> None:
        self._groups = groups
        self._began = began
        self._now = 0.0
        self._workers: dict[int, _Worker] = {}
        self._waiting: dict[tuple[int, str], float] = {}  # task of a group -> since when
        self._open: set[tuple[int, str]] = set()  # made and not finished
        self._queues = [0] * len(groups)
        self._changed: set[int] = set()
        self._heard: dict[type, Callable[[Any], Iterator[Shown]]] = {
            e.SourceListed: self._listed,
            e.ListedAgain: self._listed_again,
            e.WorkerReady: self._ready,
            e.WorkerSetupFailed: self._setup_failed,
            e.WorkerLost: self._lost,
            e.WorkerExited: self._exited,
            e.TaskEmitted: self._emitted,
            e.TaskStepped: self._stepped,
            e.TaskFinished: self._finished,
            e.TaskRaised: self._raised,
            e.MemorySampled: self._sampled,
            e.NodeLost: self._node_lost,
        }
        self._told: dict[type, Callable[[Any], Iterator[Shown]]] = {
            c.StartWorker: self._start,
            c.DrainWorker: self._drain,
            c.SendTask: self._send,
            c.RecallTask: self._recall,
            c.Commit: self._commit,
            c.Warn: self._warn,
            c.Tell: self._tell,
            c.Finish: self._finish,
        }

    def follow(self, step: Step) -> Iterator[Shown]:
        """What a step adds."""
        if self._began is None:
            self._began = step.now
        self._now = step.now - self._began
        for event in step.events:
            if (heard := self._heard.get(type(event))) is not None:
                yield from heard(event)
        for command in step.commands:
            if (told := self._told.get(type(command))) is not None:
                yield from told(command)
        for group in sorted(self._changed):
            yield Level("queue", self._now, self._queues[group], group)
        self._changed.clear()

    def close(self) -> Iterator[Shown]:
        """The log is at its end: a worker still doing something does it to the end."""
        for number in list(self._workers):
            yield from self._leave(number, "the log ends here", kind="lost" if self._has_calls(number) else "")

    def _has_calls(self, number: int) -> bool:
        return bool(self._workers[number].calls)

    # Tasks that wait

    def _wait(self, group: int, item_id: str) -> None:
        if group < len(self._groups):
            key = (group, item_id)
            self._open.add(key)
            if key not in self._waiting:
                self._queues[group] += 1
                self._changed.add(group)
            self._waiting[key] = self._now

    def _listed(self, event: e.SourceListed) -> Iterator[Shown]:
        for item in event.items:
            self._wait(0, item.name)
        yield from ()

    def _listed_again(self, event: e.ListedAgain) -> Iterator[Shown]:
        self._wait(0, event.item.name)
        yield Mark("again", self._now, f"{event.item.name}: what was made from it is lost, and is made again", group=0)

    def _emitted(self, event: e.TaskEmitted) -> Iterator[Shown]:
        if (worker := self._workers.get(event.worker)) is not None:
            self._wait(worker.group + 1, event.output.item_id)
        yield from ()

    # Workers

    def _start(self, command: c.StartWorker) -> Iterator[Shown]:
        lanes = self._groups[command.group].lanes
        self._workers[command.worker] = _Worker(command.worker, command.group, lanes, Rows(lanes, self._now), self._now)
        yield from ()

    def _ready(self, event: e.WorkerReady) -> Iterator[Shown]:
        worker = self._workers.get(event.worker)
        if worker is None or worker.state != "set-up":
            return
        worker.state = "ready"
        note = f"{event.setup_s:.3f} s in its stages" if event.setup_s else ""
        yield from worker.rows.add(Span("set-up", worker.number, worker.group, worker.since, self._now, note=note))
        for call in worker.calls.values():
            call.since = 0.0  # sent before the worker was ready: it begins now
        worker.begin_next(self._now)

    def _setup_failed(self, event: e.WorkerSetupFailed) -> Iterator[Shown]:
        yield from self._leave(event.worker, f"set-up failed: {event.error}", kind="lost")

    def _lost(self, event: e.WorkerLost) -> Iterator[Shown]:
        yield from self._leave(event.worker, event.cause, kind="lost")

    def _exited(self, event: e.WorkerExited) -> Iterator[Shown]:
        yield from self._leave(event.worker, "", kind="")

    def _node_lost(self, event: e.NodeLost) -> Iterator[Shown]:
        yield Mark("loss", self._now, f"node {event.node} is lost")

    def _drain(self, command: c.DrainWorker) -> Iterator[Shown]:
        worker = self._workers.get(command.worker)
        if worker is not None and worker.state == "ready":
            worker.state, worker.since = "ending", self._now
        yield from ()

    def _leave(self, number: int, cause: str, *, kind: str) -> Iterator[Shown]:
        """A worker is gone. What it was running has come to nothing; what waited behind that has not begun."""
        worker = self._workers.pop(number, None)
        if worker is None:
            return
        if worker.state == "set-up":
            yield from worker.rows.add(Span("set-up", number, worker.group, worker.since, self._now, note=cause))
        running = list(worker.calls.values())[: worker.lanes] if worker.state != "set-up" else []
        for call in running:
            for sent in list(call.tasks.values())[:1]:
                since = call.since or sent.at
                yield from worker.rows.add(self._span("lost", worker, sent, min(since, self._now), note=cause))
        if worker.state == "ending" and not worker.calls:
            started = max(worker.since, worker.rows.end_s)
            yield from worker.rows.add(Span("ending", number, worker.group, started, max(started, self._now)))
        yield from worker.rows.settle_all()
        for call in worker.calls.values():
            for sent in call.tasks.values():
                self._wait(worker.group, sent.item_id)
        if worker.was_sampled:
            yield Level("memory", self._now, 0, worker.group, number)
        if kind:
            yield Mark("loss", self._now, cause, number, worker.group)

    def _sampled(self, event: e.MemorySampled) -> Iterator[Shown]:
        if (worker := self._workers.get(event.worker)) is not None:
            worker.was_sampled = True
            yield Level("memory", self._now, event.rss_bytes, worker.group, worker.number)

    # Tasks of a worker

    def _send(self, command: c.SendTask) -> Iterator[Shown]:
        worker = self._workers.get(command.worker)
        if worker is None:
            return
        for assignments in command.calls:
            number = assignments[0].task
            call = worker.calls[number] = _Call(0.0, {})
            for a in assignments:
                since = self._waiting.pop((worker.group, a.item_id), None)
                if since is not None:
                    self._queues[worker.group] -= 1
                    self._changed.add(worker.group)
                care = "" if a.care is Care.NORMAL else a.care.name.lower()
                waited_s = 0.0 if since is None else self._now - since
                call.tasks[a.task] = _Sent(a.task, a.item_id, a.attempt, care, self._now, waited_s)
                worker.call_of[a.task] = number
                if a.attempt:
                    how = f"{a.item_id}: attempt {a.attempt + 1}{f', {care}' if care else ''}"
                    yield Mark("retry", self._now, f"{how}: {a.cause}" if a.cause else how, worker.number, worker.group)
        if worker.state != "set-up":
            worker.begin_next(self._now)

    def _recall(self, command: c.RecallTask) -> Iterator[Shown]:
        worker = self._workers.get(command.worker)
        for task in command.tasks:
            if worker is not None and (taken := worker.take(task, self._now)) is not None:
                self._wait(worker.group, taken[0].item_id)
                yield Mark("recall", self._now, taken[0].item_id, worker.number, worker.group)

    def _stepped(self, event: e.TaskStepped) -> Iterator[Shown]:
        worker = self._workers.get(event.worker)
        if worker is not None and (number := worker.call_of.get(event.task)) is not None:
            item_id = worker.calls[number].tasks[event.task].item_id
            yield Mark("step", self._now, item_id, worker.number, worker.group)

    def _raised(self, event: e.TaskRaised) -> Iterator[Shown]:
        worker = self._workers.get(event.worker)
        taken = None if worker is None else worker.take(event.task, self._now)
        if worker is None or taken is None:
            return
        sent, since = taken
        self._wait(worker.group, sent.item_id)
        yield from worker.rows.add(self._span("raised", worker, sent, since, note=f"{event.stage}: {event.error}"))

    def _finished(self, event: e.TaskFinished) -> Iterator[Shown]:
        worker = self._workers.get(event.worker)
        taken = None if worker is None else worker.take(event.task, self._now)
        if worker is None or taken is None:
            return
        sent, _ = taken
        key = (worker.group, sent.item_id)
        is_first = key in self._open
        self._open.discard(key)
        if self._waiting.pop(key, None) is not None:  # the first run of a task that was to be done a second time
            self._queues[worker.group] -= 1
            self._changed.add(worker.group)
        if is_first:
            for output in event.outputs:
                self._wait(worker.group + 1, output.item_id)
        counts = event.counts
        process_s = tuple(stage.process_s for stage in counts)  # none if no document was in it, as in the books
        span = Span(
            "task" if is_first else "wasted",
            worker.number,
            worker.group,
            self._now - max(event.useful_s, sum(process_s)),
            self._now,
            0,
            sent.item_id,
            sent.number,
            sent.attempt,
            sent.care,
            sent.waited_s,
            counts[0].documents_in if counts else 0,
            counts[-1].documents_out if counts else 0,
            counts[0].bytes_in if counts else 0,
            process_s,
        )
        yield from worker.rows.add(span)

    def _span(self, kind: str, worker: _Worker, sent: _Sent, since: float, *, note: str) -> Span:
        start = max(since, sent.at)
        return Span(
            kind,
            worker.number,
            worker.group,
            min(start, self._now),
            self._now,
            item_id=sent.item_id,
            task=sent.number,
            attempt=sent.attempt,
            care=sent.care,
            waited_s=sent.waited_s,
            note=note,
        )

    # The run

    def _commit(self, command: c.Commit) -> Iterator[Shown]:
        yield Mark("commit", self._now, command.name)

    def _warn(self, command: c.Warn) -> Iterator[Shown]:
        group = self._workers[command.worker].group if command.worker in self._workers else NO_GROUP
        text = f"{command.item_id or command.doing}: busy for {command.running_s:.0f} s"
        yield Mark("warning", self._now, text, command.worker, group)

    def _tell(self, command: c.Tell) -> Iterator[Shown]:
        yield Mark("message", self._now, command.text)

    def _finish(self, command: c.Finish) -> Iterator[Shown]:
        yield Mark("end", self._now, f"{command.outcome}: {command.error}" if command.error else command.outcome)
