"""`XennaExecutor`: a plan as a pipeline of Cosmos-Xenna, which schedules it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gristmill.backends.delegated.config import check_gpus, option_names, read_config
from gristmill.backends.delegated.executor import DelegatedExecutor
from gristmill.backends.xenna.config import XennaConfig, check_size, stage_spec
from gristmill.engine.plan import Plan
from gristmill.errors import ConfigError
from gristmill.runs.books import RunResult
from gristmill.runs.user import RunOptions

if TYPE_CHECKING:  # what runs a plan is imported when one runs
    from gristmill.runs.run import Ending, Segment


@dataclass(frozen=True)
class XennaExecutor(DelegatedExecutor):
    """Hands the groups of a plan to Cosmos-Xenna as its stages. Needs `gristmill[xenna]` and a Ray with its dashboard.

    `config` may hold

    `execution_mode`             "streaming", or "batch": one stage after another
    `cpu_allocation_percentage`  of the cores of each machine, as a share: 0.95
    `autoscale_interval_s`       seconds between decisions on how many workers each stage has: 180
    `logging_interval`           seconds between lines of metrics.jsonl: 1, later 1/600 of the run
    `ignore_failures`            do not stop at `max_quarantined`
    `slots_per_actor`            tasks sent ahead to each worker: 2
    `worker_max_lifetime_m`, `worker_restart_interval_m`   replace workers older than this, at this interval; 0 is never
    `watchdog_s`                 seconds anything may take before it is named: 60

    A stage has options of its own through `with_(xenna_stage_spec={"num_workers_per_node": 1, ...})`. Xenna holds one
    worker for each stage from beginning to end, so a machine with fewer cores than fused groups is refused at once.
    """

    config: Mapping[str, object] | None = None
    ignore_head_node: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "watchdog_s", self.settings().watchdog_s)  # frozen for everyone else
        if self.ignore_head_node:
            raise ConfigError(
                "XennaExecutor: expected ignore_head_node=False; Cosmos-Xenna uses every machine with cores. Start the "
                "head with none (ray start --head --num-cpus=0), or use RayDataExecutor"
            )

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return option_names(XennaConfig)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        return cls(config=options)

    def settings(self) -> XennaConfig:
        """What `config` says, with defaults for what it does not say."""
        return read_config(type(self), XennaConfig, self.config)

    def check(self, plan: Plan) -> None:
        specs = [stage_spec(group) for group in plan.groups]
        check_gpus("Cosmos-Xenna", plan.groups)
        ray = sys.modules.get("ray")
        if not os.environ.get("RAY_ADDRESS") and not (ray and ray.is_initialized()):
            # A cluster would be started here. The size of an existing one is known only once it is reached.
            cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            check_size(self.settings(), plan.groups, specs, cpus)

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        from gristmill.backends.delegated.drive import execute

        return execute(plan, options, self._drive, settings=self.settings())

    def _drive(self, run: "Segment") -> "Ending":
        from gristmill.backends.delegated.drive import drive
        from gristmill.backends.delegated.ray_cluster import connect
        from gristmill.backends.xenna.engine import XennaEngine, check_dashboard, import_xenna

        import_xenna()
        cluster = connect("XennaExecutor", dashboard=True)
        check_dashboard(cluster.address)
        config, groups = self.settings(), run.plan.groups
        specs = [stage_spec(group) for group in groups]
        check_size(config, groups, specs, cluster.cpus)
        engine = XennaEngine(run.plan, run.settings, config, specs, cluster)
        return drive(run, engine, self.office(), config)
