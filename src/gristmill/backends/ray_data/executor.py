"""`RayDataExecutor`: a plan as a dataset of Ray Data, which schedules it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gristmill.backends.delegated.config import check_gpus, option_names, read_config
from gristmill.backends.delegated.executor import DelegatedExecutor
from gristmill.backends.ray_data.config import RayDataConfig
from gristmill.engine.plan import Plan
from gristmill.errors import require
from gristmill.runs.books import RunResult
from gristmill.runs.user import RunOptions

if TYPE_CHECKING:  # what runs a plan is imported when one runs
    from gristmill.runs.run import Ending, Segment


@dataclass(frozen=True)
class RayDataExecutor(DelegatedExecutor):
    """Hands the groups of a plan to Ray Data as its operators. Needs `gristmill[ray]`.

    `config` may hold

    `cpus`                  cores of the cluster this run may use; all if not given
    `object_store_memory`   bytes, or "4GB", that tasks between groups may hold in Ray's object store
    `logging_interval`      seconds between lines of metrics.jsonl: 1, later 1/600 of the run
    `ignore_failures`       do not stop at `max_quarantined`
    `watchdog_s`            seconds anything may take before it is named: 60

    `ignore_head_node` leaves the head to the driver. Groups with a set-up, a GPU or a fixed number of workers become
    actors, the others tasks. A GPU is asked for by `Resources(gpus=...)`; Ray knows no GPU memory.
    """

    config: Mapping[str, object] | None = None
    ignore_head_node: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "watchdog_s", self.settings().watchdog_s)  # frozen for everyone else

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return option_names(RayDataConfig, "ignore_head_node")

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        config = dict(options)
        ignore_head_node = bool(config.pop("ignore_head_node", False))
        return cls(config=config, ignore_head_node=ignore_head_node)

    def settings(self) -> RayDataConfig:
        """What `config` says, with defaults for what it does not say."""
        return read_config(type(self), RayDataConfig, self.config)

    def check(self, plan: Plan) -> None:
        check_gpus("Ray Data", plan.groups)

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        from gristmill.backends.delegated.drive import execute

        return execute(plan, options, self._drive, settings=self.settings())

    def _drive(self, run: "Segment") -> "Ending":
        from gristmill.backends.delegated.drive import drive
        from gristmill.backends.delegated.ray_cluster import connect
        from gristmill.backends.ray_data.engine import RayDataEngine
        from gristmill.backends.ray_data.operators import shapes

        require("pandas", extra="ray")  # Ray Data does not start without it
        config = self.settings()
        cluster = connect("RayDataExecutor", ignore_head_node=self.ignore_head_node)
        asked = shapes(run.plan, cpus=min(config.cpus or cluster.cpus, cluster.cpus), gpus=cluster.gpus)
        avoid = cluster.head_id if self.ignore_head_node else None
        engine = RayDataEngine(run.plan, run.settings, asked, config, avoid)
        return drive(run, engine, self.office(), config)
