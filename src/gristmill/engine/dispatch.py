"""Which waiting task goes to which worker, and when a streaming worker may go on. Part of the scheduler.

A step costs a few lookups for every group, however many workers and tasks there are: the crew of each group knows its
least loaded worker. Downstream goes first, so that memory is freed before more is taken.
"""

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine import commands as c
from gristmill.engine.policies.rates import is_far_ahead
from gristmill.engine.policies.retry import FRESH
from gristmill.engine.state import Change, GroupRecord, RootRecord, TaskRecord, WorkerRecord

if TYPE_CHECKING:
    from gristmill.engine.scheduler import Scheduler

# How many tasks a worker holds, and how many go into one call.

PREFETCH_S = 0.005  # a round trip to a busy driver on a busy machine; measured 0.3–4 ms with both cores taken
MAX_PREFETCH = 256
# With lanes: calls that began together end together, and until the driver has heard of all of them nothing new comes.
BURST_S = 0.1
FLUSH_S = 0.05  # how long an incomplete batch waits for company while upstream still runs


def slots(mean_service_s: float | None, *, batch_size: int, lanes: int = 1, share: int | None = None) -> int:
    """Return how many tasks a worker may hold: what is running, and what bridges the round trip to the driver.

    Before anything is measured a worker holds what it can run at once, and at the tail no more than its `share` of what
    is left: a task waiting behind another is a task an idle worker cannot have.
    """
    at_once = lanes * batch_size
    if mean_service_s is None:
        return at_once
    bridged_s = PREFETCH_S if lanes == 1 else BURST_S
    ahead = MAX_PREFETCH if mean_service_s <= 0 else min(MAX_PREFETCH, int(bridged_s / mean_service_s) + 1)
    full = batch_size * (lanes + -(-ahead // batch_size))
    return full if share is None else min(full, max(at_once, share))


def fitting(
    sizes: Iterable[tuple[int, int]], *, batch_size: int, most_items: int | None, most_bytes: int | None
) -> tuple[int, bool]:
    """Return how many of the tasks, each with its (items, bytes), go into one call, and whether it is then full.

    One always goes, however large it is.
    """
    count = items = num_bytes = 0
    for more_items, more_bytes in sizes:
        items, num_bytes = items + more_items, num_bytes + more_bytes
        too_many = most_items is not None and items > most_items
        too_large = most_bytes is not None and num_bytes > most_bytes
        if count == batch_size or (count and (too_many or too_large)):
            return count, True
        count += 1
    full = (most_items is not None and items >= most_items) or (most_bytes is not None and num_bytes >= most_bytes)
    return count, full or count == batch_size


def tail_share(remaining: int, workers: int) -> int:
    """Return what one worker takes at a time when no more is coming: a quarter of its part of what is left."""
    return -(-remaining // (4 * max(workers, 1)))


def batch_of(
    queued: int, *, batch_size: int, remaining: int, workers: int, more_coming: bool, oldest_wait_s: float
) -> int:
    """Return how many of the queued tasks to put into one call now; 0 to wait for more.

    At the tail batches shrink, so that no worker is left alone with a full one.
    """
    if queued == 0:
        return 0
    if more_coming:
        return min(queued, batch_size) if queued >= batch_size or oldest_wait_s >= FLUSH_S else 0
    return max(1, min(queued, batch_size, tail_share(remaining, workers)))


# Memory, in bytes: who may start another task, and on which machine.
#
# Held bytes are the inputs of tasks that wait or run, on the machine that made them; reserved bytes are what tasks that
# run are expected to need beyond that: their working copies and outputs. Sending a task of group g to a machine needs
#
#     held + reserved + need(task) + sum over later groups j of unmet_j  <=  limit        (all of that machine)
#
# where unmet_j is what group j is short of its lane: room for the largest task it has seen, in and out. Memory is thus
# taken in one direction, towards the sink, which frees it: an upstream stage can never fill the room a downstream stage
# needs, so there is no deadlock. A task too large for this runs alone, when nothing further on is left that could go
# first.
#
# A task is expected to need its input times the expansion its group has shown; one of unknown size, what others like it
# have made. Both are close to the 95th percentile.

FIRST_GUESS = 5.0  # bytes needed per input byte before anything is measured: parsed columns, a filtered copy, output
MAX_GUESS = 32.0  # an input may be compressed; small ones may grow by up to this factor
UNKNOWN_BYTES = 256 << 20  # what one unmeasured task may make beyond the guess: a few decoded images, a short film
FORGET = 0.98  # the estimate is a maximum that fades, close to a p95 over the last fifty tasks


class NodeBytes(msgspec.Struct):
    """The bytes on one machine, by group and in all."""

    limit: int
    held: list[int]
    reserved: list[int]
    held_total: int = 0
    reserved_total: int = 0


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """What a task that runs is expected to need."""

    node: int
    group: int
    num_bytes: int


class MemoryBook:
    """The bytes of all machines. Inputs of the first group are names: nothing is held for them anywhere."""

    def __init__(self, num_groups: int) -> None:
        self.num_groups = num_groups
        self.nodes: dict[int, NodeBytes] = {}
        self.lane = [0] * num_groups  # per group: the largest input so far
        self.expansion: list[float | None] = [None] * num_groups  # of inputs with a size
        self.made: list[float | None] = [None] * num_groups  # bytes, from inputs without
        self.reserved: dict[int, Reservation] = {}  # by task

    # Machines

    def add_node(self, node: int, limit: int) -> None:
        """A machine has `limit` bytes for data; one that is known already has only repeated its message."""
        if node in self.nodes:
            return
        self.nodes[node] = NodeBytes(limit, [0] * self.num_groups, [0] * self.num_groups)

    def remove_node(self, node: int) -> None:
        """A machine is gone with all that was on it; what ran there has been taken back already."""
        self.nodes.pop(node, None)

    @property
    def limit(self) -> int:
        """Bytes of all machines together."""
        return sum(node.limit for node in self.nodes.values())

    @property
    def held_total(self) -> int:
        """Bytes of inputs on all machines."""
        return sum(node.held_total for node in self.nodes.values())

    # Estimates

    def need(self, group: int, num_bytes: int) -> int:
        """Bytes a task of this size is expected to take beyond its input."""
        if num_bytes:
            expansion = self.expansion[group]
            if expansion is None:
                return int(min(num_bytes * MAX_GUESS, num_bytes * FIRST_GUESS + UNKNOWN_BYTES))
            return int(num_bytes * expansion)
        made = self.made[group]
        return UNKNOWN_BYTES if made is None else int(made)

    def observe(self, group: int, num_bytes: int, peak_bytes: int) -> None:
        """Learn how many bytes a task of `num_bytes` really took."""
        if num_bytes:
            self.expansion[group] = _fading_maximum(self.expansion[group], peak_bytes / num_bytes)
        else:
            self.made[group] = _fading_maximum(self.made[group], peak_bytes)

    # Tasks

    def admits(self, group: int, num_bytes: int, *, at: int, source: int | None) -> bool:
        """Whether a task whose input is at `source` may be sent to a worker on the machine `at` now."""
        return self._has_room(self.nodes[at], group, self._amount(group, num_bytes, moves=source != at))

    def _has_room(self, node: NodeBytes, group: int, amount: int) -> bool:
        if node.reserved_total == 0 and not any(node.held[group + 1 :]):
            return True  # nothing runs here and nothing waits further on: alone it may be of any size
        return node.held_total + node.reserved_total + self._unmet(node, group) + amount <= node.limit

    def _amount(self, group: int, num_bytes: int, *, moves: bool) -> int:
        """Bytes a task takes on its machine when it is sent, with its input if that comes from elsewhere.

        At least one, so that "nothing runs" is the same as "nothing is reserved" even for empty tasks.
        """
        arriving = num_bytes if group and moves else 0
        return arriving + self.need(group, num_bytes) or 1

    def _unmet(self, node: NodeBytes, group: int) -> int:
        unmet = 0
        for later in range(group + 1, self.num_groups):  # for every task sent: function calls would be most of the cost
            lane = self.lane[later]
            if lane:
                lacking = lane - node.held[later]
                if lacking > 0:
                    unmet += lacking
                expansion = self.expansion[later]
                if expansion is not None:
                    lacking = int(lane * expansion) - node.reserved[later]
                    if lacking > 0:
                        unmet += lacking
        return unmet

    def queue(self, group: int, num_bytes: int, *, at: int | None) -> None:
        """A task waits with its input on a machine."""
        self._hold(at, group, num_bytes)
        self.lane[group] = max(self.lane[group], num_bytes)

    def consume(self, group: int, num_bytes: int, *, at: int | None) -> None:
        """The input of a finished task is gone."""
        self._hold(at, group, -num_bytes)

    def _hold(self, at: int | None, group: int, num_bytes: int) -> None:
        if at is not None:  # a name is nowhere, and so is what was on a machine that is lost
            node = self.nodes[at]
            node.held[group] += num_bytes
            node.held_total += num_bytes

    def send(self, task: int, group: int, num_bytes: int, *, at: int, source: int | None, anyway: bool = False) -> bool:
        """Reserve memory for a task about to run, if there is room or `anyway`; False if it may not run."""
        node, amount = self.nodes[at], self._amount(group, num_bytes, moves=source != at)
        if not anyway and not self._has_room(node, group, amount):
            return False
        self.reserved[task] = Reservation(at, group, amount)
        node.reserved[group] += amount
        node.reserved_total += amount
        return True

    def unsend(self, task: int) -> None:
        """A task came back, or ended: its reservation is free."""
        reservation = self.reserved.pop(task, None)
        if reservation is None:
            return
        node = self.nodes.get(reservation.node)
        if node is not None:
            node.reserved[reservation.group] -= reservation.num_bytes
            node.reserved_total -= reservation.num_bytes


def _fading_maximum(before: float | None, seen: float) -> float:
    if before is None:
        return seen
    faded = before * FORGET
    return faded if faded > seen else seen


class Dispatcher:
    """Hands out tasks. How many workers there are is not its decision but the fleet's."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def dispatch(self) -> None:
        """Hand out what is waiting, and let streaming workers go on while their successors keep up."""
        s = self.scheduler
        for index in range(len(s.groups) - 1, -1, -1):
            group = s.groups[index]
            while group.delayed and group.delayed[0][0] <= s.now:
                group.queue.append(heapq.heappop(group.delayed)[2])
            # Asked here, before any call: an event concerns one group, and a run may have a dozen.
            if group.queue and group.crew.num_ready and not self.must_wait(index):
                self._dispatch_group(index, group)
            if not group.queue and group.crew.num_open:
                self._share_out(index, group)
        for index, group in enumerate(s.groups):
            if group.crew.waiting and not self._too_far_ahead(index + 1):
                s.out.extend(c.GrantEmit(worker, task) for worker, task in group.crew.take_waiting(s.now))
                # A worker that may go on may also have a free lane beside the task that streams.
                if group.plan.lanes > 1 and group.queue and group.crew.num_ready and not self.must_wait(index):
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
        return queued > 0 and is_far_ahead(
            queued,
            workers=len(after.workers),
            batch_size=after.plan.batch_size * after.plan.lanes,
            mean_service_s=after.mean_service_s,
            setup_s=after.setup_s,
        )

    def _sized(self, group: GroupRecord, *, more_coming: bool) -> int:
        """How many of the waiting tasks go into the next call, which is bounded by items or bytes; 0 to wait for more.

        At the tail these calls shrink too, as in `batch_of`.
        """
        plan, sizes = group.plan, ((task.num_items, task.num_bytes) for task in group.queue)
        count, full = fitting(
            sizes, batch_size=plan.batch_size, most_items=plan.batch_items, most_bytes=plan.batch_bytes
        )
        if more_coming:
            waited = self.scheduler.now - group.queue[0].queued_at >= FLUSH_S
            return count if full or waited else 0
        return max(1, min(count, tail_share(group.live, group.crew.num_ready)))

    def slots(self, group: GroupRecord, *, more_coming: bool) -> int:
        """Tasks a worker of a group may hold; calls, where a worker's load is counted in calls."""
        plan, mean_s = group.plan, group.mean_service_s
        size = 1 if plan.has_sized_batches else plan.batch_size
        if more_coming and plan.lanes == 1 and mean_s is not None and mean_s > PREFETCH_S:
            return 2 * size  # what `slots` would say: one call runs, one waits. This is asked at every event
        share = None if more_coming else tail_share(group.live, group.crew.num_ready)
        return slots(mean_s, batch_size=size, lanes=plan.lanes, share=share)

    def _dispatch_group(self, index: int, group: GroupRecord) -> None:
        s, size, workers = self.scheduler, group.plan.batch_size, group.crew.num_ready
        sized, several = group.plan.has_sized_batches, group.plan.lanes > 1
        more_coming = s.more_is_coming(index)
        slots = self.slots(group, more_coming=more_coming)
        while group.queue:
            head = group.queue[0]
            if size == 1:
                count = -(-len(group.queue) // workers)
            elif sized:
                count = self._sized(group, more_coming=more_coming)
            else:
                count = batch_of(
                    len(group.queue),
                    batch_size=size,
                    remaining=group.live,
                    workers=workers,
                    more_coming=more_coming,
                    oldest_wait_s=s.now - head.queued_at,
                )
            if count == 0:
                return
            # A task that has killed workers waits for one that holds nothing else: the next death must be its own.
            below = 1 if several and runs_alone(head, group) else slots
            # A task that failed is tried elsewhere, if there is room elsewhere.
            workers_in_turn = group.crew.least_loaded(below=below, avoid=head.last_worker, near=head.node)
            for worker in workers_in_turn:
                # A call bounded by its size is not cut to what a worker may hold, which is counted in calls.
                if self._send(worker, group, count if sized else min(count, below - len(worker.assigned))):
                    break
            else:
                return

    def _share_out(self, index: int, group: GroupRecord) -> None:
        """If nothing is waiting, give idle workers what waits behind other tasks, or a straggler's second run."""
        crew, plan = group.crew, group.plan
        most = plan.lanes * (1 if plan.has_sized_batches else plan.batch_size)
        for _ in range(crew.num_ready):
            # True at nearly every event: no worker has too much, and more tasks will come by themselves.
            if not crew.any_holds(above=most) and self.scheduler.more_is_coming(index):
                return
            if group.queue or not crew.num_open or self.must_wait(index):
                return
            if not self._find_work(index, group, most):
                return
            self._dispatch_group(index, group)

    def _find_work(self, index: int, group: GroupRecord, most: int) -> bool:
        victim = group.crew.most_loaded(above=most)
        if victim is not None and self.scheduler.recalls.recall(victim):
            return True
        return not self.scheduler.more_is_coming(index) and self.scheduler.copies.make(group)

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
            # A task tried before runs in a call of its own: its failure must be its own.
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
        """Take memory for a task although there is not enough, if the task must go now; otherwise it waits."""
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
        """Whether a worker must be given a task for which there is no room."""
        s = self.scheduler
        if s.config.barrier and not s.memory.reserved:
            return True  # later groups cannot go first, however much waits for them
        # A stage that streams waits for the next one: if nothing else can move, the next one must, whatever it takes.
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
        # A group without workers may be kept from any by the group that waits for it (sharing a GPU, or taking turns).
        if group.live == 0 or not group.workers:
            return False
        at_once = group.plan.lanes * max(1, len(group.workers))
        return len(group.queue) >= 2 * at_once or s.memory.held_total > s.memory.limit // 2

    def next_wakeup(self) -> float | None:
        """When something that waits may go on without any event."""
        s = self.scheduler
        times = [group.delayed[0][0] for group in s.groups if group.delayed]
        times += [
            group.queue[0].queued_at + FLUSH_S
            for group in s.groups
            if group.plan.batch_size > 1 and group.queue and group.crew.num_ready
        ]
        # Whatever is due already waits for some event, not for time: a wakeup would only spin.
        return min((time for time in times if time > s.now), default=None)


def _assignment(task: TaskRecord, root: RootRecord) -> c.Assignment:
    trial, attempt = task.trial, root.first_attempt
    if trial is FRESH:  # as nearly all are
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
        trial.step_from,
    )


def runs_alone(task: TaskRecord, group: GroupRecord) -> bool:
    """Whether a task must have its worker to itself: workers have died at it, and the next death must be its own."""
    return task.trial.care is c.Care.STEP and group.plan.lanes > 1
