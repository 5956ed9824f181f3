"""The scheduler: `handle(*events)` returns commands. This is the one door; state changes nowhere else.

    apply(event)  ─▶  [rescale]  ─▶  dispatch, downstream first  ─▶  commands

Every source partition is a *root*. A root is complete when none of its descendants is live: all were written, dropped
or quarantined. It is then committed as a whole, with its counts, so that after any crash the books and the files agree.
An event about something that is over (a late result of a worker given up on, a repeated message) changes nothing.
"""

import heapq
from typing import TYPE_CHECKING

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.account import Account, commit_of
from gristmill.engine.breaker import Breaker, Ending
from gristmill.engine.caretaker import LOST_TO_ANOTHER, Caretaker, Copies, Recalls, Restarts
from gristmill.engine.dispatch import Dispatcher, MemoryBook
from gristmill.engine.faults import Fault
from gristmill.engine.fleet import Fleet
from gristmill.engine.plan import Group
from gristmill.engine.policies import retry
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.engine.state import Change, GroupRecord, RootRecord, TaskRecord, WorkerRecord, WorkerState
from gristmill.metrics.snapshot import StageCounts

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SETUP_FAILURES = 2
MAX_SETUP_KILLS = 6  # killed from outside: that says nothing about the set-up


class Scheduler:
    """The state of one run."""

    def __init__(self, groups: tuple[Group, ...], config: SchedulerConfig) -> None:
        self.config = config
        self.now = 0.0
        priors = config.priors or (None,) * len(groups)
        self.groups = [GroupRecord.starting_from(*each) for each in zip(groups, priors, strict=True)]
        self.num_stages = sum(len(group.names) for group in groups)
        self.tasks: dict[int, TaskRecord] = {}
        self.roots: dict[int, RootRecord] = {}
        self.committing: dict[int, RootRecord] = {}
        self.memory = MemoryBook(num_groups=len(groups))
        self.fleet = Fleet(self)
        self.caretaker = Caretaker(self)
        self.recalls = Recalls(self)
        self.copies = Copies(self)
        self.restarts = Restarts(self)
        self.breaker = Breaker(self)
        self.ending = Ending(self)
        self.dispatcher = Dispatcher(self)
        self.totals = [StageCounts() for _ in range(self.num_stages)]
        self.account = Account(self.totals)
        self.partitions_done = 0
        self.sources_listed = 0
        self.last_listed = -1
        self.source_exhausted = False
        self.pull_outstanding = False
        self.stop_reason: tuple[str, str] | None = None  # (outcome, error): finish what is under way, then stop
        self.finished = False
        self.out: list[c.Command] = []
        self.next_task = 0
        self._handed_back: dict[int, WorkerRecord] = {}  # those whose load has changed since they were filed
        self._apply: dict[type, Callable[..., None]] = {
            e.Ticked: self._ticked,
            e.NodeJoined: self._node_joined,
            e.NodeLost: self._node_lost,
            e.SourceListed: self._source_listed,
            e.ListedAgain: self.restarts.take,
            e.SourceExhausted: self._source_ended,
            e.WorkerReady: self._worker_ready,
            e.WorkerSetupFailed: self._worker_setup_failed,
            e.WorkerLost: self._worker_lost,
            e.WorkerExited: self._worker_exited,
            e.TaskEmitted: self._task_emitted,
            e.TaskStepped: self._task_stepped,
            e.TaskFinished: self._task_finished,
            e.TaskRaised: self._task_raised,
            e.Committed: self._committed,
            e.OutputsLost: self.restarts.outputs_lost,
            e.MemorySampled: self._memory_sampled,
            e.Cancelled: self._cancelled,
        }

    def handle(self, *events: e.Event) -> list[c.Command]:
        """Take in what happened and return what to do, in order."""
        for event in events:
            if self.finished:
                self.ending.release_late(event)
            else:
                self._apply[type(event)](event)
        self._file_workers()
        if not self.finished:
            self.caretaker.look()
            self.fleet.rescale_if_due()
            self._pull()
            self.dispatcher.dispatch()
            self.ending.finish_if_done()
        out, self.out = self.out, []
        return out

    # Source

    def _source_listed(self, event: e.SourceListed) -> None:
        # An answer that only repeats an earlier one does not answer what was asked since.
        if event.items and event.items[-1].index > self.last_listed:
            self.pull_outstanding = False
        for item in event.items:
            if item.index <= self.last_listed:  # partitions come in order, so this one is a repeat
                self.out.append(c.Release(item.payload))
                continue
            self.last_listed = item.index
            self.sources_listed += 1
            if self.stop_reason:
                self.out.append(c.Release(item.payload))
                continue
            root = self.roots[item.index] = RootRecord(item.index, item.name, item.num_bytes)
            self.enqueue(root, 0, item, item.name, None)

    def _source_ended(self, event: e.SourceExhausted) -> None:
        if self.source_exhausted:
            return
        self.source_exhausted = True
        self.pull_outstanding = False
        self.fleet.rescale_now = True

    def _pull(self) -> None:
        if self.source_exhausted or self.pull_outstanding or self.stop_reason or not self.fleet.nodes:
            return
        first = self.groups[0]
        wanted = 2 * max(1, len(first.workers)) * self.dispatcher.slots(first, more_coming=True)
        if len(first.queue) < wanted:
            self.pull_outstanding = True
            self.out.append(c.PullSource(max(16, wanted)))

    # Workers

    def _node_joined(self, event: e.NodeJoined) -> None:
        self.fleet.add_node(event)
        self.account.nodes_changed(self.fleet.nodes.values(), self.now)
        self.memory.add_node(event.node, event.memory_bytes)

    def _node_lost(self, event: e.NodeLost) -> None:
        for group in self.groups:
            for worker in [w for w in group.workers.values() if w.node == event.node]:
                group.book.lost("node")
                self._take_back(worker, cause=None, crumb=None)
                self.fleet.remove(worker)
        self.fleet.remove_node(event.node)
        self.account.nodes_changed(self.fleet.nodes.values(), self.now)
        self.memory.remove_node(event.node)
        self.restarts.data_lost(event.node)

    def _worker_ready(self, event: e.WorkerReady) -> None:
        worker = self.fleet.find(event.worker)
        if worker is None or worker.state is not WorkerState.STARTING:
            return
        worker.ready_at = worker.idle_since = self.now
        worker.warned_at = 0.0
        group = self.groups[worker.group]
        group.crew.make_ready(worker)
        group.setup_failures = 0
        group.setup_s = event.setup_s
        group.book.ready(event.setup_s)
        if worker.replaces is not None:
            old = self.fleet.find(worker.replaces)
            if old is not None and old.state is WorkerState.READY:
                self.fleet.drain(old)

    def _worker_setup_failed(self, event: e.WorkerSetupFailed) -> None:
        worker = self.fleet.find(event.worker)
        if worker is None or worker.state is not WorkerState.STARTING:
            return
        self.fleet.remove(worker)
        group = self.groups[worker.group]
        group.setup_failures += 1
        if group.setup_failures >= MAX_SETUP_FAILURES and not group.crew.num_ready:
            words = f"{group.plan.name}: set-up failed {group.setup_failures} times: {event.error}"
            self.ending.at_once("failed", words)

    def _worker_lost(self, event: e.WorkerLost) -> None:
        worker = self.fleet.find(event.worker)
        if worker is None:
            return
        never_ready = worker.state is WorkerState.STARTING
        if event.cause != LOST_TO_ANOTHER:
            self.groups[worker.group].book.lost(retry.loss_kind(event.cause), event.crumb)
        suspects = worker.suspects()
        self._take_back(worker, cause=event.cause, crumb=event.crumb)
        self.fleet.remove(worker)
        if suspects:
            self.breaker.worker_died(worker, suspects[0], event)
        if never_ready:
            group = self.groups[worker.group]
            group.setup_failures += 1
            most = MAX_SETUP_KILLS if retry.was_killed(event.cause) else MAX_SETUP_FAILURES
            if group.setup_failures > most and not group.crew.num_ready:
                self.ending.at_once("failed", f"{group.plan.name}: its workers end during set-up: {event.cause}")

    def _worker_exited(self, event: e.WorkerExited) -> None:
        worker = self.fleet.find(event.worker)
        if worker is not None:
            self._take_back(worker, cause=None, crumb=None)
            self.fleet.remove(worker)

    def _take_back(self, worker: WorkerRecord, *, cause: str | None, crumb: e.Crumb | None) -> None:
        """Requeue what a worker held. Only what it was running can be to blame for its end."""
        group = self.groups[worker.group]
        group.book.wasted_s += sum([self.now - call.since for call in worker.running.values()]) / group.plan.lanes
        suspects = {task.id for task in worker.suspects()}
        several = group.plan.lanes > 1
        for task in reversed(worker.assigned.values()):  # each goes to the front, so the first comes to be first again
            task.change(Change.WORKER_LOST)
            # A call under way beside one that is to blame may have written files: its next have other names.
            innocent = several and task.call in worker.running and task.id not in suspects
            if cause is None or innocent:
                task.trial = retry.without_blame(task.trial)
            elif task.id in suspects:
                stage = "" if crumb is None else f" in stage {group.plan.names[crumb.stage]}"
                task.trial = retry.after_death(task.trial, f"{cause}{stage}", crumb)
                group.book.retried(0 if crumb is None else crumb.stage)
            self._requeue(task)
        worker.assigned.clear()
        worker.running.clear()
        worker.behind.clear()

    def recalled(self, worker: WorkerRecord, task: TaskRecord) -> None:
        """A worker is told to skip a task. It may have begun, so files of the next attempt have other names."""
        task.change(Change.RECALLED)
        worker.recalled = True
        task.trial = retry.without_blame(task.trial)
        worker.take(task)
        self._requeue(task)

    def renumber(self, task: TaskRecord, number: int) -> None:
        """Know a task by another number."""
        del self.tasks[task.id]
        task.id = number
        self.tasks[number] = task

    def _memory_sampled(self, event: e.MemorySampled) -> None:
        worker = self.fleet.find(event.worker)
        if worker is not None:
            worker.rss_bytes = max(worker.rss_bytes, event.rss_bytes)
            self.groups[worker.group].book.held(event.rss_bytes)
            self.caretaker.worker_was_used(worker)

    # Tasks

    def enqueue(
        self,
        root: RootRecord,
        group: int,
        item: e.SourceItem | e.Output,
        item_id: str,
        node: int | None,
        *,
        path_s: float = 0.0,
    ) -> None:
        """Let a task wait for a group."""
        number = self.next_task
        self.next_task = number + 1
        task = TaskRecord(
            number, root.id, group, item_id, item.num_bytes, item.payload, self.now, path_s=path_s, node=node
        )
        if isinstance(item, e.Output):
            task.num_items = item.num_items
        if root.careful:
            task.trial = root.careful.get((group, item_id), task.trial)
        self.tasks[number] = task
        record = self.groups[group]
        if not record.live:
            record.progress_at = self.now
        record.live += 1
        record.queue.append(task)
        # A source partition is a name, not data: its bytes are reserved while it runs, not while it waits.
        if group:
            self.memory.queue(group, item.num_bytes, at=node)

    def _requeue(self, task: TaskRecord) -> None:
        self.memory.unsend(task.id)
        if self.restarts.is_void(task):
            self.let_go(task)
            return
        # A new number for every attempt: news of an earlier one, even on the same worker, cannot pass for its news.
        self.renumber(task, self.next_task)
        self.next_task += 1
        group = self.groups[task.group]
        if task.trial.pause_s > 0:
            heapq.heappush(group.delayed, (self.now + task.trial.pause_s, task.id, task))
        else:
            # First come, first served, also among those that come back from several workers; few queued ones are older.
            queue, came = group.queue, task.queued_at
            queue.insert(next((n for n, other in enumerate(queue) if other.queued_at >= came), len(queue)), task)

    def _assigned(self, worker_id: int, task_id: int) -> tuple[WorkerRecord, TaskRecord] | None:
        """The worker and the task, if this worker still has this task; else the news is late and means nothing."""
        worker = self.fleet.find(worker_id)
        task = worker.assigned.get(task_id) if worker is not None else None
        return None if worker is None or task is None else (worker, task)

    def _task_emitted(self, event: e.TaskEmitted) -> None:
        found = self._assigned(event.worker, event.task)
        if found is None:
            self.out.append(c.Release(event.output.payload))
            self.copies.streams(event.worker, event.task)
            return
        worker, task = found
        if self.restarts.is_void(task):
            # A void task ends soonest if nothing holds it up.
            self.out += (c.Release(event.output.payload), c.GrantEmit(worker.id, task.id))
        elif self._take_over(worker, task, self.roots[task.root], event.output):
            self.groups[task.group].crew.emitted(worker, task.id)
            self.groups[task.group].progress_at = self.now
            call = worker.running.get(task.call)
            if call is not None:
                call.heard_at = self.now

    def _task_stepped(self, event: e.TaskStepped) -> None:
        worker = self.fleet.find(event.worker)
        call = None if worker is None else worker.running.get(event.task)  # a call is known by its first task
        if worker is not None and call is not None:
            worker.running_since = self.groups[worker.group].progress_at = self.now
            call.unhurried = event.unhurried
            worker.begin_anew(call, self.now)

    def _take_over(self, worker: WorkerRecord, task: TaskRecord, root: RootRecord, output: e.Output) -> bool:
        """Accept one output of a task, unless it has been delivered already."""
        if output.index < task.received:
            self.out.append(c.Release(output.payload))
            return False
        task.received = output.index + 1
        following = task.group + 1
        if following == len(self.groups):
            root.outputs.append(output)
        else:
            root.live += 1
            self.enqueue(root, following, output, output.item_id, worker.node, path_s=task.path_s)
        return True

    def _task_finished(self, event: e.TaskFinished) -> None:
        found = self._assigned(event.worker, event.task) or self.copies.bring_back(event.worker, event.task)
        if found is None:
            self.out.extend(c.Release(output.payload) for output in event.outputs)
            return
        worker, task = found
        task.change(Change.FINISHED)
        group, root = self.groups[task.group], self.roots[task.root]
        if root.starts_over:  # nothing that comes of it counts
            self.out.extend(c.Release(output.payload) for output in event.outputs)
            group.book.wasted_s += event.useful_s / group.plan.lanes
        else:
            self._take_results(worker, task, root, group, event)
        self.memory.unsend(task.id)
        self._hand_back(worker, task, group)
        worker.tasks_done += 1
        if self.config.worker_max_tasks is not None:
            self.caretaker.worker_was_used(worker)
        if not root.starts_over:
            self.breaker.look(group, event)
        self.let_go(task)
        if group.live == 0 and self.source_exhausted:
            self.fleet.rescale_now = True

    def _take_results(
        self, worker: WorkerRecord, task: TaskRecord, root: RootRecord, group: GroupRecord, event: e.TaskFinished
    ) -> None:
        """Accept what a finished task has made, and learn from how it went."""
        group.progress_at = self.now
        made = sum([output.num_bytes for output in event.outputs])
        self.account.enter_times(task, root, group, event, made)
        for output in event.outputs:
            self._take_over(worker, task, root, output)
        self.account.enter_counts(root, group, event)
        for name, value in event.learnt:
            group.learnt[name] = min(value, group.learnt.get(name, value))
        group.measured(event.useful_s / group.plan.lanes, task.received)
        self.memory.observe(task.group, task.num_bytes, made + int(self.config.working_copies * task.num_bytes))

    def let_go(self, task: TaskRecord) -> None:
        """A task is over and needs its input no more. With its last task a root is over, or starts over."""
        if task.group:
            self.memory.consume(task.group, task.num_bytes, at=task.node)
        self.out.append(c.Release(task.payload))
        del self.tasks[task.id]
        if task.shadow >= 0:
            self.copies.settle(task)
        root = self.roots[task.root]
        self.groups[task.group].live -= 1
        root.live -= 1
        if root.live == 0 and root.starts_over:
            self.restarts.list_again(root)
        elif root.live == 0 and not self.finished:
            self._commit(root)

    def _task_raised(self, event: e.TaskRaised) -> None:
        found = self._assigned(event.worker, event.task)
        if found is None:
            return
        worker, task = found
        group, root = self.groups[task.group], self.roots[task.root]
        task.change(Change.RAISED)
        group.book.wasted_s += (self.now - worker.began(task)) / group.plan.lanes
        task.last_worker = worker.id
        self._hand_back(worker, task, group)
        trial = self.breaker.next_trial(task, group, event)
        if trial is not None:
            task.trial = trial
            group.book.retried(group.plan.position(event.stage))
        if self.finished or root.starts_over:
            self._requeue(task)
        elif trial is None:
            self.memory.unsend(task.id)
            self.restarts.give_up(root, event.error)
        elif event.divisible and task.received and event.fault is Fault.DOCUMENT:
            # The outputs on their way were made with documents that will be left out when the task is tried again.
            root.careful[task.group, task.item_id] = trial
            self.memory.unsend(task.id)
            self.restarts.start_over(root)
        else:
            self._requeue(task)

    def _hand_back(self, worker: WorkerRecord, task: TaskRecord, group: GroupRecord) -> None:
        """A worker is through with a task and goes on to its next."""
        now, behind, running, lanes = self.now, worker.behind, worker.running, group.plan.lanes
        if lanes == 1 and behind and task.call in running and len(running[task.call].tasks) == 1:
            # One lane, one task a call, others waiting, as for most tasks: what `take` and `begin` would do, inlined.
            del worker.assigned[task.id]
            del running[task.call]
            if worker.overdue:
                worker.overdue.discard(task.call)
            call = behind.pop(0)
            call.since = now
            running[call.number] = call
        else:
            worker.take(task, now=now)
            if behind:
                worker.begin(lanes, now)
        if worker.ungranted:
            group.crew.forget_outputs(worker, task.id)
        self._handed_back[worker.id] = worker
        worker.running_since = worker.idle_since = now
        worker.warned_at = 0.0

    def _file_workers(self) -> None:
        """File the workers that have handed something back: once each, however many results came together."""
        if self._handed_back:
            for worker in self._handed_back.values():
                self.groups[worker.group].crew.refile(worker)
            self._handed_back.clear()

    # Commit

    def _commit(self, root: RootRecord) -> None:
        if not self.stop_reason and self.breaker.holds(root):
            return
        self.commit_now(root)

    def commit_now(self, root: RootRecord) -> None:
        """Ask for the commit of a partition of which nothing is left to do."""
        self.committing[root.id] = root
        self.out.append(commit_of(root))
        self.roots.pop(root.id, None)  # one that was held has been removed before

    def _committed(self, event: e.Committed) -> None:
        if self.committing.pop(event.root, None) is not None:
            self.partitions_done += 1
            self.out.append(c.Publish(event.root))

    # The end

    def _cancelled(self, event: e.Cancelled) -> None:
        self.ending.at_once("stopped", event.reason)

    def group_finished(self, index: int) -> bool:
        """Whether nothing is here and nothing more will come."""
        return not self.more_is_coming(index) and not self.groups[index].live

    def more_is_coming(self, index: int) -> bool:
        """Whether a group may get tasks that are not there yet."""
        goes_on = not self.source_exhausted or bool(self.restarts.listed_again)
        return goes_on or any(group.live for group in self.groups[:index])

    # Time

    def _ticked(self, event: e.Ticked) -> None:
        if event.now > self.now:
            self._file_workers()
            if self.account.started is not None:
                self.account.pass_time(event.now - self.now, self.groups)
            self.now = event.now

    def next_wakeup(self) -> float | None:
        """When the scheduler wants to be ticked, beyond the executor's regular ticks."""
        times = [self.dispatcher.next_wakeup(), self.fleet.next_rescale() if self.fleet.rescale_now else None]
        # Whatever is due already waits for some event, not for time: a wakeup would only spin.
        return min((time for time in times if time is not None and time > self.now), default=None)
