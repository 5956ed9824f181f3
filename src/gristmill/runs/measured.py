"""What a run measured of its machines and stages: `measured.json` in its directory, for `gristmill simulate`.

Times are of the session that ended the run; what an earlier session committed is not in them. No decision is made from
this file: the scheduler measures anew in every run.
"""

from dataclasses import dataclass

from gristmill.engine.events import NodeJoined
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.state import GroupRecord


@dataclass(frozen=True)
class MeasuredGroup:
    """One group of stages: what a worker of it occupies, and what a task of it was like on average."""

    name: str
    cpus: float
    gpus: float
    gpu_memory_gb: float
    batch_size: int
    num_workers: int | None  # fixed by the user
    tasks: int
    service_s: float
    sigma: float  # of the log-normal distribution that varies as much
    setup_s: float  # from the command to start a worker until it is ready
    dispatch_s: float  # that a worker with tasks worked on none, for every task
    fan_out: float
    output_bytes: float  # of one output
    lanes: int = 1  # tasks a worker had under way at once, each for `service_s`


@dataclass(frozen=True)
class MeasuredRun:
    """A whole run."""

    name: str
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int
    rescale_interval_s: float
    source_bytes: float  # of one source partition
    groups: tuple[MeasuredGroup, ...]
    makespan_s: float
    bound_s: float
    resource: str
    shares: dict[str, float]


def measure(name: str, scheduler: Scheduler, node: NodeJoined, *, source_bytes: float) -> MeasuredRun:
    """Take down what the scheduler knows at the end of a run on one machine."""
    efficiency = scheduler.account.efficiency(scheduler.groups, scheduler.now)
    return MeasuredRun(
        name=name,
        cpus=node.cpus,
        gpu_memory_gb=node.gpu_memory_gb,
        memory_bytes=node.memory_bytes,
        rescale_interval_s=scheduler.config.rescale_interval_s,
        source_bytes=source_bytes,
        groups=tuple(_group(group) for group in scheduler.groups),
        makespan_s=efficiency.makespan_s,
        bound_s=efficiency.bound_s,
        resource=efficiency.resource,
        shares=efficiency.shares,
    )


def _group(group: GroupRecord) -> MeasuredGroup:
    book, plan = group.book, group.plan
    tasks = max(1, book.tasks)
    return MeasuredGroup(
        name=plan.name,
        cpus=plan.resources.cpus,
        gpus=plan.resources.gpus,
        gpu_memory_gb=plan.resources.gpu_memory_gb,
        batch_size=plan.batch_size,
        num_workers=plan.num_workers,
        tasks=book.tasks,
        service_s=book.useful_s * plan.lanes / tasks,
        sigma=book.sigma(),
        setup_s=book.setup_s / max(1, book.starts),
        dispatch_s=book.split()["scheduler"] / tasks,
        fan_out=book.outputs / tasks,
        output_bytes=book.output_bytes / max(1, book.outputs),
        lanes=plan.lanes,
    )
