"""One run on a Ray cluster: what concerns the cluster, and nothing else."""

from types import ModuleType
from typing import TYPE_CHECKING

from gristmill.backends.ray_actor_pool.kept_actors import KeptActors
from gristmill.backends.ray_actor_pool.machines import Machines
from gristmill.backends.ray_actor_pool.pool import RayPool
from gristmill.backends.scheduled.driver import Shell, drive, node_work
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.runs.books import RunResult
from gristmill.runs.run import Ending, Run, Segment
from gristmill.runs.user import RunOptions
from gristmill.storage.sizes import parse_size

if TYPE_CHECKING:  # the executor imports this file when it runs something
    from gristmill.backends.ray_actor_pool.executor import RayActorPoolExecutor

# Objects of up to 100 kB are in the driver's own memory, wherever they were made: this bounds them to 50 MB a group.
MAX_QUEUED = 512


class RayRun:
    """One execution of one plan."""

    def __init__(self, executor: "RayActorPoolExecutor", ray: ModuleType, plan: Plan, options: RunOptions) -> None:
        self.config = executor.config
        self.run = Run(plan, options, ignore_failures=self.config.ignore_failures, durable=True)
        given = self.config.memory_limit
        limit = None if given is None else parse_size(given, who="RayActorPoolExecutor: memory_limit")
        self.run.memory_limit = limit or 0  # of one node, which is what a document has to fit in
        self.kept = executor.kept or KeptActors(keeps_workers=False)
        self.is_last = executor.kept is None
        self.ray = ray
        self.ignore_head_node = executor.ignore_head_node
        self.limit = limit
        self.pool: RayPool | None = None

    def execute(self) -> RunResult:
        """Run to the end, or stop cleanly on Ctrl-C and SIGTERM."""
        return self.run.execute(self._drive)

    def _drive(self, segment: Segment) -> Ending:
        around = Machines(
            self.ray,
            self.kept,
            node_work(segment.plan.groups),
            ignore_head_node=self.ignore_head_node,
            memory_limit=self.limit,
            gpu_gb=self.config.gpu_memory_gb,
        )
        self.pool = RayPool(segment.plan.groups, segment.settings, around)
        self.pool.open()
        machines = list(around.used.values())
        lifetime = self.config.worker_max_lifetime_m
        config = SchedulerConfig(
            num_sources=len(segment.plan.sources) - len(segment.books.records),
            barrier=self.config.execution_mode == "batch",
            rescale_interval_s=self.config.autoscale_interval_s,
            worker_max_lifetime_s=None if lifetime is None else lifetime * 60,
            worker_restart_interval_s=self.config.worker_restart_interval_m * 60,
            worker_max_tasks=self.config.worker_max_tasks,
            max_queued=MAX_QUEUED,
            watchdog_s=self.config.watchdog_s,
        )
        shell = Shell(
            pool=self.pool,
            nodes=[machine.joined() for machine in machines],
            config=config,
            memory_limit=sum(machine.memory_bytes for machine in machines),
            logging_interval=self.config.logging_interval,
            event_log=self.config.event_log,
            profiles=None,  # they are of this machine, and the workers are not
            notes_signals=True,
        )
        return drive(segment, shell)

    def close(self) -> None:
        """Leave no actor and no temporary file behind, except what is kept for the next run."""
        if self.pool is not None:
            self.pool.close()
        if self.is_last:
            self.kept.close()
        self.run.close()
