"""What is taken from a worker, or done to it, because time passes or things are lost. Part of the scheduler.

    Caretaker   deadlines, warnings, worn-out workers
    Recalls     tasks that wait behind a long one and that others could have
    Copies      tasks that take suspiciously long and are run a second time
    Restarts    source partitions that start over, because data that came of them is lost

Looking at every worker at every moment would cost more than everything else. So each look also works out when the next
one can be needed, and until then there is none: a task that begins after a look cannot be overdue before the shortest
patience has passed, nor can a worker that becomes ready then be too old before a lifetime has.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.state import Change, GroupRecord, RootRecord, State, TaskRecord, WorkerRecord, WorkerState

if TYPE_CHECKING:
    from gristmill.engine.scheduler import Scheduler

WATCHDOG_FACTOR = 20.0  # times the usual time of a task before the user is told
AGAIN = 2.0  # times as long before the user is told again
CANCEL_S = 5.0  # grace for a worker that ends overdue calls itself; a call that outlasts it costs the process

# How large a worker may grow, and how many tasks it may do, before it is replaced. Workers of a stage that holds on to
# memory grow alike, and would all reach a common limit together. So each has its own, between three quarters of what is
# allowed and all of it, and they are replaced one after another.

SPREAD = 0.25
GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over the unit interval, however many there are


def own_limit(worker: int, most: float) -> float:
    """Return the bytes, or the tasks, at which this worker is replaced; never more than `most`."""
    return most * (1 - SPREAD * (worker * GOLDEN % 1.0))


# When a task has run so long that a second run elsewhere is likely to finish first. Only tasks of stages that allow it
# (`may_run_twice`) are copied, only when an idle worker has nothing else to do, and each once. Nothing here is random:
# the same events lead to the same copies.

FACTOR = 3.0  # times the mean; a slow machine or a stuck download takes longer than that
LEAST_S = 1.0  # a copy costs a message, an input and the worker that loses


def is_straggler(running_s: float, mean_service_s: float | None) -> bool:
    """Whether a task that has run for `running_s` should be given to another worker as well."""
    return mean_service_s is not None and running_s > max(LEAST_S, FACTOR * mean_service_s)


class Caretaker:
    """Looks after workers. Starting and draining them is the fleet's."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self._last_look = 0.0
        self._last_recycle = 0.0
        self._none_overdue_until = -math.inf
        self._none_worn_until = -math.inf

    def look(self) -> None:
        """Look once per moment, after its events: a task whose result has arrived must not count as overdue."""
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
        """Deal with the overdue workers of a group; return when the next can be overdue."""
        now, patience = self.scheduler.now, self._patience(group)
        deadline = math.inf if group.plan.deadline_s is None else group.plan.deadline_s
        deadline += CANCEL_S if group.plan.cancels else 0.0
        next_s = now + min(deadline, self.scheduler.config.watchdog_s)
        for worker in group.workers.values():
            if worker.assigned or worker.may_linger:
                quiet_since, due = self._quiet_since(worker), max(patience, AGAIN * worker.warned_at)
                own = math.inf if _is_unhurried(worker) else deadline
                if now - quiet_since > min(own, due):
                    self._watch(worker, own, patience)
                    quiet_since, due = self._quiet_since(worker), max(patience, AGAIN * worker.warned_at)
                next_s = min(next_s, quiet_since + min(own, due))
        for state, doing in ((WorkerState.STARTING, "set-up"), (WorkerState.DRAINING, "end")):
            concerned = [w for w in group.workers.values() if w.state is state and not w.assigned]
            next_s = min(next_s, self._watch_idle(concerned, doing))
        return next_s

    def _watch_idle(self, workers: list[WorkerRecord], doing: str) -> float:
        """Warn about workers without a task that do not get ready, or do not end: one warning for all of a group.

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
        """Kill a worker whose call is past its stage's deadline; warn about one that is suspiciously slow."""
        s = self.scheduler
        running_s = s.now - self._quiet_since(worker)
        if running_s > deadline:
            worker.running_since = s.now  # once is enough
            for call in [x for x in worker.running.values() if s.now - worker.quiet_since(x, s.now) > deadline]:
                worker.overdue.add(call.number)
                worker.begin_anew(call, s.now)
            told = s.groups[worker.group].plan.deadline_s  # what the user has set, without the grace
            s.out.append(c.KillWorker(worker.id, f"no result within the deadline of {told:g} s"))
        elif worker.assigned and running_s > max(patience, AGAIN * worker.warned_at):
            worker.warned_at = running_s
            task = next(iter(worker.running.values())).tasks[0]
            s.out.append(c.Warn(worker.id, task.id, task.item_id, running_s))

    def _quiet_since(self, worker: WorkerRecord) -> float:
        """Since when nothing has been heard of the call that has been silent for longest."""
        now, running = self.scheduler.now, worker.running
        if len(running) == 1:  # as nearly everywhere
            (call,) = running.values()
            return worker.quiet_since(call, now)
        return min((worker.quiet_since(call, now) for call in running.values()), default=worker.running_since)

    # Worn out

    def worker_may_be_worn(self) -> None:
        """Something besides time has changed: a worker has ended, so another may be replaced now."""
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
        """Replace workers that are too old, too large or used too often, starting the new one before the old one goes.

        One per group at a time. Those that are only old are also replaced `worker_restart_interval_s` apart, and never
        while a group waits for room: what is given up for it would go to another group's replacement, again and again.
        """
        s = self.scheduler
        worn = self._first_worn()
        if worn is None:
            return
        group = s.groups[worn.group]
        if s.fleet.start(group, replaces=worn.id):
            self._last_recycle = s.now
            group.book.recycles += 1
        elif all(worker.state is WorkerState.READY for worker in group.workers.values()):
            # With no other GPU free, the old one has to go first. While others start or end, room may still come.
            self._last_recycle = s.now
            group.book.recycles += 1
            s.fleet.drain(worn)

    def _first_worn(self) -> WorkerRecord | None:
        """The first worker to replace. If none is worn now, None, and note when one may be."""
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
        """Ready workers, oldest first, of groups that are not finished and have no replacement under way."""
        s = self.scheduler
        found = []
        for index, group in enumerate(s.groups):
            workers = group.workers.values()
            under_way = any(w.replaces is not None and s.fleet.find(w.replaces) is not None for w in workers)
            if not under_way and not s.group_finished(index):
                found += [worker for worker in workers if worker.state is WorkerState.READY]
        return sorted(found, key=lambda worker: worker.id)


def _is_unhurried(worker: WorkerRecord) -> bool:
    """Whether all calls a worker runs have come to stages without a deadline."""
    return bool(worker.running) and all(call.unhurried for call in worker.running.values())


# Whether to take back tasks that wait behind another, when other workers could have them.
#
# A worker holds a task or two in advance so that it need not wait for the driver. If the one it runs turns out to be
# long, those behind it are stuck while other workers are idle. They are taken back: the worker skips what it has not
# begun. Should it begin one at that very moment, both workers do it, and the first result counts.

# A shorter wait is not worth a message. And on a busy machine a worker with quick tasks that waits for a core for a few
# hundredths of a second looks like one with a long task: it would do what is taken back before it hears of the recall.
RECALL_S = 0.1


def is_worth_it(waiting: int, *, mean_service_s: float | None, running_s: float) -> bool:
    """Whether the last of `waiting` tasks behind one that has run for `running_s` would wait longer than messages take.

    A task that has run longer than the mean is expected to need as long again: that is what long tails are like.
    """
    mean = running_s if mean_service_s is None else mean_service_s
    rest = running_s if running_s > mean else mean - running_s
    return waiting > 0 and rest + (waiting - 1) * mean >= RECALL_S


class Recalls:
    """Takes back what waits behind a worker's running calls."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def recall(self, worker: WorkerRecord, *, all_of_it: bool = False) -> bool:
        """Take back half of what waits behind a worker's running calls, or all of it; False if that is not worth it."""
        s, group = self.scheduler, self.scheduler.groups[worker.group]
        waiting = self._waiting(worker)
        running_s = s.now - worker.running_since
        if not is_worth_it(len(waiting), mean_service_s=group.mean_service_s, running_s=running_s):
            return False
        self._take_back(worker, waiting if all_of_it else waiting[len(waiting) // 2 :])
        return True

    def recall_void(self, worker: WorkerRecord) -> None:
        """Take back what waits behind a worker's running call and would come to nothing."""
        taken = [task for task in self._waiting(worker) if self.scheduler.restarts.is_void(task)]
        if taken:
            self._take_back(worker, taken)

    def _waiting(self, worker: WorkerRecord) -> list[TaskRecord]:
        """The tasks a worker cannot have begun yet, taking every call to be full."""
        plan = self.scheduler.groups[worker.group].plan
        if plan.has_sized_batches:
            return [task for call in worker.behind for task in call.tasks]
        return list(worker.assigned.values())[plan.batch_size * plan.lanes :]

    def _take_back(self, worker: WorkerRecord, tasks: list[TaskRecord]) -> None:
        s = self.scheduler
        s.out.append(c.RecallTask(worker.id, tuple(task.id for task in tasks)))
        for task in reversed(tasks):
            s.recalled(worker, task)
        s.groups[worker.group].crew.refile(worker)


# Second runs of tasks that take suspiciously long. Part of the scheduler.
#
# The task itself moves on: it is queued again under a new number, as after a recall. The worker that is running it gets
# nothing more, and its run becomes a shadow: no longer in the books, but if its result comes first, that result is
# taken, and the worker that has the task by then is stopped. If the task is done first, the worker with the shadow is
# stopped.

NOBODY = -1
LOST_TO_ANOTHER = "another worker was faster with the same task"


class Copies:
    """Makes copies and settles which run counts. Where a copy runs is the dispatcher's choice."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def make(self, group: GroupRecord) -> bool:
        """Queue the group's worst straggler a second time, if it has one; the caller has an idle worker for it."""
        s = self.scheduler
        worker = group.crew.most_loaded(above=0) if s.config.copies and group.plan.may_run_twice else None
        if worker is None or len(worker.assigned) != 1:
            return False
        (task,) = worker.assigned.values()
        running_s = s.now - worker.oldest_since
        # A task that streams has outputs further on already; one that failed before is handled with care, and alone.
        is_plain = not task.received and task.trial.care is c.Care.NORMAL and task.shadow == NOBODY
        if not is_plain or s.restarts.is_void(task) or not is_straggler(running_s, group.mean_call_s):
            return False
        worker.shadow = (task.id, task)
        task.shadow = task.last_worker = worker.id
        s.recalled(worker, task)
        s.fleet.drain(worker)
        return True

    def bring_back(self, worker_id: int, number: int) -> tuple[WorkerRecord, TaskRecord] | None:
        """A shadow is done before its task: give the task back to the worker that ran the shadow.

        Returns None if that worker has no such shadow, or the task is over.
        """
        s = self.scheduler
        worker = s.fleet.find(worker_id)
        if worker is None or worker.shadow is None or worker.shadow[0] != number:
            return None
        task = worker.shadow[1]
        if s.tasks.get(task.id) is not task:
            return None
        group = s.groups[task.group]
        if task.state is State.ASSIGNED:
            self._stop(next(w for w in group.workers.values() if task.id in w.assigned), task)
        elif task in group.queue:
            group.queue.remove(task)
        else:
            # A sorted list is a heap too, and numbers are unique, so tasks are never compared.
            group.delayed = sorted(entry for entry in group.delayed if entry[2] is not task)
        s.renumber(task, number)
        task.change(Change.SENT)
        worker.give([task])
        worker.begin(group.plan.lanes, s.now)
        worker.shadow = None
        task.shadow = NOBODY
        return worker, task

    def streams(self, worker_id: int, number: int) -> None:
        """A shadow begins to stream. Its outputs are released, so it can no longer win, and it would get no grants."""
        worker = self.scheduler.fleet.find(worker_id)
        if worker is not None and worker.shadow is not None and worker.shadow[0] == number:
            worker.shadow = None
            self._kill(worker)

    def _stop(self, worker: WorkerRecord, task: TaskRecord) -> None:
        """Stop a worker whose copy is no longer needed; its other tasks go to other workers, without blame."""
        s = self.scheduler
        task.change(Change.RECALLED)
        worker.take(task)
        s.memory.unsend(task.id)
        for other in list(worker.assigned.values()):
            s.recalled(worker, other)
        self._kill(worker)

    def settle(self, task: TaskRecord) -> None:
        """A task is done: stop the worker that has its shadow."""
        worker = self.scheduler.fleet.find(task.shadow)
        if worker is not None and worker.shadow is not None and worker.shadow[1] is task:
            worker.shadow = None
            self._kill(worker)

    def _kill(self, worker: WorkerRecord) -> None:
        s = self.scheduler
        crew = s.groups[worker.group].crew
        if worker.state is WorkerState.READY:
            crew.drain(worker)  # so that it is given nothing more before its end is known
        crew.refile(worker)
        s.groups[worker.group].book.wasted_s += s.now - worker.running_since
        s.out.append(c.KillWorker(worker.id, LOST_TO_ANOTHER))


# Source partitions that start over, because data made from them was on a machine that is lost.
#
# Part of the scheduler. Inputs are let go as soon as they have been used, so what a lost machine held can only be made
# again from the last boundary that is on disk: the source partition. Waiting tasks of such a root are dropped at once;
# those that run elsewhere end in their own time, and their results are let go. When nothing of the root is left, it is
# listed again. Nothing of it was committed, so nothing is seen twice. Files of the new attempts have other names: a
# worker may still be writing the old ones.


class Restarts:
    """Knows which roots start over, and lets go of what is left of them."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.listed_again: set[int] = set()  # roots that are waited for
        self.given_up: dict[str, str] = {}  # by the name of the partition: why it was given up

    def data_lost(self, node: int) -> None:
        """Everything on a machine is gone; what ran there has been taken back already."""
        s = self.scheduler
        lost = [task for task in s.tasks.values() if task.node == node]
        for task in lost:
            task.node = None
        self._start_over(dict.fromkeys(task.root for task in lost))

    def outputs_lost(self, event: e.OutputsLost) -> None:
        """The final outputs of a root were on a machine that is gone, and had not been fetched yet."""
        s = self.scheduler
        root = s.committing.pop(event.root, None)
        if root is not None:
            root.outputs = []
            s.roots[root.id] = root
            self.list_again(root)

    def give_up(self, root: RootRecord, why: str) -> None:
        """The input of a root is not what was planned: nothing of it counts, and it is not tried again."""
        root.given_up = why
        self.given_up[root.name] = why
        self._start_over([root.id])

    def start_over(self, root: RootRecord) -> None:
        """What a root has streamed so far would come out differently next time: nothing of it counts."""
        self._start_over([root.id])

    def _start_over(self, roots: Iterable[int]) -> None:
        s = self.scheduler
        for root in roots:
            s.roots[root].starts_over = True
        waiting = [task for task in s.tasks.values() if self.is_void(task) and task.state is State.QUEUED]
        for group in s.groups:
            group.queue = deque(task for task in group.queue if not self.is_void(task))
            # A sorted list is a heap too, and numbers are unique, so tasks are never compared.
            group.delayed = sorted(entry for entry in group.delayed if not self.is_void(entry[2]))
        for task in waiting:
            s.let_go(task)
        for group in s.groups:
            for worker in list(group.workers.values()):
                s.recalls.recall_void(worker)

    def is_void(self, task: TaskRecord) -> bool:
        """Whether nothing that comes of a task counts."""
        return self.scheduler.roots[task.root].starts_over

    def list_again(self, root: RootRecord) -> None:
        """Nothing is left of a root that starts over."""
        s = self.scheduler
        for total, counts in zip(s.totals, root.counts, strict=bool(root.counts)):
            total.subtract(counts)
        for group, seconds in root.useful_s.items():
            s.groups[group].book.came_to_nothing(seconds)
        s.out.extend(c.Release(output.payload) for output in root.outputs)
        if s.stop_reason or root.given_up:
            del s.roots[root.id]
            s.fleet.rescale_now = True
            return
        root.begin_again(first_attempt=s.next_task)
        self.listed_again.add(root.id)
        s.out.append(c.ListAgain(root.id, root.first_attempt))

    def take(self, event: e.ListedAgain) -> None:
        """Begin a partition again, if this is the attempt that is waited for."""
        s, item = self.scheduler, event.item
        root = s.roots.get(item.index)
        if root is None or item.index not in self.listed_again or event.attempt != root.first_attempt:
            s.out.append(c.Release(item.payload))
            return
        self.listed_again.remove(item.index)
        if s.stop_reason:
            s.out.append(c.Release(item.payload))
            del s.roots[item.index]
            return
        root.live = 1
        s.enqueue(root, 0, item, item.name, None)
        s.fleet.rescale_now = True
