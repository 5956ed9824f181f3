"""`Registrar`: the one place that knows which tasks were begun, by which worker, and which are done.

The other engine repeats tasks when a worker or a machine is lost, without saying so. Here, if a task is begun again
without having been finished, its worker must have died on it, and `retry` decides how the next attempt is made. One
that is begun again after it was finished has lost its results with a machine: they are made again, and counted once.
It runs as an actor on the cluster and answers small questions; no data is here.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gristmill.backends.delegated.envelope import Receipt, Ticket
from gristmill.backends.delegated.task_times import TaskTime
from gristmill.engine.breaker import DEATHS, DEATHS_IN_A_ROW
from gristmill.engine.events import Crumb, Learnt
from gristmill.engine.faults import Fault
from gristmill.engine.policies.retry import FRESH, Trial, after_death, after_exception, counts_against_stage
from gristmill.metrics.node_sample import NodeSample

Key = tuple[int, str]  # group, item
FIRST_REPEAT = 1_000  # attempts that no task reaches by failing: the number is in the name of its temporary files
LOST = "it was lost"  # no reason is given: the other engine only starts the task again


class News(NamedTuple):
    """What the driver wants to know, often."""

    receipts: list[Receipt]
    lost: list[tuple[int, str]]  # group and item: a worker died on it
    workers: dict[int, int]  # set up so far, by group
    busy: dict[int, int]  # tasks at work, by group
    failure: str
    outcome: str = "failed"  # what kind of failure it is
    messages: tuple[str, ...] = ()
    retries: tuple[tuple[int, str, int], ...] = ()  # so far: group, stage ("" if unknown), tasks tried again
    memory: tuple[tuple[int, int, int], ...] = ()  # group, bytes of its workers together, and of the largest
    nodes: tuple[NodeSample, ...] = ()
    times: tuple[TaskTime, ...] = ()


# How a run ends at the first failure of a kind; PROGRAM only where no document has passed the stage.
_STOPPED_BY = {
    Fault.BUG: "failed",
    Fault.PROGRAM: "broken",
    Fault.LIMIT: "quarantine_limit",
    Fault.SPENDING: "spending",
}


class Registrar:
    """The state of one run on the workers' side."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running: dict[Key, tuple[str, float]] = {}  # by which call of which worker, since when
        self._times: list[TaskTime] = []
        self._trials: dict[Key, Trial] = {}
        self._crumbs: dict[Key, Crumb] = {}
        self._done: dict[int, set[Key]] = {}  # of roots that are not committed yet
        self._closed: set[int] = set()
        self._receipts: list[Receipt] = []
        self._lost: list[Key] = []
        self._workers: Counter[int] = Counter()  # that have been set up, by group
        self._nodes: dict[str, bool] = {}  # whether the node is set up, or just being set up
        self._repeats = 0
        self._failure = ""
        self._outcome = "failed"
        self._messages: list[str] = []
        self._passed: set[tuple[int, str]] = set()  # group and stage that some document has passed
        self._learnt: dict[int, dict[str, float]] = {}  # by group
        self._deaths: Counter[int] = Counter()  # by group, since a document last passed
        self._deaths_that_count: Counter[int] = Counter()  # by group, those that say something about a stage
        self._stopped = False
        self._retries: Counter[tuple[int, str]] = Counter()
        self._memory: dict[int, dict[str, int]] = {}  # by group and worker
        self._samples: dict[str, NodeSample] = {}  # the latest of each machine

    # Asked by workers

    def begin(self, group: int, worker: str, items: Sequence[tuple[int, str]]) -> list[Ticket | None]:
        """How to handle these tasks; None for one that is no longer wanted."""
        return [self._begin((group, item_id), root, worker) for root, item_id in items]

    def _begin(self, key: Key, root: int, worker: str) -> Ticket | None:
        if self._stopped or root in self._closed:
            return None
        if key in self._done.get(root, ()):
            self._repeats += 1
            self._trials[key] = Trial(attempts=FIRST_REPEAT * self._repeats)
            return _ticket(self._trials[key])
        trial = self._trials.get(key, FRESH)
        if key in self._running:
            self._lost.append(key)
            crumb = self._crumbs.pop(key, None)
            trial = self._trials[key] = after_death(trial, LOST, crumb)
            self._retries[key[0], ""] += 1
            self._memory.get(key[0], {}).pop(self._running[key][0].rpartition("-")[0], None)
            if self._is_broken(key[0], counts=counts_against_stage(trial, LOST, crumb)):
                return None
        self._running[key] = (worker, self._clock())
        return _ticket(trial)

    def leave_crumb(self, group: int, item_id: str, crumb: tuple[int, int, int, int]) -> None:
        """A worker is about to touch these rows of a task."""
        self._crumbs[group, item_id] = Crumb(*crumb)

    def _is_broken(self, group: int, *, counts: bool) -> bool:
        """Count a death; return whether the run stops, after too many without a document passing."""
        self._deaths[group] += 1
        self._deaths_that_count[group] += counts
        passed = any(passed_group == group for passed_group, _ in self._passed)
        if self._deaths[group] < DEATHS_IN_A_ROW and (passed or self._deaths_that_count[group] < DEATHS):
            return False
        self._stop("broken", f"workers of one group died {self._deaths[group]} times without any document passing")
        return True

    def raised(self, group: int, item_id: str, stage: str, error: str, fault: Fault) -> Ticket:
        """A stage raised on a task; how to try it again."""
        if fault is Fault.INPUT:
            return Ticket(given_up=True)
        some_passed = (group, stage) in self._passed
        outcome = _STOPPED_BY.get(fault, "")
        if outcome and not (fault is Fault.PROGRAM and some_passed):
            return self._stop(outcome, f"{stage}: {error}")
        before = self._trials.get((group, item_id), FRESH)
        trial = after_exception(before, error, fault, some_passed=some_passed)
        if trial is None:
            return self._stop("machine", f"{stage}: {error}")
        if trial.pause_s:
            self._messages.append(f"{stage}: {error}; trying again in {trial.pause_s:g} s")
        self._trials[group, item_id] = trial
        self._retries[group, stage] += 1
        return _ticket(trial)

    def _stop(self, outcome: str, failure: str) -> Ticket:
        """The run cannot go on: nothing more is begun."""
        if not self._failure:
            self._failure, self._outcome = failure, outcome
        self._stopped = True
        return Ticket(given_up=True)

    def finish(self, receipts: Sequence[Receipt]) -> list[bool]:
        """Tasks are done. False for one that had been done before: what this attempt made is not wanted."""
        return [self._finish(receipt) for receipt in receipts]

    def _finish(self, receipt: Receipt) -> bool:
        key = (receipt.group, receipt.item_id)
        begun = self._running.pop(key, None)
        self._trials.pop(key, None)
        self._crumbs.pop(key, None)
        if receipt.root in self._closed or key in self._done.get(receipt.root, ()):
            return False
        self._done.setdefault(receipt.root, set()).add(key)
        self._receipts.append(receipt)
        if begun is not None:
            self._times.append(_task_time(receipt, *begun, self._clock()))
        known = self._learnt.setdefault(receipt.group, {}) if receipt.learnt else {}
        for name, value in receipt.learnt:
            known[name] = min(value, known.get(name, value))
        for stage in receipt.passed:
            self._passed.add((receipt.group, stage))
            self._deaths[receipt.group] = 0
        return True

    def learnt(self, group: int) -> Learnt:
        """What workers of a group have told those that start later."""
        return tuple(sorted(self._learnt.get(group, {}).items()))

    def worker_ready(self, group: int) -> None:
        """A worker of a group has been set up."""
        self._workers[group] += 1

    def set_up_failed(self, error: str) -> None:
        """A stage's set-up raised: the run cannot go on."""
        self._stop("failed", error)

    def claim_node(self, node: str) -> str:
        """Say whether to "set up" a node, to "wait" for the worker that does, or that it is "ready"."""
        if node not in self._nodes:
            self._nodes[node] = False
            return "set up"
        return "ready" if self._nodes[node] or self._stopped else "wait"

    def node_ready(self, node: str) -> None:
        """A node is set up."""
        self._nodes[node] = True

    def sampled(self, group: int, worker: str, memory_bytes: int, sample: NodeSample) -> None:
        """A worker says how much memory it has held, and how its machine is doing."""
        self._memory.setdefault(group, {})[worker] = memory_bytes
        self._samples[sample.node] = sample

    def say(self, message: str) -> None:
        """A worker has something to tell those who watch the run."""
        self._messages.append(message)

    # Asked by the driver

    def take(self) -> News:
        """What is new since the last time."""
        busy = Counter(group for group, _ in self._running)
        messages = tuple(self._messages)
        news = News(
            self._receipts,
            self._lost,
            dict(self._workers),
            dict(busy),
            self._failure,
            self._outcome,
            messages,
            tuple((group, stage, number) for (group, stage), number in self._retries.items()),
            tuple((group, sum(held.values()), max(held.values())) for group, held in self._memory.items() if held),
            tuple(self._samples.values()),
            tuple(self._times),
        )
        self._receipts, self._lost, self._messages, self._times = [], [], [], []
        return news

    def running(self) -> dict[int, list[str]]:
        """Which tasks of which groups are at work."""
        found: dict[int, list[str]] = {}
        for group, item_id in self._running:
            found.setdefault(group, []).append(item_id)
        return found

    def closed(self) -> set[int]:
        """Partitions that are committed."""
        return self._closed

    def close(self, roots: Sequence[int]) -> None:
        """These partitions are committed: nothing about them counts any more."""
        self._closed.update(roots)
        for root in roots:
            self._done.pop(root, None)

    def stop(self) -> None:
        """Let what is under way finish, and begin nothing."""
        self._stopped = True


def _task_time(receipt: Receipt, call: str, begun: float, ended: float) -> TaskTime:
    counts = receipt.counts
    return TaskTime(
        receipt.group,
        call.rpartition("-")[0],  # the worker, without the number of its call
        receipt.item_id,
        begun,
        ended,
        receipt.useful_s,
        counts[0].documents_in if counts else 0,
        counts[-1].documents_out if counts else 0,
        counts[0].bytes_in if counts else 0,
        tuple(stage.process_s for stage in counts),
    )


def _ticket(trial: Trial) -> Ticket:
    patience = trial.is_out_of_patience
    how = (trial.care, trial.attempts, trial.condemned, trial.cause, trial.pause_s, patience)
    return Ticket(*how, step_from=trial.step_from)
