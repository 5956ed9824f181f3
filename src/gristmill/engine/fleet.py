"""The workers of a run: starting, draining, recycling and placing them. Part of the scheduler, in a file of its own."""

from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.policies import autoscale
from gristmill.engine.policies.placement import place
from gristmill.engine.state import GroupRecord, NodeRecord, WorkerRecord, WorkerState

if TYPE_CHECKING:  # the two halves of one object: the scheduler owns the fleet
    from gristmill.engine.scheduler import Scheduler

WATCHDOG_FACTOR = 20.0  # times the usual time of a task before the user is told


class Fleet:
    """All workers and nodes."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.nodes: dict[int, NodeRecord] = {}
        self.rescale_now = True
        self._workers: dict[int, WorkerRecord] = {}
        self._next_worker = 0
        self._last_rescale = 0.0
        self._last_recycle = 0.0
        self._last_look = 0.0

    def find(self, worker: int) -> WorkerRecord | None:
        """The worker, or None if it has ended or never was."""
        return self._workers.get(worker)

    def add_node(self, event: e.NodeJoined) -> None:
        """Use a machine from now on; one that is in use already has only repeated itself."""
        if event.node in self.nodes:
            return
        self.nodes[event.node] = NodeRecord(event.node, event.cpus, event.gpu_memory_gb, event.memory_bytes)
        self.rescale_now = True

    def remove_node(self, node: int) -> None:
        """Forget a machine; its workers have been removed before."""
        self.nodes.pop(node, None)
        self.rescale_now = True

    def memory_bytes(self) -> int:
        """Bytes for data on all machines together."""
        return sum(node.memory_bytes for node in self.nodes.values())

    # One worker

    def start(self, group: GroupRecord, *, replaces: int | None = None) -> bool:
        """Start a worker where it fits best; False if its GPUs are not free anywhere."""
        resources = group.plan.resources
        for node in sorted(self.nodes.values(), key=lambda n: (n.cpus_used - n.cpus, n.id)):
            gpus = place(resources, node.gpu_free, node.gpu_memory_gb)
            if gpus is None:
                continue
            worker = WorkerRecord(self._next_worker, group.plan.index, node.id, gpus, replaces=replaces)
            self._next_worker += 1
            node.cpus_used += resources.cpus
            for gpu, units in gpus:
                node.gpu_free[gpu] -= units
            self._workers[worker.id] = group.workers[worker.id] = worker
            self.scheduler.out.append(
                c.StartWorker(worker.id, group.plan.index, node.id, tuple(gpu for gpu, _ in gpus))
            )
            return True
        return False

    def drain(self, worker: WorkerRecord) -> None:
        """Give a worker nothing more; it ends when it has finished what it has."""
        worker.state = WorkerState.DRAINING
        self.scheduler.out.append(c.DrainWorker(worker.id))

    def remove(self, worker: WorkerRecord) -> None:
        """A worker has ended: give back what it occupied."""
        group = self.scheduler.groups[worker.group]
        del self._workers[worker.id], group.workers[worker.id]
        node = self.nodes.get(worker.node)
        if node is not None:
            node.cpus_used -= group.plan.resources.cpus
            for gpu, units in worker.gpus:
                node.gpu_free[gpu] += units
        self.rescale_now = True

    # All of them

    def rescale_if_due(self) -> None:
        """Start and drain workers, if something has changed or enough time has passed."""
        due = self.scheduler.now - self._last_rescale >= self.scheduler.config.rescale_interval_s
        if self.nodes and (self.rescale_now or due):
            self.rescale_now = False
            self._last_rescale = self.scheduler.now
            self._rescale()

    def _rescale(self) -> None:
        s = self.scheduler
        wanted = autoscale.targets(
            [self._load(i) for i in range(len(s.groups))], sum(n.cpus for n in self.nodes.values())
        )
        for index, group in enumerate(s.groups):
            self._shrink(index, group, wanted)
        without = [g for i, g in enumerate(s.groups) if wanted[i] and not _staying(g)]
        # Who has work waiting and nobody to do it comes first, downstream before upstream. If it does not fit, what the
        # others give up is kept for it: else they would take it back at once, and it would never have its turn.
        unplaced = [g for g in reversed(without) if g.queue and not self.start(g)]
        for index, group in enumerate(s.groups):
            if unplaced and group.plan.resources.requires_gpu:
                continue
            staying = _staying(group)
            while staying < wanted[index] and self.start(group):
                staying += 1
        for group in unplaced:
            self._make_room(group)

    def _load(self, index: int) -> autoscale.GroupLoad:
        s = self.scheduler
        group = s.groups[index]
        unlisted = 0 if s.source_exhausted else s.config.num_sources - s.sources_listed
        upstream = unlisted + sum(g.live for g in s.groups[:index])
        batch = group.plan.batch_size
        # A task upstream may become any number of tasks here; of the source it is exactly one each.
        useful = -(-(group.live + upstream) // batch) if index == 0 or not upstream else 1 << 30
        waiting_for_barrier = s.config.barrier and index > 0 and not s.group_finished(index - 1)
        return autoscale.GroupLoad(
            group=index,
            cpus=group.plan.resources.cpus,
            fixed=group.plan.num_workers,
            finished=s.group_finished(index) or waiting_for_barrier,
            useful=max(1, useful),
            completions=group.completions,
            load=group.useful_s / max(1, s.sources_listed),
            needs_gpu=group.plan.resources.requires_gpu,
        )

    def _shrink(self, index: int, group: GroupRecord, wanted: dict[int, int]) -> None:
        """Drain what is too many: all of a finished group, and idle ones whose CPUs another group would use."""
        s = self.scheduler
        staying = [w for w in group.workers.values() if w.state is not WorkerState.DRAINING]
        surplus = len(staying) - wanted[index]
        finished = wanted[index] == 0
        others_want = any(
            wanted[i] > len(g.workers) and not g.plan.resources.requires_gpu
            for i, g in enumerate(s.groups)
            if i != index
        )
        for worker in staying:
            if surplus <= 0 or not (finished or others_want):
                return
            idle = not worker.assigned
            if worker.state is WorkerState.READY and (finished or others_want) and (idle or others_want):
                self.drain(worker)
                surplus -= 1

    def _make_room(self, group: GroupRecord) -> None:
        """Two groups that cannot share a GPU take turns: an idle worker makes room for one that has work waiting."""
        s = self.scheduler
        if not group.queue or any(w.state is WorkerState.DRAINING for w in self._workers.values()):
            return
        for worker in self._workers.values():
            other = s.groups[worker.group]
            if other is not group and worker.gpus and worker.state is WorkerState.READY and not worker.assigned:
                self.drain(worker)
                return

    def look_after_workers(self) -> None:
        """Once for every moment, after its news: a result that is here already must not count as overdue."""
        if self.scheduler.now > self._last_look:
            self._last_look = self.scheduler.now
            self._recycle()
            for group in self.scheduler.groups:
                for worker in group.workers.values():
                    if worker.assigned:
                        self._watch(group, worker)

    def _watch(self, group: GroupRecord, worker: WorkerRecord) -> None:
        """Kill a worker whose call is past its stage's deadline; speak up about one that is suspiciously slow."""
        s = self.scheduler
        deadline = group.plan.deadline_s
        running_s = s.now - worker.running_since
        if deadline is not None and running_s > deadline:
            worker.running_since = s.now  # once is enough
            s.out.append(c.KillWorker(worker.id, f"no result within the deadline of {deadline:g} s"))
        elif running_s - worker.warned_at > max(s.config.watchdog_s, WATCHDOG_FACTOR * (group.mean_service_s or 0.0)):
            worker.warned_at = running_s
            task = next(iter(worker.assigned.values()))
            s.out.append(c.Warn(worker.id, task.id, task.item_id, running_s))

    def _recycle(self) -> None:
        """Replace workers that are too old or too large, one at a time, the new one before the old one goes."""
        s = self.scheduler
        if s.now - self._last_recycle < s.config.worker_restart_interval_s:
            return
        replaced = {w.replaces for w in self._workers.values()}
        for worker in list(self._workers.values()):
            if not self._is_worn(worker) or worker.id in replaced or s.group_finished(worker.group):
                continue
            self._last_recycle = s.now
            group = s.groups[worker.group]
            # Where its GPU is all there is, the old one has to go first.
            if not self.start(group, replaces=worker.id):
                self.drain(worker)
            return

    def _is_worn(self, worker: WorkerRecord) -> bool:
        config = self.scheduler.config
        if worker.state is not WorkerState.READY:
            return False
        lifetime, most = config.worker_max_lifetime_s, config.worker_memory_bytes
        too_old = lifetime is not None and self.scheduler.now - worker.ready_at > lifetime
        return too_old or (most is not None and worker.rss_bytes > most)


def _staying(group: GroupRecord) -> int:
    return sum(worker.state is not WorkerState.DRAINING for worker in group.workers.values())
