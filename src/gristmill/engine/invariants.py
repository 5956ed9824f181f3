"""What must be true of a scheduler after every step. `check` raises EngineBug with the number and the finding.

`Scheduler.handle` does not call this: it costs more than a step. Tests call it after every event.

| invariant                                                     | here                                               |
|---------------------------------------------------------------|----------------------------------------------------|
| I1 GPUs and CPUs of a node are those of its workers           | `_allocations`, starting and draining ones too     |
| I2 bytes are those of the tasks, and within the limit         | `_bytes`, `_admissions`: with the lanes still free |
| I3 a group's live tasks are the queued, delayed and assigned  | `_tasks`; and each root counts its own             |
| I4 no task without its root, no root open and committed       | `_tasks`                                           |
| I5, I6 no idle worker beside a task it could have             | `_idleness`, `_crews`                              |
| I17 a finished group holds nothing                            | `_finished_groups`                                 |
| I21 as many calls run as there are lanes; a suspect runs alone | `_lanes`                                          |
| I19 nothing is forgotten, and what waits is not passed over   | `_tasks`, `_order`                                 |

The others are about more than one step: `tests/property/README.md` says where each is checked.
"""

from collections import Counter
from collections.abc import Iterable

from gristmill.engine import commands as c
from gristmill.engine.dispatch import FLUSH_S, MemoryBook, NodeBytes, fitting, runs_alone
from gristmill.engine.policies.packing import UNITS
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.state import GroupRecord, State, TaskRecord, WorkerRecord, WorkerState
from gristmill.errors import EngineBug


def check(scheduler: Scheduler, commands: Iterable[c.Command] = ()) -> None:
    """Raise EngineBug naming the invariant that does not hold. `commands` are those of the step just made."""
    _allocations(scheduler)
    _crews(scheduler)
    _tasks(scheduler)
    _bytes(scheduler)
    if scheduler.finished:
        return  # an aborted run leaves things lying where they are
    sends = (x for x in commands if isinstance(x, c.SendTask))
    sent = [(x.worker, assignment.task) for x in sends for call in x.calls for assignment in call]
    sent = [(worker, task) for worker, task in sent if task in scheduler.tasks]  # the others were recalled at once
    _admissions(scheduler, sent)
    _order(scheduler, [scheduler.tasks[task] for _, task in sent])
    _idleness(scheduler)
    _finished_groups(scheduler)


def _agree(invariant: str, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise EngineBug(f"{invariant} {what}: expected {expected!r}; got {found!r}")


def _allocations(s: Scheduler) -> None:
    workers = [worker for group in s.groups for worker in group.workers.values()]
    for worker in workers:
        _agree("I1", f"worker {worker.id} is known by its number", s.fleet.find(worker.id), worker)
        _agree("I1", f"worker {worker.id} is on a node that is there", worker.node in s.fleet.nodes, expected=True)
    for node in s.fleet.nodes.values():
        here = [worker for worker in workers if worker.node == node.id]
        taken = Counter[int]()
        for worker in here:
            for gpu, units in worker.gpus:
                taken[gpu] += units
        for gpu, free in enumerate(node.gpu_free):
            _agree("I1", f"free units of GPU {gpu} of node {node.id}", free, UNITS - taken[gpu])
            _agree("I1", f"GPU {gpu} of node {node.id} is not overcommitted", free >= 0, expected=True)
        cpus = sum(s.groups[worker.group].plan.resources.cpus for worker in here)
        # CPUs are compressible and floats: what must agree is the sum, to the last thousandth.
        _agree("I1", f"CPUs in use of node {node.id}", round(node.cpus_used, 3), round(cpus, 3))


def _crews(s: Scheduler) -> None:
    """I6: what a crew has counted and filed as its workers changed matches a look at all of them."""
    for index, group in enumerate(s.groups):
        crew, workers = group.crew, group.workers.values()
        counted = (crew.num_ready, crew.num_staying, crew.num_busy, crew.num_stalled)
        ready = [worker for worker in workers if worker.state is WorkerState.READY]
        staying = [worker for worker in workers if worker.state is not WorkerState.DRAINING]
        busy = [worker for worker in workers if worker.is_busy]
        stalled = [worker for worker in busy if worker.is_stalled]
        expected = (len(ready), len(staying), len(busy), len(stalled))
        _agree("I6", f"ready, staying, busy and stalled workers of group {index}", counted, expected)
        takers = {w.id: crew.load(w) for w in ready if w not in stalled and not w.keeps_to_itself}
        _agree("I6", f"tasks of the workers of group {index} that take more", crew.filed(), takers)
        waiting = {worker.id for worker in workers if worker.ungranted}
        _agree("I6", f"workers of group {index} that wait for a grant", set(crew.waiting), waiting)
        for worker in workers:
            _lanes(group, worker)


def _lanes(group: GroupRecord, worker: WorkerRecord) -> None:
    """I21: what a worker holds is in calls, of which as many run as there are lanes; what must run alone does."""
    lanes, who = group.plan.lanes, f"worker {worker.id}"
    calls = [*worker.running.values(), *worker.behind]
    in_calls = sorted(task.id for call in calls for task in call.tasks)
    _agree("I21", f"tasks in calls of {who}", in_calls, sorted(worker.assigned))
    _agree("I21", f"calls {who} runs", len(worker.running), min(lanes, len(calls)))
    since = [call.since for call in worker.running.values()]
    _agree("I21", f"the order in which calls of {who} began", since, sorted(since))
    alone = [task.id for call in calls for task in call.tasks if lanes > 1 and task.trial.care is c.Care.STEP]
    _agree("I21", f"tasks beside one that runs alone in {who}", len(calls) if alone else 1, 1)
    _agree("I21", f"whether {who} takes more", worker.keeps_to_itself, bool(alone))


def _tasks(s: Scheduler) -> None:
    seen: dict[int, TaskRecord] = {}
    for index, group in enumerate(s.groups):
        waiting = [*group.queue, *(task for _, _, task in group.delayed)]
        assigned = [task for worker in group.workers.values() for task in worker.assigned.values()]
        for task in (*waiting, *assigned):
            _agree("I3", f"task {task.id} is in one place", task.id in seen, expected=False)
            seen[task.id] = task
            _agree("I3", f"group of task {task.id}", task.group, index)
            _agree("I4", f"root of task {task.id} is open", task.root in s.roots, expected=True)
        _agree("I3", f"waiting tasks of group {index}", {t.state for t in waiting} <= {State.QUEUED}, expected=True)
        _agree("I3", f"tasks of workers, group {index}", {t.state for t in assigned} <= {State.ASSIGNED}, expected=True)
        _agree("I3", f"live tasks of group {index}", group.live, len(waiting) + len(assigned))
    _agree("I19", "all tasks", sorted(s.tasks), sorted(seen))
    _agree("I4", "roots open and being committed", sorted(s.committing.keys() & s.roots.keys()), [])
    by_root = Counter(task.root for task in seen.values())
    _agree("I3", "live tasks by root", {r.id: r.live for r in s.roots.values()}, {r: by_root[r] for r in s.roots})


def _bytes(s: Scheduler) -> None:
    """I2: the memory book covers exactly the tasks there are. Source partitions are names and hold nothing."""
    assigned = sorted(task.id for task in s.tasks.values() if task.state is State.ASSIGNED)
    _agree("I2", "tasks with a reservation", sorted(s.memory.reserved), assigned)
    limits = {node.id: node.memory_bytes for node in s.fleet.nodes.values()}
    _agree("I2", "limits are those of the nodes", {n: book.limit for n, book in s.memory.nodes.items()}, limits)
    for node, book in s.memory.nodes.items():
        held, reserved = Counter[int](), Counter[int]()
        for task in s.tasks.values():
            if task.group and task.node == node:
                held[task.group] += task.num_bytes
        for reservation in s.memory.reserved.values():
            if reservation.node == node:
                reserved[reservation.group] += reservation.num_bytes
        for what, found, expected in (("held", book.held, held), ("reserved", book.reserved, reserved)):
            _agree("I2", f"bytes {what} on node {node}", found, [expected[index] for index in range(len(s.groups))])
        totals = (book.held_total, book.reserved_total)
        _agree("I2", f"bytes in all on node {node}", totals, (held.total(), reserved.total()))


def _admissions(s: Scheduler, pairs: list[tuple[int, int]]) -> None:
    """I2: after a step that sent a task to a node, its bytes are within the limit, except for one that could not wait.

    That includes the room later groups are short of for their lanes. Downstream goes first, so the last one sent is the
    one that had to leave most room.

    The one that could not wait may be of any size: it was sent while nothing ran there, or while all that ran were
    streaming and waited for their successors. Between steps more may come in than the running tasks were expected to
    make; then nothing is sent until it is gone.
    """
    for node, book in s.memory.nodes.items():
        workers = [worker for group in s.groups for worker in group.workers.values() if worker.node == node]
        here = {worker.id for worker in workers}
        sent = [task for worker, task in pairs if worker in here]
        streaming = [worker for worker in workers if any(task.received for task in worker.assigned.values())]
        running = {task for worker in workers for task in worker.assigned}
        waiting = {task for worker in streaming for task in worker.assigned}
        if not sent or running - waiting <= set(sent[:1]):
            continue
        lacking = sum(_lacking(s.memory, book, later) for later in range(s.tasks[sent[-1]].group + 1, len(s.groups)))
        total = book.held_total + book.reserved_total + lacking
        if total > book.limit:
            raise EngineBug(f"I2 bytes of node {node} after {sent}: expected at most {book.limit}; got {total}")


def _lacking(memory: MemoryBook, book: NodeBytes, group: int) -> int:
    """Bytes by which a group is short of room on a node for its largest task, in and out."""
    lane = memory.lane[group]
    out = memory.need(group, lane) if lane and memory.expansion[group] is not None else 0
    return max(0, lane - book.held[group]) + max(0, out - book.reserved[group])


def _order(s: Scheduler, sent: list[TaskRecord]) -> None:
    """I19: among tasks that have not been tried, first come is first sent, so that none is passed over for ever."""
    for index, group in enumerate(s.groups):
        latest = max((task.queued_at for task in sent if task.group == index and not task.trial.attempts), default=0.0)
        passed = [task.item_id for task in group.queue if not task.trial.attempts and task.queued_at < latest]
        _agree("I19", f"tasks of group {index} that were passed over", passed, [])


def _idleness(s: Scheduler) -> None:
    """I5, I6: a task stays in the queue only for a reason."""
    for index, group in enumerate(s.groups):
        lanes = group.plan.lanes
        ready = [w for w in group.workers.values() if w.state is WorkerState.READY and not w.keeps_to_itself]
        idle = [w for w in ready if len(w.running) < lanes and not (w.assigned and w.is_stalled)]
        able = [w.id for w in idle if group.queue and _could_send(s, index, group, w)]
        if able:
            raise EngineBug(
                f"I6 group {group.plan.name}: workers {able} have a free lane beside {len(group.queue)} tasks"
            )


def _could_send(s: Scheduler, index: int, group: GroupRecord, worker: WorkerRecord) -> bool:
    head = group.queue[0]
    if worker.assigned and runs_alone(head, group):
        return False
    waited = s.now - head.queued_at >= FLUSH_S
    has_batch = len(group.queue) >= group.plan.batch_size or waited or not s.more_is_coming(index)
    if group.plan.has_sized_batches and group.plan.batch_size > 1:
        sizes = ((task.num_items, task.num_bytes) for task in group.queue)
        limits = {"most_items": group.plan.batch_items, "most_bytes": group.plan.batch_bytes}
        has_batch |= fitting(sizes, batch_size=group.plan.batch_size, **limits)[1]
    return has_batch and not s.dispatcher.must_wait(index) and s.dispatcher.admits(head, worker)


def _finished_groups(s: Scheduler) -> None:
    for index, group in enumerate(s.groups):
        if s.group_finished(index):
            left = (
                len(group.queue),
                len(group.delayed),
                group.live,
                sum(book.held[index] for book in s.memory.nodes.values()),
            )
            _agree("I17", f"what is left in finished group {index}", left, (0, 0, 0, 0))
            busy = [worker.id for worker in group.workers.values() if worker.assigned]
            _agree("I17", f"busy workers of finished group {index}", busy, [])
