"""Source partitions that start over, because data that came of them was on a machine that is lost.

Part of the scheduler.
Inputs are let go as soon as they have been used, so what a lost machine held can only be made again from the last
boundary that is on disk: the source partition. What waits of such a root is dropped at once; what runs of it elsewhere
ends in its own time, and its result is let go. When nothing of the root is left it is listed again. Nothing of it was
committed, so nothing is seen twice. Files of the new attempts have other names: somebody may still write the old ones.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.state import RootRecord
from gristmill.engine.task_state import State, TaskRecord

if TYPE_CHECKING:  # parts of one object: the scheduler owns them all
    from gristmill.engine.scheduler import Scheduler


class Restarts:
    """Knows which roots start over, and lets go of what is left of them."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.listed_again: set[int] = set()  # roots that are waited for
        self.given_up: dict[str, str] = {}  # by the name of the partition: why it was given up

    def data_lost(self, node: int) -> None:
        """Everything on a machine is gone; what ran there has been taken back before."""
        s = self.scheduler
        lost = [task for task in s.tasks.values() if task.node == node]
        for task in lost:
            task.node = None
        self._start_over(dict.fromkeys(task.root for task in lost))

    def outputs_lost(self, event: e.OutputsLost) -> None:
        """What came out at the end of a root was on a machine that is gone, and nobody has it yet."""
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
        """What a root has streamed so far will not come again in the same way: nothing of it counts."""
        self._start_over([root.id])

    def _start_over(self, roots: Iterable[int]) -> None:
        s = self.scheduler
        for root in roots:
            s.roots[root].starts_over = True
        waiting = [task for task in s.tasks.values() if self.is_void(task) and task.state is State.QUEUED]
        for group in s.groups:
            group.queue = deque(task for task in group.queue if not self.is_void(task))
            # Sorted is in order for a heap too, and numbers are unique, so tasks are never compared.
            group.delayed = sorted(entry for entry in group.delayed if not self.is_void(entry[2]))
        for task in waiting:
            s.let_go(task)
        for group in s.groups:
            for worker in list(group.workers.values()):
                s.dispatcher.recall_void(worker)

    def is_void(self, task: TaskRecord) -> bool:
        """Whether nothing that comes of a task counts."""
        return self.scheduler.roots[task.root].starts_over

    def list_again(self, root: RootRecord) -> None:
        """Nothing is left of a root that starts over."""
        s = self.scheduler
        for total, counts in zip(s.totals, root.counts, strict=True):
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
