"""The options of `XennaExecutor`, under the names users know, and what they are called inside Cosmos-Xenna."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gristmill.backends.base import WATCHDOG_S
from gristmill.engine.plan import Group
from gristmill.errors import ConfigError, nearest

# What a stage may ask for in `with_(xenna_stage_spec=...)`: fields of Xenna's own StageSpec that we leave to the user.
STAGE_OPTIONS = (
    "num_workers_per_node",
    "num_setup_attempts_python",
    "slots_per_actor",
    "worker_max_lifetime_m",
    "worker_restart_interval_m",
    "max_setup_failure_percentage",
    "over_provision_factor",
)
ENGINE_LOGS_S = 60.0  # between what Xenna itself logs
# Users know these from elsewhere. Here no stage's exception ever reaches Xenna, so these have nothing to do.
NEEDLESS = ("num_run_attempts_python", "ignore_failures", "reset_workers_on_failure")


@dataclass(frozen=True)
class XennaConfig:
    """What can be set for a whole run."""

    execution_mode: Literal["streaming", "batch"] = "streaming"
    cpu_allocation_percentage: float = 0.95
    autoscale_interval_s: float = 180.0
    logging_interval: float | None = None
    ignore_failures: bool = False  # do not stop at `max_quarantined`
    slots_per_actor: int = 2
    worker_max_lifetime_m: int = 0
    worker_restart_interval_m: int = 1
    watchdog_s: float = WATCHDOG_S

    def __post_init__(self) -> None:
        if not 0 < self.cpu_allocation_percentage <= 1:
            got = self.cpu_allocation_percentage
            raise ConfigError(f"XennaExecutor: expected cpu_allocation_percentage in (0, 1]; got {got!r}")
        for name in ("autoscale_interval_s", "logging_interval", "slots_per_actor", "watchdog_s"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"XennaExecutor: expected {name} > 0; got {getattr(self, name)!r}")
        for name in ("worker_max_lifetime_m", "worker_restart_interval_m"):
            if getattr(self, name) < 0:
                raise ConfigError(f"XennaExecutor: expected {name} ≥ 0; got {getattr(self, name)!r}")

    def pipeline_fields(self) -> dict[str, object]:
        """As fields of Xenna's PipelineConfig."""
        return {
            "cpu_allocation_percentage": self.cpu_allocation_percentage,
            "logging_interval_s": self.logging_interval or ENGINE_LOGS_S,
            "slots_per_actor": self.slots_per_actor,
            "worker_max_lifetime_m": self.worker_max_lifetime_m,
            "worker_restart_interval_m": self.worker_restart_interval_m,
        }


def stage_spec(group: Group) -> dict[str, object]:
    """What the stages of a group ask Xenna for. They run in one process, so they have to agree."""
    asked: dict[str, object] = {}
    for stage, name in zip(group.stages, group.names, strict=True):
        for key, value in stage.xenna_stage_spec().items():
            _check_key(name, key)
            if key in NEEDLESS:
                continue
            if asked.setdefault(key, value) != value:
                raise ConfigError(
                    f"{name}: expected the same {key} as its fused neighbours, {asked[key]!r}; got {value!r}. "
                    "A stage with fusible = False has workers of its own"
                )
    if "num_workers_per_node" in asked and group.num_workers is not None:
        raise ConfigError(f"{group.name}: expected num_workers or num_workers_per_node; got both")
    return asked


def _check_key(stage: str, key: str) -> None:
    known = (*STAGE_OPTIONS, *NEEDLESS)
    if key not in known:
        raise ConfigError(
            f"{stage}: expected xenna_stage_spec to hold some of {', '.join(known)}; got {key!r}{nearest(key, known)}"
        )


def enough_workers(config: XennaConfig, group: Group, num_tasks: int, node_cpus: Sequence[float]) -> int | None:
    """A worker for each task, if that is fewer than Xenna would start; else None, which leaves it to Xenna.

    Starting one takes two seconds of a core, and Xenna starts as many as there are cores for.
    """
    need = group.resources
    if need.gpus or not need.cpus:
        return None
    room = sum(int(cpus * config.cpu_allocation_percentage / need.cpus) for cpus in node_cpus)
    return num_tasks if num_tasks < room else None


def check_size(
    config: XennaConfig, groups: Sequence[Group], specs: Sequence[Mapping[str, object]], cpus: float
) -> None:
    """Raise ConfigError if Xenna could never start one worker for each of its stages."""
    wanted = [group.resources.cpus * (group.num_workers or 1) for group in groups]
    per_node = any("num_workers_per_node" in spec for spec in specs)
    have = cpus * config.cpu_allocation_percentage
    batch = config.execution_mode == "batch"
    need = max(wanted) if batch else sum(wanted)
    if need <= have or per_node:  # how many nodes there are is Xenna's to count
        return
    names = ", ".join(group.name for group in groups)
    way_out = "LocalExecutor runs any number of stages on one core"
    if not batch and max(wanted) <= have:
        way_out += '; so does execution_mode "batch", one stage after another'
    raise ConfigError(
        f"XennaExecutor: expected {need:g} CPUs, for one worker of each of its stages ({names}); "
        f"got {have:g} ({config.cpu_allocation_percentage:.0%} of {cpus:g}). {way_out}"
    )
