"""What a simulated cluster has and what became of it: every second of every resource.

This is the world's own account, kept apart from the scheduler's, so that one can be checked against the other. Where
the time went that was spent on no task is for the scheduler to say.
"""

from collections import Counter

from gristmill.backends.simulated.parts import Worker
from gristmill.backends.simulated.result import SimulationResult
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, as_bytes
from gristmill.engine.account import Efficiency, Work, makespan_bound
from gristmill.engine.events import NodeJoined
from gristmill.engine.policies.packing import UNITS, Room, cpu_units, gpu_amount

SPENT = ("useful", "setup", "wasted", "killed")


class Accounts:
    """The books of one simulated run."""

    def __init__(self, spec: SimulationSpec) -> None:
        self.spec = spec
        self.nodes: dict[int, NodeSpec] = {}
        self._joined = 0
        self._alive = [0] * len(spec.stages)
        self._peak_workers = [0] * len(spec.stages)
        self._starts: list[tuple[float, str]] = []
        self._work_s = [0.0] * len(spec.stages)
        self._work_on: dict[int, dict[int, float]] = {}  # an item that is not committed: by stage
        self._started_over = 0
        self._longest_s = 0.0
        self._spent = {resource: dict.fromkeys(SPENT, 0.0) for resource in ("cpu", "gpu")}

    # Nodes

    def add_node(self, kind: NodeSpec) -> NodeJoined:
        """A machine joins."""
        number = self._joined
        self._joined += 1
        self.nodes[number] = kind
        return NodeJoined(number, kind.cpus, (kind.gpu_memory_gb,) * kind.gpus, as_bytes(kind.memory))

    def lose_node(self, number: int) -> None:
        """A machine is gone."""
        del self.nodes[number]

    # Seconds

    def started(self, worker: Worker) -> None:
        """A worker begins its set-up."""
        self._alive[worker.group] += 1
        self._peak_workers[worker.group] = max(self._peak_workers[worker.group], self._alive[worker.group])
        self._starts.append((worker.started_at, self.spec.stages[worker.group].name))

    def ended(self, worker: Worker, now: float) -> None:
        """A worker is gone: enter what it did."""
        self._alive[worker.group] -= 1
        ready = min(worker.ready_at, now)
        seconds = {
            "setup": ready - worker.started_at,
            "useful": worker.busy_s - worker.wasted_s,
            "wasted": worker.wasted_s,
            "killed": worker.killed_s,
        }
        self._spend(worker.group, seconds)

    def _spend(self, group: int, seconds: dict[str, float]) -> None:
        resources = self.spec.stages[group].resources
        memory = max((kind.gpu_memory_gb for kind in self.spec.nodes), default=0.0)
        amounts = {"cpu": cpu_units(resources), "gpu": gpu_amount(resources, memory)}
        for resource, spent in self._spent.items():
            for name, value in seconds.items():
                spent[name] += value * amounts[resource] / UNITS

    def worked(self, item: int, group: int, work_s: float, path_s: float) -> None:
        """Something made of a source item has passed a stage."""
        done = self._work_on.setdefault(item, {})
        done[group] = done.get(group, 0.0) + work_s
        self._longest_s = max(self._longest_s, path_s)

    def committed(self, item: int) -> None:
        """A source item is done for good."""
        for group, work_s in self._work_on.pop(item, {}).items():
            self._work_s[group] += work_s

    def lost(self, item: int) -> None:
        """What was done for a source item is lost with a machine and is done again."""
        self._started_over += 1
        for group, work_s in self._work_on.pop(item, {}).items():
            self._spend(group, {"useful": -work_s, "wasted": work_s, "killed": work_s})

    # The end

    def result(
        self,
        now: float,
        shares: Efficiency,
        *,
        events: int,
        attempts: int,
        quarantined: int,
        peak_bytes: tuple[int, ...],
        digest: str,
    ) -> SimulationResult:
        """Everything that was counted, here and elsewhere."""
        names = [stage.name for stage in self.spec.stages]
        started = Counter(stage for _, stage in self._starts)
        spent = self._spent[shares.resource]
        return SimulationResult(
            makespan_s=now,
            bound_s=self._bound_s(),
            items=self.spec.items,
            events=events,
            resource=shares.resource,
            shares=shares.shares,
            workers_started={name: started[name] for name in names},
            peak_workers=dict(zip(names, self._peak_workers, strict=True)),
            useful_s=spent["useful"],
            setup_s=spent["setup"],
            wasted_s=spent["wasted"],
            killed_s=spent["killed"],
            attempts=attempts,
            quarantined=quarantined,
            started_over=self._started_over,
            peak_bytes=peak_bytes,
            digest=digest,
            starts=tuple(self._starts),
        )

    def _bound_s(self) -> float:
        stages = self.spec.stages
        works = [
            Work(stage.resources, seconds, stage.setup_s, stage.num_workers)
            for stage, seconds in zip(stages, self._work_s, strict=True)
        ]
        return makespan_bound(works, rooms_of(self.spec), self._longest_s + stages[0].setup_s)


def rooms_of(spec: SimulationSpec) -> list[Room]:
    """The machines of a spec, as the planner sees them."""
    kinds = [kind for kind in spec.nodes for _ in range(kind.count)]
    return [Room(i, round(k.cpus * UNITS), [UNITS] * k.gpus, (k.gpu_memory_gb,) * k.gpus) for i, k in enumerate(kinds)]
