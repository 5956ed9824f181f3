"""Which waiting task goes to which worker, and when a streaming worker may go on. Part of the scheduler.

A step costs a few lookups for every group, however many workers and tasks there are: the crew of each group knows its
least loaded worker. Downstream goes first, so that memory is freed before more is taken.
"""

import heapq
from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine.crew import WorkerRecord
from gristmill.engine.policies import backlog, batching, recall
from gristmill.engine.policies.retry import FRESH
from gristmill.engine.state import GroupRecord, RootRecord
from gristmill.engine.task_state import Change, TaskRecord

if TYPE_CHECKING:  # two parts of one object: the scheduler owns the dispatcher
    from gristmill.engine.scheduler import Scheduler


class Dispatcher:
    """Hands out tasks. What it may not decide is how many workers there are: that is the fleet's."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def dispatch(self) -> None:
        """Hand out what is waiting, and let streaming workers go on while their successors keep up."""
        s = self.scheduler
        for index in range(len(s.groups) - 1, -1, -1):
            group = s.groups[index]
            while group.delayed and group.delayed[0][0] <= s.now:
                group.queue.append(heapq.heappop(group.delayed)[2])
            self._hand_out(index, group)
            self._share_out(index, group)
        for index, group in enumerate(s.groups):
            if group.crew.waiting and not self._too_far_ahead(index + 1):
                s.out.extend(c.GrantEmit(worker, task) for worker, task in group.crew.take_waiting())
                if group.plan.lanes > 1:  # whoever may go on has perhaps a free lane beside the task that streams
                    self._hand_out(index, group)

    def _hand_out(self, index: int, group: GroupRecord) -> None:
        if group.queue and group.crew.num_ready and not self.must_wait(index):
            self._dispatch_group(index, group)

    def must_wait(self, index: int) -> bool:
        """Whether a group pauses because the next one is far behind, or because stages run one after another."""
        s = self.scheduler
        if s.config.barrier:
            return index > 0 and not s.group_finished(index - 1)
        if index + 1 == len(s.groups):
            return False
        after = s.groups[index + 1]
        queued = len(after.queue)
        if queued >= s.config.max_queued:
            return True
        return backlog.is_far_ahead(
            queued,
            workers=len(after.workers),
            batch_size=after.plan.batch_size * after.plan.lanes,
            mean_service_s=after.mean_service_s,
            setup_s=after.setup_s,
        )

    def _sized(self, group: GroupRecord, *, more_coming: bool) -> int:
        """How many of the waiting tasks go into the next call, which is bounded by items or bytes; 0 to wait for more.

        At the tail calls shrink, as others do.
        """
        plan, sizes = group.plan, ((task.num_items, task.num_bytes) for task in group.queue)
        count, full = batching.fitting(
            sizes, batch_size=plan.batch_size, most_items=plan.batch_items, most_bytes=plan.batch_bytes
        )
        if more_coming:
            waited = self.scheduler.now - group.queue[0].queued_at >= batching.FLUSH_S
            return count if full or waited else 0
        return max(1, min(count, batching.tail_share(group.live, group.crew.num_ready)))

    def slots(self, group: GroupRecord, *, more_coming: bool) -> int:
        """Tasks a worker of a group may hold; calls, where workers are compared by those."""
        share = None if more_coming else batching.tail_share(group.live, group.crew.num_ready)
        size = 1 if group.plan.has_sized_batches else group.plan.batch_size
        return batching.slots(group.mean_service_s, batch_size=size, lanes=group.plan.lanes, share=share)

    def _dispatch_group(self, index: int, group: GroupRecord) -> None:
        s, size, workers = self.scheduler, group.plan.batch_size, group.crew.num_ready
        more_coming = s.more_is_coming(index)
        slots = self.slots(group, more_coming=more_coming)
        while group.queue:
            head = group.queue[0]
            if size == 1:
                count = -(-len(group.queue) // workers)
            elif group.plan.has_sized_batches:
                count = self._sized(group, more_coming=more_coming)
            else:
                count = batching.batch_of(
                    len(group.queue),
                    batch_size=size,
                    remaining=group.live,
                    workers=workers,
                    more_coming=more_coming,
                    oldest_wait_s=s.now - head.queued_at,
                )
            if count == 0:
                return
            # What has killed its workers waits for one that has nothing else: the next death must be its own.
            below = 1 if runs_alone(head, group) else slots
            # A task that failed is tried elsewhere, if there is room elsewhere.
            workers_in_turn = group.crew.least_loaded(below=below, avoid=head.last_worker, near=head.node)
            whole = (
                group.plan.has_sized_batches
            )  # a call is not cut to what a worker may hold: that is counted in calls
            if not any(
                self._send(w, group, count if whole else min(count, below - len(w.assigned))) for w in workers_in_turn
            ):
                return

    def _share_out(self, index: int, group: GroupRecord) -> None:
        """If nothing is waiting, give idle workers what waits behind other tasks, or a straggler's second run."""
        crew = group.crew
        for _ in range(crew.num_ready):
            if group.queue or not crew.num_open or self.must_wait(index):
                return
            if not self._find_work(index, group):
                return
            self._dispatch_group(index, group)

    def _find_work(self, index: int, group: GroupRecord) -> bool:
        most = group.plan.lanes * (1 if group.plan.has_sized_batches else group.plan.batch_size)
        victim = group.crew.most_loaded(above=most)
        if victim is not None and self.recall(victim):
            return True
        return not self.scheduler.more_is_coming(index) and self.scheduler.copies.make(group)

    def recall(self, worker: WorkerRecord, *, all_of_it: bool = False) -> bool:
        """Take back half of what waits behind a worker's running calls, or all of it; False if that is not worth it."""
        s, group = self.scheduler, self.scheduler.groups[worker.group]
        waiting = self._waiting(worker)
        running_s = s.now - worker.running_since
        if not recall.is_worth_it(len(waiting), mean_service_s=group.mean_service_s, running_s=running_s):
            return False
        self._take_back(worker, waiting if all_of_it else waiting[len(waiting) // 2 :])
        return True

    def recall_void(self, worker: WorkerRecord) -> None:
        """Take back what waits behind a worker's running call and would come to nothing."""
        taken = [task for task in self._waiting(worker) if self.scheduler.restarts.is_void(task)]
        if taken:
            self._take_back(worker, taken)

    def _waiting(self, worker: WorkerRecord) -> list[TaskRecord]:
        """What a worker holds beyond what it can have begun, if every call were full."""
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

    def _send(self, worker: WorkerRecord, group: GroupRecord, count: int) -> bool:
        """Send up to `count` tasks; False if memory does not allow even one."""
        s, queue, size, several = self.scheduler, group.queue, group.plan.batch_size, group.plan.lanes > 1
        memory = s.memory
        calls: list[list[TaskRecord]] = []
        alone = False
        if not worker.assigned:
            worker.running_since = s.now
        for _ in range(min(count, len(queue))):
            task = queue[0]
            to_itself = several and runs_alone(task, group)
            if to_itself and calls:
                break
            has_room = memory.send(task.id, task.group, task.num_bytes, at=worker.node, source=task.node)
            if not has_room and not (not calls and self._send_anyway(task, worker)):
                break
            queue.popleft()
            task.change(Change.SENT)
            # What is handled with care runs in a call of its own: its failure must be its own.
            alone, after_care = bool(task.trial.attempts), alone
            if not calls or len(calls[-1]) == size or alone or after_care:
                calls.append([task])
            else:
                calls[-1].append(task)
            if to_itself:
                worker.keeps_to_itself = True
                break
        if calls:
            for call in calls:
                worker.give(call)
            worker.begin(group.plan.lanes, s.now)
            group.crew.refile(worker)
            roots = s.roots
            told = [[_assignment(task, roots[task.root]) for task in call] for call in calls]
            s.out.append(c.SendTask(worker.id, told))
        return bool(calls)

    def _send_anyway(self, task: TaskRecord, worker: WorkerRecord) -> bool:
        """Take memory for a task although there is not enough, if the task has to go; else it has to wait."""
        if not self._must_go(worker):
            return False
        memory = self.scheduler.memory
        return memory.send(task.id, task.group, task.num_bytes, at=worker.node, source=task.node, anyway=True)

    def admits(self, task: TaskRecord, worker: WorkerRecord) -> bool:
        """Whether memory allows a task to be sent to a worker now."""
        memory = self.scheduler.memory
        has_room = memory.admits(task.group, task.num_bytes, at=worker.node, source=task.node)
        return has_room or self._must_go(worker)

    def _must_go(self, worker: WorkerRecord) -> bool:
        """Whether a worker has to get a task for which there is no room."""
        s = self.scheduler
        if s.config.barrier and not s.memory.reserved:
            return True  # later groups cannot go first, however much waits for them
        # A stage that streams waits for the next one: if nobody else can move, the next one has to, whatever it takes.
        return not worker.assigned and self._all_are_stalled()

    def _all_are_stalled(self) -> bool:
        """Whether every worker that holds a task waits for the next group, and there is one."""
        crews = [group.crew for group in self.scheduler.groups]
        return any(crew.waiting for crew in crews) and all(crew.num_busy == crew.num_stalled for crew in crews)

    def _too_far_ahead(self, index: int) -> bool:
        s = self.scheduler
        if index == len(s.groups):
            return False
        group = s.groups[index]
        # Who waits for a group without workers may be what keeps it from having one (they share a GPU, or take turns).
        if group.live == 0 or not group.workers:
            return False
        at_once = group.plan.lanes * max(1, len(group.workers))
        return len(group.queue) >= 2 * at_once or s.memory.held_total > s.memory.limit // 2

    def next_wakeup(self) -> float | None:
        """When something that waits may go on without any event."""
        s = self.scheduler
        times = [group.delayed[0][0] for group in s.groups if group.delayed]
        times += [
            group.queue[0].queued_at + batching.FLUSH_S
            for group in s.groups
            if group.plan.batch_size > 1 and group.queue and group.crew.num_ready
        ]
        # What is due already waits for something else, which will be an event: a wakeup would only spin.
        return min((time for time in times if time > s.now), default=None)


def _assignment(task: TaskRecord, root: RootRecord) -> c.Assignment:
    trial, attempt = task.trial, root.first_attempt
    if trial is FRESH:  # as are nearly all
        return c.Assignment(task.id, task.item_id, task.payload, c.Care.NORMAL, attempt, (), "", task.received)
    return c.Assignment(
        task.id,
        task.item_id,
        task.payload,
        trial.care,
        attempt + trial.attempts,
        trial.condemned,
        trial.cause,
        task.received,
        trial.is_out_of_patience,
    )


def runs_alone(task: TaskRecord, group: GroupRecord) -> bool:
    """Whether nothing else may be under way in a task's worker: so many have died at it that one more tells whose."""
    return task.trial.care is c.Care.STEP and group.plan.lanes > 1
