"""The books of a run: what its tasks did, and where its resource-seconds went. Nothing here decides anything.

| share      | seconds of a resource                                                                  |
|------------|----------------------------------------------------------------------------------------|
| useful     | a worker at work on a task that was finished                                           |
| setup      | a worker that starts or, with nothing left to do, ends                                 |
| starved    | a worker without a task to take, or no worker's while no waiting task wants it         |
| blocked    | a worker that may not go on: no memory for the next task, or the next stage is behind  |
| fragmented | no worker's while tasks wait: what is left over where no further worker fits           |
| wasted     | a worker at work on an attempt that came to nothing                                    |
| scheduler  | a worker that has tasks and works on none: a message on its way, a driver that is busy |

They add up to all there is of a resource, from the first machine to the end of the run. Between two events no worker
changes what it does, so an interval is entered when it ends, from counts the crews keep: the cost does not depend on
the number of workers. CPUs may be oversubscribed; then there are as many of them as workers hold.
"""

import operator
from collections.abc import Iterable, Sequence

import msgspec

from gristmill.engine.commands import Commit
from gristmill.engine.events import TaskFinished
from gristmill.engine.policies.packing import UNITS, Room, cpu_units, gpu_amount
from gristmill.engine.policies.rates import GroupBook
from gristmill.engine.state import GroupRecord, NodeRecord, RootRecord, TaskRecord
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.resources import Resources

# What no schedule can beat: the least time a finite job takes.
#
#     LB = max(area bound, slowest stage at its cap, longest item's path)
#
# The area bound counts set-up too: a stage with W seconds of work and a set-up of tau needs at least max(1, W / (T -
# tau)) workers to be done by T, and each occupies its resources for tau before it does anything. With C_d the amount of
# resource d there is and r_id what a worker of stage i takes of it, no T is feasible unless for every d
#
#     sum_i  r_id * (W_i + tau_i * max(1, W_i / (T - tau_i)))  <=  C_d * T
#
# The left side falls with T and the right side rises, so the least feasible T is found by bisection.

ROUNDS = 60  # halvings: more than a float has digits


class Work(msgspec.Struct, frozen=True):
    """What one stage has to do in all. `cap` is the most workers it may have at a time."""

    resources: Resources
    seconds: float
    setup_s: float = 0.0
    cap: int | None = None


def makespan_bound(works: Sequence[Work], rooms: Sequence[Room], longest_path_s: float = 0.0) -> float:
    """Return the least number of seconds the job can take on these machines."""
    present = [work for work in works if work.seconds > 0]
    at_cap = [work.setup_s + work.seconds / work.cap for work in present if work.cap]
    cpus = _area_s([(work, cpu_units(work.resources)) for work in present], sum(room.cpus for room in rooms))
    memory = max((gb for room in rooms for gb in room.gpu_memory_gb), default=0.0)
    on_gpu = [(work, gpu_amount(work.resources, memory)) for work in present]
    gpus = _area_s(on_gpu, sum(sum(room.gpus) for room in rooms))
    return max([cpus, gpus, longest_path_s, *at_cap])


def _area_s(works: Sequence[tuple[Work, int]], capacity: int) -> float:
    """The least T at which the work, set-up included, fits into `capacity` units for T seconds."""
    works = [(work, units) for work, units in works if units]
    if not works or not capacity:
        return 0.0
    low = max(work.setup_s for work, _ in works)
    high = low + sum(units * (work.seconds + work.setup_s) for work, units in works) / min(u for _, u in works)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if _occupied(works, middle) <= capacity * middle:
            high = middle
        else:
            low = middle
    return high


def _occupied(works: Sequence[tuple[Work, int]], total_s: float) -> float:
    """Unit-seconds the work takes if it has to be done by `total_s`."""
    occupied = 0.0
    for work, units in works:
        left = total_s - work.setup_s
        workers = max(1.0, work.seconds / left) if left > 0 else float("inf")
        occupied += units * (work.seconds + (work.setup_s * workers if work.setup_s else 0.0))
    return occupied


SHARES = ("useful", "setup", "starved", "blocked", "fragmented", "wasted", "scheduler")
CPU, GPU = 0, 1
RESOURCES = ("cpu", "gpu")


class Efficiency(msgspec.Struct, frozen=True):
    """How well a run used what it had. `shares` are of the scarcest resource and add up to one."""

    makespan_s: float
    bound_s: float  # no schedule could have been faster
    resource: str
    shares: dict[str, float]

    @property
    def of_bound(self) -> float:
        """The bound over what was reached: 1 is perfect."""
        return self.bound_s / self.makespan_s if self.makespan_s else 1.0

    def to_json(self) -> dict[str, object]:
        """Rounded, for a report."""
        return {
            "makespan_s": round(self.makespan_s, 3),
            "bound_s": round(self.bound_s, 3),
            "of_bound": round(self.of_bound, 4),
            "resource": self.resource,
            "shares": {name: round(share, 4) for name, share in self.shares.items()},
        }


class Account(msgspec.Struct):
    """What all stages did, and the seconds of both resources that no worker held."""

    totals: list[StageCounts]  # by stage, of all tasks that were finished
    started: float | None = None
    longest_path_s: float = 0.0
    free_starved: list[float] = msgspec.field(default_factory=lambda: [0.0, 0.0])  # unit-seconds
    free_fragmented: list[float] = msgspec.field(default_factory=lambda: [0.0, 0.0])
    rooms: list[Room] = msgspec.field(default_factory=list)  # the machines; once all are gone, those there were last
    _units: list[int] = msgspec.field(default_factory=lambda: [0, 0])  # what they have together

    def nodes_changed(self, nodes: Iterable[NodeRecord], now: float) -> None:
        """Machines have joined or are gone."""
        rooms = [node.room() for node in nodes]
        self._units = [sum(room.cpus for room in rooms), sum(sum(room.gpus) for room in rooms)]
        if rooms:
            self.rooms = rooms
            self.started = now if self.started is None else self.started

    def pass_time(self, seconds: float, groups: Sequence[GroupRecord]) -> None:
        """Enter an interval in which nothing changed."""
        held = [0, 0]
        wanted = [False, False]
        for group in groups:
            crew, book = group.crew, group.book
            waiting = bool(group.queue)
            total = len(crew.workers)
            cpus, gpus = book.units
            if waiting:
                wanted[CPU] |= cpus > 0
                wanted[GPU] |= group.plan.resources.requires_gpu
            if not total:
                continue
            idle, starting = crew.num_idle, crew.num_staying - crew.num_ready
            book.setup_s += seconds * starting
            book.ending_s += seconds * (total - starting - idle - crew.num_busy)
            busy = float(crew.num_busy)
            if crew.lanes > 1:  # a worker with some lanes free is busy in part
                busy = crew.lanes_used / crew.lanes
            book.busy_s += seconds * busy
            unused = idle + crew.num_busy - busy
            if waiting:
                book.blocked_s += seconds * unused
            else:
                book.starved_s += seconds * unused
            held[CPU] += total * cpus
            held[GPU] += total * gpus
        for d in (CPU, GPU):
            free = self._units[d] - held[d]
            if free > 0:
                side = self.free_fragmented if wanted[d] else self.free_starved
                side[d] += seconds * free

    def enter_times(
        self, task: TaskRecord, root: RootRecord, group: GroupRecord, event: TaskFinished, made: int
    ) -> None:
        """Add the time a task took to its group's book. One that streamed may have waited for the next group.

        A task that runs beside others takes a share of its worker's time, but all of the time counts for its own path.
        """
        worked_s, lanes = event.useful_s, group.plan.lanes
        if task.received and event.counts:
            worked_s = min(worked_s, sum(counts.process_s for counts in event.counts))
        share_s, held_s = worked_s / lanes, (event.useful_s - worked_s) / lanes
        group.book.finished(share_s, held_s, task.received + len(event.outputs), made)
        root.useful_s[task.group] = root.useful_s.get(task.group, 0.0) + share_s
        task.path_s += worked_s
        self.longest_path_s = max(self.longest_path_s, task.path_s)

    def enter_counts(self, root: RootRecord, group: GroupRecord, event: TaskFinished) -> None:
        """Add what a task did to the books of its root and of the run."""
        first = group.plan.first_stage
        if event.files:
            root.files.extend(event.files)
        if event.side_files:
            root.side_files.extend(event.side_files)
        if event.facts:
            root.facts.extend(event.facts)
        if not event.counts:
            # A task that steers but holds no documents is not worth an entry of its own.
            self.totals[first].process_s += event.useful_s
            group.book.latencies[0].add(event.useful_s)
            return
        if not root.counts:
            root.counts = tuple([StageCounts() for _ in self.totals])
        for offset, counts in enumerate(event.counts):
            root.counts[first + offset].add(counts)
            self.totals[first + offset].add(counts)
            group.book.latencies[offset].add(counts.process_s)

    def efficiency(self, groups: Sequence[GroupRecord], now: float) -> Efficiency:
        """The efficiency up to this moment; running tasks count as useful so far."""
        books = [group.book for group in groups]
        # Looks at every call: done for a snapshot, not at every step.
        running = [sum(group.running_s(now)) for group in groups]
        by_resource = [self._shares(d, books, running) for d in (CPU, GPU)]
        scarce = max((CPU, GPU), key=lambda d: by_resource[d]["useful"])
        works = [
            Work(g.plan.resources, g.book.useful_s + s, g.book.least_setup_s, g.plan.num_workers)
            for g, s in zip(groups, running, strict=True)
        ]
        first_setup_s = books[0].least_setup_s if books else 0.0
        bound_s = makespan_bound(works, self.rooms, self.longest_path_s + first_setup_s)
        makespan_s = now - (now if self.started is None else self.started)
        return Efficiency(makespan_s, bound_s, RESOURCES[scarce], by_resource[scarce])

    def resource_seconds(self, groups: Sequence[GroupRecord], now: float) -> dict[str, dict[str, float]]:
        """Seconds of each resource that is present, by share; a resource's shares add up to all there was of it."""
        books = [group.book for group in groups]
        running = [sum(group.running_s(now)) for group in groups]
        found = {name: self._unit_seconds(d, books, running) for d, name in enumerate(RESOURCES)}
        return {
            name: {share: units / UNITS for share, units in seconds.items()}
            for name, seconds in found.items()
            if any(seconds.values())
        }

    def _shares(self, d: int, books: Sequence[GroupBook], running: Sequence[float]) -> dict[str, float]:
        seconds = self._unit_seconds(d, books, running)
        total = sum(seconds.values())
        return {name: value / total if total else 0.0 for name, value in seconds.items()}

    def _unit_seconds(self, d: int, books: Sequence[GroupBook], running: Sequence[float]) -> dict[str, float]:
        seconds = dict.fromkeys(SHARES, 0.0)
        for book, running_s in zip(books, running, strict=True):
            units = book.units[d]
            for name, value in book.split(running_s).items():
                seconds[name] += units * value
        seconds["starved"] += self.free_starved[d]
        seconds["fragmented"] += self.free_fragmented[d]
        return seconds


_item_id, _final_name = operator.attrgetter("item_id"), operator.attrgetter("final")


def commit_of(root: RootRecord) -> Commit:
    """Close the books of a partition. Sorted, so that they say the same whichever of its tasks was done first."""
    if len(root.outputs) > 1:
        root.outputs.sort(key=_item_id)
    if root.files:
        root.files.sort(key=_final_name)
    if root.side_files:
        root.side_files.sort(key=_final_name)
    if root.facts:
        root.facts.sort()
    outputs, files, side_files = tuple(root.outputs), tuple(root.files), tuple(root.side_files)
    return Commit(root.id, root.name, outputs, root.counts, side_files, tuple(root.facts), files)
