"""The scheduler's memory: groups, roots and nodes. Plain records; the scheduler alone changes them.

Ids are integers counted up from 0 and maps keep insertion order, so the same events give the same commands in every
process and under every hash seed.
"""

from collections import deque
from dataclasses import dataclass, field

import msgspec

from gristmill.engine.crew import Crew, WorkerRecord
from gristmill.engine.events import Fact, Output
from gristmill.engine.group_book import GroupBook
from gristmill.engine.plan import Group
from gristmill.engine.policies.rates import Prior, Rate
from gristmill.engine.policies.retry import Trial
from gristmill.engine.policies.rooms import UNITS, Room, cpu_units, share_of_gpu
from gristmill.engine.task_state import TaskRecord
from gristmill.metrics.stage_counts import StageCounts
from gristmill.stages.resources import Resources
from gristmill.tasks import StagedFile


@dataclass(slots=True, eq=False)
class GroupRecord:
    """One group: its queue, its workers and its measured rate."""

    plan: Group
    queue: deque[TaskRecord] = field(default_factory=deque)
    delayed: list[tuple[float, int, TaskRecord]] = field(default_factory=list)  # heap by the time they may go on
    crew: Crew = field(init=False)
    live: int = 0  # tasks here that are not done
    rate: Rate = field(default_factory=Rate)
    mean_service_s: float | None = None  # of a worker for a task: of a call that shares it with others, its share
    setup_failures: int = 0
    deaths: int = 0  # of workers at work since a task was last done without a failure
    has_finished_some: bool = False  # tasks without a failure
    setup_s: float = 0.0
    learnt: dict[str, float] = field(default_factory=dict)  # what workers have told those that start later
    book: GroupBook = field(default_factory=GroupBook)

    @classmethod
    def starting_from(cls, plan: Group, prior: Prior | None) -> "GroupRecord":
        """Return a group that has done nothing, with what is believed of it."""
        return cls(plan, rate=Rate.starting_from(prior), setup_s=0.0 if prior is None else prior.setup_s)

    def __post_init__(self) -> None:
        self.book.units = (cpu_units(self.plan.resources), 0)
        sized = self.plan.has_sized_batches
        self.crew = Crew(lanes=self.plan.lanes, batch_size=1 if sized else self.plan.batch_size, by_calls=sized)

    @property
    def workers(self) -> dict[int, WorkerRecord]:
        """All that are starting, ready or draining, by number. `crew` changes them."""
        return self.crew.workers

    @property
    def mean_call_s(self) -> float | None:
        """How long a task is on its way through a worker."""
        return None if self.mean_service_s is None else self.mean_service_s * self.plan.lanes

    def running_s(self, now: float) -> list[float]:
        """How long each unfinished call has been running: its share of the worker's time."""
        lanes = self.plan.lanes
        return [(now - call.since) / lanes for worker in self.workers.values() for call in worker.running.values()]

    def measured(self, seconds: float, outputs: int) -> None:
        """Learn from a task that took a worker so many seconds and became so many tasks."""
        self.rate.add(seconds, outputs, workers=self.crew.num_staying)
        # A mean over about the last twenty: long enough against noise, short enough to follow a change.
        self.mean_service_s = seconds if self.mean_service_s is None else 0.95 * self.mean_service_s + 0.05 * seconds

    def backlog_s(self) -> float:
        """Seconds the present workers need for what is queued."""
        return len(self.queue) * (self.mean_service_s or 0.0) / max(1, len(self.workers))


class RootRecord(msgspec.Struct, eq=False):
    """One source partition and everything that descends from it. (A struct's defaults are its own, lists included.)"""

    id: int
    name: str
    num_bytes: int
    counts: tuple[StageCounts, ...]
    live: int = 1
    outputs: list[Output] = []
    files: list[StagedFile] = []
    side_files: list[StagedFile] = []
    facts: list[Fact] = []
    useful_s: dict[int, float] = {}  # by group
    starts_over: bool = False  # what comes of it does not count, until it is listed again
    given_up: str = ""  # why it is not listed again: its input is not the one that was planned
    careful: dict[tuple[int, str], Trial] = {}  # by group and item: how to handle tasks of it when they come again
    first_attempt: int = 0  # attempts of its tasks are counted from here

    def begin_again(self, *, first_attempt: int) -> None:
        """Be as if nothing had come of it, but for the number of its first attempt."""
        self.counts = tuple(StageCounts() for _ in self.counts)
        self.outputs, self.files, self.side_files, self.facts = [], [], [], []
        self.useful_s = {}
        self.starts_over = False
        self.first_attempt = first_attempt


@dataclass(slots=True, eq=False)
class NodeRecord:
    """One machine."""

    id: int
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int
    gpu_free: list[int] = field(default_factory=list)  # units
    cpus_used: float = 0.0

    def __post_init__(self) -> None:
        self.gpu_free = [UNITS] * len(self.gpu_memory_gb)

    def room(self, *, at_least: float = 0.0) -> Room:
        """The machine as if nobody were on it, with so many CPUs at least."""
        cpus = round(max(self.cpus, at_least) * UNITS)
        return Room(self.id, cpus, [UNITS] * len(self.gpu_memory_gb), self.gpu_memory_gb)

    def gpu_workers(self, resources: Resources) -> int:
        """How many such workers its GPUs have room for, if nobody else uses them."""
        if resources.gpus >= 1:
            return len(self.gpu_memory_gb) // int(resources.gpus)
        shares = [share_of_gpu(resources, memory_gb) for memory_gb in self.gpu_memory_gb]
        return sum(UNITS // share for share in shares if share is not None)
