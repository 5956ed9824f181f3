"""Stops a run in which a stage lets nothing pass, or too much fails, and ends every run. Part of the scheduler.

One bad document is quarantined and the run goes on. A stage that fails on everything is not a thousand bad documents:
it is one broken program, a missing package, the wrong kind of file. It is recognised by what has passed: nothing, after
100 documents or 10 dead workers, or the whole input where that is less. Until a first document has passed a stage,
partitions with failures there are held and not committed. So a run that is stopped here has committed nothing that the
repaired program would have to do again.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.faults import FAILED_DOCUMENTS, Fault
from gristmill.engine.policies import retry
from gristmill.engine.policies.retry import Trial
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.worker_info import KILLED_FOR_MEMORY
from gristmill.tasks import StagedFile

if TYPE_CHECKING:
    from gristmill.engine.scheduler import Scheduler
    from gristmill.engine.state import GroupRecord, RootRecord, TaskRecord, WorkerRecord

# How many documents may fail before a run stops: `max_quarantined`, and its default.
#
# A number counts documents, and each unreadable part of a file as one more. A share is of the documents read; it means
# little before 1,000 of them, so it stops no run earlier. Unreadable parts hold an unknown number of documents, so
# their bytes are compared with those of the input, without waiting for 1,000 documents.

SHARE_NEEDS = 1000  # documents read before a share of them means anything
DEFAULT_SHARE = 0.1


class Failed(NamedTuple):
    """What has failed so far, and of how much."""

    documents: int
    read: int
    parts: int = 0  # files, or parts of files, that could not be read
    part_bytes: int = 0  # bytes of those parts; like `input_bytes`, as the plan counts them
    input_bytes: int = 0

    @classmethod
    def of(cls, counts: Iterable[StageCounts], input_bytes: int) -> "Failed":
        """Add up what has failed in all stages."""
        counts = list(counts)
        return cls(
            sum(each.quarantined for each in counts),
            sum(each.read for each in counts),
            sum(each.lost_parts for each in counts),
            sum(each.lost_of_plan for each in counts),
            input_bytes,
        )

    def with_earlier(self, earlier: "Failed") -> "Failed":
        """Add what had failed in earlier sessions of the same run."""
        return self._replace(
            documents=self.documents + earlier.documents,
            read=self.read + earlier.read,
            parts=self.parts + earlier.parts,
            part_bytes=self.part_bytes + earlier.part_bytes,
        )


@dataclass(frozen=True)
class QuarantineLimit:
    """A number of documents, a share of them, or None for no limit.

    `is_default`: the user did not ask for it, so a small input is not judged by it even at the end of a run.
    """

    most: int | float | None = None
    is_default: bool = False

    def is_exceeded(self, failed: Failed, *, at_end: bool = False) -> bool:
        """Whether more has failed than may. While the run goes on, a share waits for enough documents."""
        if self.most is None:
            return False
        if not isinstance(self.most, float):
            return failed.documents + failed.parts > self.most
        if failed.part_bytes > self.most * max(1, failed.input_bytes):  # can only grow: nothing to wait for
            return True
        if failed.read < SHARE_NEEDS and (self.is_default or not at_end):
            return False
        return failed.documents > self.most * failed.read

    def __str__(self) -> str:
        if isinstance(self.most, float):
            return f"{100 * self.most:.6g} %"
        return "any number of documents" if self.most is None else f"{self.most:,} document{'s' * (self.most != 1)}"


NOTHING_FAILED = Failed(0, 0)
NO_LIMIT = QuarantineLimit()
DEFAULT_LIMIT = QuarantineLimit(DEFAULT_SHARE, is_default=True)


DEATHS = 10  # of workers of a group that has not done a single task, if they count against the stage (`retry.py`)
DEATHS_IN_A_ROW = 100  # of any kind, and at least `DEATHS` for each worker: after that, restarting is not worth it


class Breaker:
    """Knows which stages at least one document has passed, and which partitions wait for that."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.held: dict[int, RootRecord] = {}
        self._passed = list(scheduler.config.passed_before) or [False] * scheduler.num_stages
        self._has_failures = False
        for group in scheduler.groups:
            first = group.plan.first_stage
            group.has_finished_some = all(self._passed[first : first + len(group.plan.names)])
        self._causes: Counter[str] = Counter()  # of deaths
        self._killed_for_memory_at: dict[int, float] = {}  # by group
        self._told: dict[int, int] = {}  # by group: the longest series of pauses the user was told of

    # What fails

    def next_trial(self, task: "TaskRecord", group: "GroupRecord", event: e.TaskRaised) -> Trial | None:
        """How a task whose stage raised is tried again, or None if it is not. May stop the run."""
        s = self.scheduler
        if event.fault is Fault.INPUT:
            return None
        if event.fault is Fault.BUG:
            s.ending.at_once("failed", f"{event.stage}: {event.error}")
            return None
        stage = self._stage_number(group, event.stage)
        if event.fault is Fault.PROGRAM and not self._passed[stage]:
            s.ending.at_once("broken", f"{event.stage}: {event.error}", self._evidence())
            return None
        if event.fault in (Fault.LIMIT, Fault.SPENDING):
            if not s.stop_reason:
                s.ending.soon("quarantine_limit" if event.fault is Fault.LIMIT else "spending", event.error)
            return None
        trial = retry.after_exception(task.trial, event.error, event.fault, some_passed=self._passed[stage])
        if trial is None:
            s.ending.at_once("machine", f"{event.stage}: {event.error}")
        elif trial.pause_s and trial.transients > self._told.get(task.group, 0):
            self._told[task.group] = trial.transients
            what = event.error.partition(". ")[0].partition("\n")[0]
            s.out.append(c.Tell(f"{event.stage}: {what}; trying again in {trial.pause_s:g} s"))
        return trial

    def worker_died(self, worker: "WorkerRecord", task: "TaskRecord", event: e.WorkerLost) -> None:
        """A worker has died at work: once is chance; again and again, with no document passing, it is not."""
        s, group = self.scheduler, self.scheduler.groups[worker.group]
        offset = 0 if event.crumb is None else event.crumb.stage
        stage = group.plan.first_stage + offset
        if _has_passed_some(task.trial, event.crumb):
            self._passed[stage] = group.has_finished_some = True
            group.deaths = 0
        group.deaths += 1
        group.deaths_that_count += retry.counts_against_stage(task.trial, event.cause, event.crumb)
        group.most_workers = max(group.most_workers, len(group.workers) + 1)
        name = group.plan.names[offset]
        self._causes[f"{name}: {event.cause}"] += 1
        if retry.loss_kind(event.cause) == "memory":
            self._warn_of_memory(worker, group, event.crumb)
        is_broken = not group.has_finished_some and group.deaths_that_count >= DEATHS
        if is_broken or group.deaths >= max(DEATHS_IN_A_ROW, DEATHS * group.most_workers):
            row = "" if event.crumb is None else f", document {event.crumb.first_row}"
            lines = [f"{number} × {cause}" for cause, number in self._causes.most_common(3)]
            since = "since a task was last done" if group.has_finished_some else "and no document has passed it"
            text = f"{name}: its workers died {group.deaths} times {since}; the last at {task.item_id}{row}\n  "
            s.ending.at_once("broken", text + "\n  ".join(lines), self._evidence())

    def _warn_of_memory(self, worker: "WorkerRecord", group: "GroupRecord", crumb: e.Crumb | None) -> None:
        """Tell workers that start later in which stage one was killed for memory; if that is unknown, name all.

        Those killed together count as one. Only the death of a worker that knew of the last one shows that workers
        still take too much.
        """
        if worker.ready_at <= self._killed_for_memory_at.get(worker.group, -1.0):
            return
        self._killed_for_memory_at[worker.group] = self.scheduler.now
        for name in group.plan.names if crumb is None else (group.plan.names[crumb.stage],):
            key = f"{name}/{KILLED_FOR_MEMORY}"
            group.learnt[key] = group.learnt.get(key, 0.0) + 1

    # What passes

    def look(self, group: "GroupRecord", event: e.TaskFinished) -> None:
        """A task is done and in the books: has anything passed, has too much failed?"""
        stuck = False  # a stage of this task let nothing pass
        for stage, counts in enumerate(event.counts, group.plan.first_stage):
            if not self._passed[stage] and counts.has_passed:
                self._passed[stage] = True
                self._release()
            if counts.quarantined or counts.lost_parts:  # `has_failures`, without a call per task and stage
                self._has_failures = True
                stuck = stuck or not counts.has_passed
        if not stuck:
            group.deaths, group.has_finished_some = 0, True
        if self._has_failures and not self.scheduler.stop_reason:
            self._stop_if_too_much()

    def holds(self, root: "RootRecord") -> bool:
        """Whether a partition is held, because documents of it failed in a stage no document has passed yet."""
        if not self._has_failures or not self._suspects(root):
            return False
        self.held[root.id] = root
        del self.scheduler.roots[root.id]
        return True

    def judge_at_the_end(self) -> None:
        """Everything is done except what is held: stop the run for good, or let the held partitions pass."""
        s = self.scheduler
        nothing_read = not any(counts.read for counts in s.totals)
        for group in s.groups:
            for offset, name in enumerate(group.plan.names):
                stage = group.plan.first_stage + offset
                failed = s.totals[stage]
                # In a stage that takes files, one may fail and others pass without any document being counted.
                all_parts = failed.lost_parts and (nothing_read or failed.lost_parts >= group.book.tasks)
                if not s.stop_reason and not self._passed[stage] and (failed.quarantined or all_parts):
                    self._stop(name, failed)
                    return
        self._release(everything=True)

    def _release(self, *, everything: bool = False) -> None:
        for root in list(self.held.values()):
            if everything or not self._suspects(root):
                del self.held[root.id]
                self.scheduler.commit_now(root)

    def _suspects(self, root: "RootRecord") -> bool:
        return any(counts.has_failures and not self._passed[stage] for stage, counts in enumerate(root.counts))

    # Stopping

    def _stop_if_too_much(self) -> None:
        s, unproven = self.scheduler, False
        for group in s.groups:
            for offset, name in enumerate(group.plan.names):
                stage = group.plan.first_stage + offset
                failed = s.totals[stage]
                if failed.has_failures and not self._passed[stage]:
                    unproven = True
                    if failed.quarantined + failed.lost_parts >= FAILED_DOCUMENTS:
                        self._stop(name, failed)
                        return
        if unproven and s.config.limit.is_default:
            return  # better to name the broken stage than to count failures
        failed_now = Failed.of(s.totals, s.config.input_bytes).with_earlier(s.config.failed_before)
        if s.config.limit.is_exceeded(failed_now):
            s.ending.soon("quarantine_limit", f"more than {s.config.limit} failed")

    def _stop(self, name: str, failed: StageCounts) -> None:
        documents = f"{failed.quarantined:,} document{'s' * (failed.quarantined != 1)}" if failed.quarantined else ""
        parts = f"{failed.lost_parts:,} part{'s' * (failed.lost_parts != 1)} of files" if failed.lost_parts else ""
        what = " and ".join(filter(None, (documents, parts)))
        self.scheduler.ending.at_once("broken", f"{name}: no document has passed it; {what} failed", self._evidence())

    def _evidence(self) -> tuple[StagedFile, ...]:
        roots = (*self.held.values(), *self.scheduler.roots.values())
        return tuple(file for root in roots for file in root.side_files if not file.is_payload)[:FAILED_DOCUMENTS]

    def _stage_number(self, group: "GroupRecord", name: str) -> int:
        names = group.plan.names
        return group.plan.first_stage + (names.index(name) if name in names else 0)


class Ending:
    """How a run ends: soon, at once, or when nothing is left to do."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler

    def soon(self, outcome: str, error: str) -> None:
        """Start nothing new; let what is under way be committed."""
        s = self.scheduler
        s.stop_reason = (outcome, error)
        s.source_exhausted = True
        first = s.groups[0]
        # A task that has begun to stream has descendants further on, so it continues.
        begun = [task for task in first.queue if task.received]
        for task in first.queue:
            if not task.received:
                first.live -= 1
                s.out.append(c.Release(task.payload))
                del s.tasks[task.id], s.roots[task.root]
        first.queue = deque(begun)
        s.fleet.rescale_now = True

    def at_once(self, outcome: str, error: str, evidence: tuple[StagedFile, ...] = ()) -> None:
        """Stop now: kill the workers; what is not committed is as if it had never run."""
        s = self.scheduler
        for group in s.groups:
            s.out.extend(c.KillWorker(worker, error) for worker in group.workers)
        s.finished = True
        s.out.append(c.Finish(outcome, error, evidence))

    def release_late(self, event: e.Event) -> None:
        """After the end nothing counts any more, but payloads that arrive in messages must still be released."""
        out = self.scheduler.out
        if isinstance(event, e.TaskEmitted):
            out.append(c.Release(event.output.payload))
        elif isinstance(event, e.TaskFinished):
            out.extend(c.Release(output.payload) for output in event.outputs)
        elif isinstance(event, e.SourceListed):
            out.extend(c.Release(item.payload) for item in event.items)
        elif isinstance(event, e.ListedAgain):
            out.append(c.Release(event.item.payload))

    def finish_if_done(self) -> None:
        """End the run once nothing is left to do, to commit or to wait for."""
        s = self.scheduler
        idle = s.source_exhausted and not s.roots
        if idle and s.breaker.held:
            s.breaker.judge_at_the_end()
        if s.finished or not idle or s.committing or any(group.workers for group in s.groups):
            return
        s.finished = True
        outcome, error = s.stop_reason or ("finished", "")
        if outcome == "finished" and s.restarts.given_up:
            outcome, error = "inputs_changed", "\n".join(s.restarts.given_up.values())
        s.out.append(c.Finish(outcome, error))


def _has_passed_some(trial: Trial, crumb: e.Crumb | None) -> bool:
    """Whether a task that goes one document at a time has got past a document not known to be fatal."""
    if crumb is None or trial.care is not c.Care.STEP or crumb.end_row - crumb.first_row != 1:
        return False
    fatal = {other.first_row for other, _ in trial.condemned if other.turn == crumb.turn}
    return any(row not in fatal for row in range(crumb.first_row))
