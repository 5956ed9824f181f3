"""`GroupWorker`: the loop of every worker (`worker/group_runner.py`) inside a worker of another engine.

It takes a few tasks, asks the registrar how to handle them, runs the group's stages, reports, and hands on what was
made. A stage that raises is tried again here, with the care the registrar says, so the other engine never sees an
exception of a user's stage.
"""

import os
import queue
import resource
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from gristmill.backends.delegated.envelope import Envelope, Receipt, Ticket, pack, unpack
from gristmill.engine.commands import Care
from gristmill.engine.events import Learnt
from gristmill.engine.faults import Fault
from gristmill.engine.plan import AnyTask, Group, Plan
from gristmill.errors import RunFailed
from gristmill.metrics.node_sample import SAMPLE_S, NodeSample
from gristmill.runs.user import watched
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.worker.call_books import SideFiles
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job, JobFailure, JobResult, RunSettings
from gristmill.worker.lanes import Broken, Ended, LaneRunner, Lanes, Streamed
from gristmill.worker.loop import RSS_UNIT
from gristmill.worker.machine import NodeSampler
from gristmill.worker.stage_pickle import load_stages
from gristmill.worker.worker_log import take_over

WAIT_S = 0.2  # between two checks whether another worker has set up the node


class Desk(Protocol):
    """The registrar as a worker reaches it; every call waits for the answer."""

    def begin(self, group: int, worker: str, items: Sequence[tuple[int, str]]) -> list[Ticket | None]: ...
    def leave_crumb(self, group: int, item_id: str, crumb: tuple[int, int, int, int]) -> None: ...
    def raised(self, group: int, item_id: str, stage: str, error: str, fault: Fault) -> Ticket: ...
    def finish(self, receipts: Sequence[Receipt]) -> list[bool]: ...
    def keep(self, envelope: Envelope) -> object: ...
    def learnt(self, group: int) -> Learnt: ...
    def worker_ready(self, group: int) -> None: ...
    def set_up_failed(self, error: str) -> None: ...
    def claim_node(self, node: str) -> str: ...
    def node_ready(self, node: str) -> None: ...
    def say(self, message: str) -> None: ...
    def sampled(self, group: int, worker: str, memory_bytes: int, sample: NodeSample) -> None: ...


@dataclass(frozen=True)
class GroupWork:
    """What a worker of one group is sent when it starts. `stages` are all groups of the plan, pickled by value."""

    stages: bytes
    index: int
    name: str
    settings: RunSettings
    keeps_final_tasks: bool  # the plan does not end in a writer, so what comes out at its end is its result
    patience_s: float  # after which a worker says what it is doing

    @classmethod
    def of_all(cls, plan: Plan, settings: RunSettings, patience_s: float) -> "list[GroupWork]":
        """What workers of each group of a plan are sent."""
        import cloudpickle  # only the driver needs it

        stages = cloudpickle.dumps(plan.groups)
        keeps = not plan.ends_in_writer
        return [cls(stages, group.index, group.name, settings, keeps, patience_s) for group in plan.groups]


class GroupWorker:
    """One worker of one group."""

    def __init__(self, work: GroupWork, desk: Desk, *, node: str, gpu_ids: tuple[str, ...] = ()) -> None:
        self._work = work
        self._desk = desk
        self._name = f"{node}-{os.getpid()}"
        self._node = node
        self._calls = 0
        self._stage = 0  # at work, or last at work
        self._crumbs_of: str | None = None  # the item whose rows are announced before they are touched
        with self._watched("has been setting up"):
            groups, error = load_stages(work.stages)
            if groups is None:
                raise self._failed(error)
            self._group: Group = groups[work.index]
            self._log = take_over(self._name, self._stage_name, work.settings.log_format)
            self._last = work.index + 1 == len(groups)
            kind = LaneRunner if self._group.lanes > 1 else GroupRunner
            self._runner = kind(
                self._group, last=self._last, settings=work.settings, leave_crumb=self._leave_crumb, keeps_inputs=False
            )
            self._lanes: Lanes | None = None
            if isinstance(self._runner, LaneRunner):
                self._lanes = Lanes(self._runner, self._group.lanes, queue.SimpleQueue())
            self._set_up_node(groups, node)
            learnt = dict(desk.learnt(work.index))
            metadata = WorkerMetadata(worker_id=f"{self._group.name}-{self._name}", gpu_ids=gpu_ids, learnt=learnt)
            error = self._runner.setup(metadata)
            if error:
                raise self._failed(error)
        desk.worker_ready(work.index)
        self._sampler = NodeSampler(node[:12])  # Ray's ids are 56 characters long
        self._sampled_at = 0.0

    def _watched(self, doing: str) -> AbstractContextManager[None]:
        """Should it take long, tell the run which worker is doing what: the engine that started it does not look."""
        who = f"a worker of {self._work.name} (process {os.getpid()}) on node {self._node} {doing} for"
        return watched(who, self._work.patience_s, self._desk.say)

    def _failed(self, error: str) -> RunFailed:
        self._desk.set_up_failed(error)
        return RunFailed(error)

    def _set_up_node(self, groups: Iterable[Group], node: str) -> None:
        """Once on every machine, for all stages of the plan; the other workers there wait until it is done."""
        wanted = [stage for group in groups for stage in group.stages if stage.wants_node_setup()]
        if not wanted:
            return
        while (answer := self._desk.claim_node(node)) == "wait":
            time.sleep(WAIT_S)
        if answer == "set up":
            for stage in wanted:
                stage.setup_on_node(NodeInfo(node), WorkerMetadata())
            self._desk.node_ready(node)

    def teardown(self) -> None:
        """Run `teardown` of the stages."""
        with self._watched("has been ending"):
            self._runner.teardown()
        self._log.give_back()

    def _stage_name(self) -> str:
        """The stage that is at work, or the first of its group."""
        return self._group.names[self._stage]

    def run(self, envelopes: Sequence[Envelope]) -> Iterator[Envelope]:
        """Run tasks through the group; their outputs are handed on once the registrar knows of them."""
        self._calls += 1
        self._tell_sample()
        token = f"{self._name}-{self._calls}"
        tickets = self._desk.begin(self._work.index, token, [(e.root, e.item_id) for e in envelopes])
        wanted = [(envelope, ticket) for envelope, ticket in zip(envelopes, tickets, strict=True) if ticket is not None]
        if all(ticket.care is Care.NORMAL and not ticket.attempt for _, ticket in wanted):
            yield from self._run_lanes(wanted) if self._lanes is not None else self._run_call(wanted)
        else:  # one at a time, so that the next death points at one task
            for one in wanted:
                time.sleep(one[1].pause_s)
                yield from self._run_call([one])

    def _tell_sample(self) -> None:
        """Say now and then how much memory is held, here and on the machine."""
        now = time.monotonic()
        if now - self._sampled_at >= SAMPLE_S:
            self._sampled_at = now
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT
            self._desk.sampled(self._work.index, self._name, most, self._sampler.take())

    def _run_call(self, call: Sequence[tuple[Envelope, Ticket]]) -> Iterator[Envelope]:
        if not call:
            return
        streamed: list[list[tuple[str, AnyTask]]] = [[] for _ in call]

        def emit(number: int, item_id: str, task: AnyTask) -> None:
            streamed[number].append((item_id, task))

        self._crumbs_of = call[0][0].item_id if call[0][1].care is Care.STEP else None
        others = f" and {len(call) - 1} more" if len(call) > 1 else ""
        with self._watched(f"has been busy with {call[0][0].item_id}{others}"):
            outcomes = self._runner.run([_job(envelope, ticket) for envelope, ticket in call], emit)
        self._crumbs_of = None
        outputs, again = self._settle(call, outcomes, streamed)
        yield from outputs
        for one in again:
            yield from self._run_call([one])

    def _run_lanes(self, wanted: Sequence[tuple[Envelope, Ticket]]) -> Iterator[Envelope]:
        """Run tasks side by side, as far as there are lanes; what failed is tried again when all others are done."""
        lanes, size = self._lanes, self._group.batch_size
        if lanes is None or not wanted:
            return
        waiting = deque(wanted[start : start + size] for start in range(0, len(wanted), size))
        again: list[tuple[Envelope, Ticket]] = []
        with self._watched(f"has been busy with {wanted[0][0].item_id} and {len(wanted) - 1} more"):
            while waiting or lanes.is_busy:
                while waiting and lanes.has_free:
                    call = waiting.popleft()
                    streamed: list[list[tuple[str, AnyTask]]] = [[] for _ in call]
                    lanes.begin((call, streamed), [_job(envelope, ticket) for envelope, ticket in call])
                said = lanes.news.get()
                if isinstance(said, Broken):
                    raise said.error
                if isinstance(said, Streamed):
                    said.key[1][said.number].append((said.item_id, said.task))
                    said.taken.set()
                elif isinstance(said, Ended):
                    call, streamed = said.key
                    outputs, failed = self._settle(call, lanes.outcomes(said), streamed)
                    again += failed
                    yield from outputs
        for one in again:
            yield from self._run_call([one])

    def _settle(
        self,
        call: Sequence[tuple[Envelope, Ticket]],
        outcomes: Sequence[JobResult | JobFailure],
        streamed: Sequence[list[tuple[str, AnyTask]]],
    ) -> tuple[list[Envelope], list[tuple[Envelope, Ticket]]]:
        """Report a call; return what to hand on, and what to try again."""
        done: list[tuple[Receipt, list[Envelope]]] = []
        again: list[tuple[Envelope, Ticket]] = []
        for (envelope, _), outcome, early in zip(call, outcomes, streamed, strict=True):
            if isinstance(outcome, JobFailure):
                ticket = self._try_again(envelope, outcome)
                if not ticket.given_up:
                    again.append((envelope, ticket))
                elif outcome.fault is Fault.INPUT:
                    done.append((self._given_up(envelope, outcome.error), []))
            else:
                done.append(self._made(envelope, outcome, early))
        counted = self._desk.finish([receipt for receipt, _ in done])
        made: list[Envelope] = []
        for (receipt, outputs), is_first in zip(done, counted, strict=True):
            if not is_first:
                SideFiles.discard((*receipt.files, *receipt.side_files))
            made += outputs
        return made, again

    def _try_again(self, envelope: Envelope, failure: JobFailure) -> Ticket:
        ticket = self._desk.raised(self._work.index, envelope.item_id, failure.stage, failure.error, failure.fault)
        if ticket.pause_s:
            time.sleep(ticket.pause_s)
        return ticket

    def _given_up(self, envelope: Envelope, why: str) -> Receipt:
        return Receipt(self._work.index, envelope.root, envelope.item_id, 0, (), (), (), (), given_up=why)

    def _made(
        self, envelope: Envelope, result: JobResult, early: list[tuple[str, AnyTask]]
    ) -> tuple[Receipt, list[Envelope]]:
        packed = [pack(envelope.root, item_id, task) for item_id, task in (*early, *result.outputs)]
        final: list[tuple[str, object]] = []
        if self._last and self._work.keeps_final_tasks:
            final = [(output.item_id, self._desk.keep(output)) for output in packed]
        receipt = Receipt(
            self._work.index,
            envelope.root,
            envelope.item_id,
            0 if self._last else len(packed),
            result.counts,
            tuple(result.files),
            tuple(result.side_files),
            tuple(result.facts),
            tuple(result.learnt.items()),
            passed=tuple(
                name for name, counts in zip(self._group.names, result.counts, strict=True) if counts.has_passed
            ),
            final=tuple(final),
            useful_s=result.useful_s,
        )
        return receipt, [] if self._last else packed

    def _leave_crumb(self, stage: int, first_row: int, end_row: int, turn: int = 0) -> None:
        self._stage = stage
        # A call to the cluster for every stage of every task would cost more than most stages: only where it is needed.
        if self._crumbs_of is not None:
            self._desk.leave_crumb(self._work.index, self._crumbs_of, (stage, first_row, end_row, turn))


def _job(envelope: Envelope, ticket: Ticket) -> Job:
    # keeps_inputs is False: every attempt unpacks its own task.
    return Job(
        envelope.item_id,
        unpack(envelope),
        ticket.care,
        ticket.attempt,
        tuple(ticket.condemned),
        ticket.cause,
        ticket.out_of_patience,
        ticket.step_from,
    )
