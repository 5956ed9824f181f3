"""Second runs of tasks that take suspiciously long. Part of the scheduler.

The task itself moves on: it is queued again under a new number, as after a recall. The worker that has it gets nothing
more, and what it is running becomes a shadow: not a task of the books any more, but if its result comes first, that is
taken, and whoever has the task by then is stopped. If the task is done first, the worker with the shadow is stopped.
"""

from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine.crew import WorkerRecord, WorkerState
from gristmill.engine.policies.speculation import is_straggler
from gristmill.engine.state import GroupRecord
from gristmill.engine.task_state import Change, State, TaskRecord

if TYPE_CHECKING:  # parts of one object: the scheduler owns them all
    from gristmill.engine.scheduler import Scheduler

NOBODY = -1
LOST = "another worker was faster with the same task"


class Copies:
    """Makes copies and settles which run counts. Where a copy runs is the dispatcher's choice."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def make(self, group: GroupRecord) -> bool:
        """Queue the group's worst straggler a second time, if it has one; whoever asks has an idle worker for it."""
        s = self.scheduler
        worker = group.crew.most_loaded(above=0) if s.config.copies and group.plan.may_run_twice else None
        if worker is None or len(worker.assigned) != 1:
            return False
        (task,) = worker.assigned.values()
        running_s = s.now - worker.oldest_since
        # What has begun to stream has outputs further on; what failed before is looked at with care, and alone.
        is_plain = not task.received and task.trial.care is c.Care.NORMAL and task.shadow == NOBODY
        if not is_plain or s.restarts.is_void(task) or not is_straggler(running_s, group.mean_call_s):
            return False
        worker.shadow = (task.id, task)
        task.shadow = task.last_worker = worker.id
        s.recalled(worker, task)
        s.fleet.drain(worker)
        return True

    def bring_back(self, worker_id: int, number: int) -> tuple[WorkerRecord, TaskRecord] | None:
        """A shadow has a result and its task has none yet: give the task back to the worker that did it.

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
            # Sorted is in order for a heap too, and numbers are unique, so tasks are never compared.
            group.delayed = sorted(entry for entry in group.delayed if entry[2] is not task)
        s.renumber(task, number)
        task.change(Change.SENT)
        worker.give([task])
        worker.begin(group.plan.lanes, s.now)
        worker.shadow = None
        task.shadow = NOBODY
        return worker, task

    def streams(self, worker_id: int, number: int) -> None:
        """A shadow begins to stream. Its outputs are let go, so it can no longer win; nobody would grant it more."""
        worker = self.scheduler.fleet.find(worker_id)
        if worker is not None and worker.shadow is not None and worker.shadow[0] == number:
            worker.shadow = None
            self._kill(worker)

    def _stop(self, worker: WorkerRecord, task: TaskRecord) -> None:
        """Stop a worker that runs a copy nobody needs; what else it holds goes to others, without blame."""
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
            crew.drain(worker)  # so that nobody gives it anything before its end is known
        crew.refile(worker)
        s.groups[worker.group].book.wasted_s += s.now - worker.running_since
        s.out.append(c.KillWorker(worker.id, LOST))
