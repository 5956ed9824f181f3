"""Deadlines, warnings and worn-out workers: what has to be done to a worker because time passes. Part of the scheduler.

Looking at every worker at every moment would cost more than everything else. So each look also finds the first moment
at which anybody can need another, and until then there is none: a task that begins after a look cannot be overdue
before the shortest patience has passed, nor a worker that becomes ready before a lifetime.
"""

import math
from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine.crew import WorkerRecord, WorkerState
from gristmill.engine.policies.recycling import own_limit
from gristmill.engine.state import GroupRecord

if TYPE_CHECKING:  # parts of one object: the scheduler owns them all
    from gristmill.engine.scheduler import Scheduler

WATCHDOG_FACTOR = 20.0  # times the usual time of a task before the user is told
AGAIN = 2.0  # times as long before the user is told again
CANCEL_S = 5.0  # for a worker that ends overdue calls itself; then the call does not heed it, and the process has to go


class Caretaker:
    """Looks after workers. Starting and draining them is the fleet's."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self._last_look = 0.0
        self._last_recycle = 0.0
        self._none_overdue_until = -math.inf
        self._none_worn_until = -math.inf

    def look(self) -> None:
        """Once for every moment, after its news: a result that is here already must not count as overdue."""
        now = self.scheduler.now
        if now <= self._last_look:
            return
        self._last_look = now
        if now > self._none_worn_until:
            self._recycle()
        if now > self._none_overdue_until:
            self._none_overdue_until = min(
                (self._watch_group(group) for group in self.scheduler.groups), default=math.inf
            )

    # Overdue

    def _watch_group(self, group: GroupRecord) -> float:
        """See to the workers of a group that are overdue; return when the next can be."""
        now, patience = self.scheduler.now, self._patience(group)
        deadline = math.inf if group.plan.deadline_s is None else group.plan.deadline_s
        deadline += CANCEL_S if group.plan.cancels else 0.0
        next_s = now + min(deadline, self.scheduler.config.watchdog_s)
        for worker in group.workers.values():
            if worker.assigned or worker.may_linger:
                self._watch(worker, deadline, patience)
                due = min(deadline, max(patience, AGAIN * worker.warned_at))
                next_s = min(next_s, worker.oldest_since + due)
        for state, doing in ((WorkerState.STARTING, "set-up"), (WorkerState.DRAINING, "end")):
            concerned = [w for w in group.workers.values() if w.state is state and not w.assigned]
            next_s = min(next_s, self._watch_idle(concerned, doing))
        return next_s

    def _watch_idle(self, workers: list[WorkerRecord], doing: str) -> float:
        """Speak up about workers without a task that do not get ready, or do not end: one speaks for all of a group.

        Return when the next of them can be overdue.
        """
        s, overdue, next_s = self.scheduler, [], math.inf
        for worker in workers:
            waited_s = s.now - max(worker.state_since, worker.idle_since)
            if waited_s > max(s.config.watchdog_s, AGAIN * worker.warned_at):
                worker.warned_at = waited_s
                overdue.append(worker)
            next_s = min(next_s, s.now - waited_s + max(s.config.watchdog_s, AGAIN * worker.warned_at))
        if overdue:
            first = overdue[0]
            s.out.append(c.Warn(first.id, -1, "", first.warned_at, len(overdue) - 1, doing))
        return next_s

    def _patience(self, group: GroupRecord) -> float:
        return max(self.scheduler.config.watchdog_s, WATCHDOG_FACTOR * (group.mean_call_s or 0.0))

    def _watch(self, worker: WorkerRecord, deadline: float, patience: float) -> None:
        """Kill a worker whose call is past its stage's deadline; speak up about one that is suspiciously slow."""
        s = self.scheduler
        running_s = s.now - worker.oldest_since
        if running_s > deadline:
            worker.running_since = s.now  # once is enough
            for call in [call for call in worker.running.values() if s.now - call.since > deadline]:
                worker.overdue.add(call.number)
                worker.begin_anew(call, s.now)
            s.out.append(c.KillWorker(worker.id, f"no result within the deadline of {deadline:g} s"))
        elif worker.assigned and running_s > max(patience, AGAIN * worker.warned_at):
            worker.warned_at = running_s
            task = next(iter(worker.running.values())).tasks[0]
            s.out.append(c.Warn(worker.id, task.id, task.item_id, running_s))

    # Worn out

    def worker_may_be_worn(self) -> None:
        """Something besides time has changed: a worker has ended, and others may take their turn."""
        self._none_worn_until = -math.inf

    def worker_was_used(self, worker: WorkerRecord) -> None:
        """A worker has grown, or done one task more."""
        if self._is_used_up(worker):
            self._none_worn_until = -math.inf

    def _is_used_up(self, worker: WorkerRecord) -> bool:
        most_bytes, most_tasks = self.scheduler.config.worker_memory_bytes, self.scheduler.config.worker_max_tasks
        return (most_bytes is not None and worker.rss_bytes > own_limit(worker.id, most_bytes)) or (
            most_tasks is not None and worker.tasks_done >= own_limit(worker.id, most_tasks)
        )

    def _recycle(self) -> None:
        """Replace workers that are too old, too large or used too often, the new one before the old one goes.

        Of a group one at a time; those that are only old also `worker_restart_interval_s` apart, and not while a group
        waits for room: what is given up for it would go to somebody's replacement, again and again.
        """
        s = self.scheduler
        worn = self._first_worn()
        if worn is None:
            return
        group = s.groups[worn.group]
        if s.fleet.start(group, replaces=worn.id):
            self._last_recycle = s.now
        elif all(worker.state is WorkerState.READY for worker in group.workers.values()):
            # Where its GPU is all there is, the old one has to go first. While others come or go there will be room.
            self._last_recycle = s.now
            s.fleet.drain(worn)

    def _first_worn(self) -> WorkerRecord | None:
        """The first worker to be replaced; None, and when there may be one, if none is worn now."""
        s, config = self.scheduler, self.scheduler.config
        lifetime = math.inf if config.worker_max_lifetime_s is None else config.worker_max_lifetime_s
        old_again_at = self._last_recycle + config.worker_restart_interval_s
        waited_for = lifetime < math.inf and s.fleet.is_waited_for()
        if waited_for:
            lifetime = math.inf
        until = s.now + lifetime
        if until < math.inf or config.worker_memory_bytes is not None or config.worker_max_tasks is not None:
            for worker in self._replaceable():
                old_at = max(worker.ready_at + lifetime, old_again_at)
                if s.now > old_at or self._is_used_up(worker):
                    return worker
                until = min(until, old_at)
        self._none_worn_until = -math.inf if waited_for else until
        return None

    def _replaceable(self) -> list[WorkerRecord]:
        """Ready workers of groups that go on and in which nobody is being replaced, the oldest first."""
        s = self.scheduler
        found = []
        for index, group in enumerate(s.groups):
            workers = group.workers.values()
            under_way = any(w.replaces is not None and s.fleet.find(w.replaces) is not None for w in workers)
            if not under_way and not s.group_finished(index):
                found += [worker for worker in workers if worker.state is WorkerState.READY]
        return sorted(found, key=lambda worker: worker.id)
