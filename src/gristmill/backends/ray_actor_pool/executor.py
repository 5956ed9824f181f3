"""`RayActorPoolExecutor`: a Ray cluster under gristmill's own scheduler."""

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, Self

from gristmill.backends.base import WATCHDOG_S, BaseExecutor
from gristmill.backends.options import check_options
from gristmill.backends.ray_connection import cluster_has_gpu, connect
from gristmill.engine.plan import Plan
from gristmill.errors import ConfigError
from gristmill.runs.books import RunResult
from gristmill.runs.user import RunOptions, watched
from gristmill.storage.sizes import parse_size

if TYPE_CHECKING:
    from gristmill.backends.ray_actor_pool.kept_actors import KeptActors


@dataclass(frozen=True, kw_only=True)
class RayActorPoolConfig:
    """What `config` may hold.

    `memory_limit`   bytes, or "4GB", for data on each node; 80 % of its object store if not given
    `gpu_memory_gb`  memory of a GPU, for stages that ask for a part of one in GB: Ray does not know this
    `execution_mode`, `autoscale_interval_s`, `logging_interval`, `ignore_failures`, `worker_max_lifetime_m`,
    `worker_restart_interval_m`, `worker_max_tasks`, `event_log`, `watchdog_s`   as for LocalExecutor
    """

    memory_limit: int | str | None = None
    gpu_memory_gb: float = 80.0
    execution_mode: Literal["streaming", "batch"] = "streaming"
    autoscale_interval_s: float = 1.0
    logging_interval: float | None = None
    ignore_failures: bool = False
    worker_max_lifetime_m: float | None = None
    worker_restart_interval_m: float = 1.0
    worker_max_tasks: int | None = None
    event_log: bool = True
    watchdog_s: float = WATCHDOG_S

    def __post_init__(self) -> None:
        who = "RayActorPoolExecutor"
        if self.execution_mode not in ("streaming", "batch"):
            raise ConfigError(f'{who}: expected execution_mode "streaming" or "batch"; got {self.execution_mode!r}')
        if self.memory_limit is not None:
            parse_size(self.memory_limit, who=f"{who}: memory_limit")
        for name in ("gpu_memory_gb", "worker_max_lifetime_m", "worker_max_tasks", "watchdog_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{who}: expected {name} > 0; got {value!r}")


class RayActorPoolExecutor(BaseExecutor):
    """Runs a plan in actors of a Ray cluster: the one of this program, or that of RAY_ADDRESS, or a new one here.

    `config`             options by name, see RayActorPoolConfig
    `ignore_head_node`   start no worker on the head node
    `show_progress`, `progress_interval`   whether progress is shown; seconds between lines where there is no terminal
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        ignore_head_node: bool = False,  # noqa: FBT001, FBT002  # a signature users know
        show_progress: bool = True,  # noqa: FBT001, FBT002
        progress_interval: float = 10.0,
    ) -> None:
        check_options(type(self), config or {})
        self.config = RayActorPoolConfig(**(config or {}))  # type: ignore[arg-type]  # names are checked
        self.watchdog_s = self.config.watchdog_s
        self.ignore_head_node = ignore_head_node
        self.show_progress = show_progress
        self.progress_interval = progress_interval
        self._kept: KeptActors | None = None

    @classmethod
    def options(cls) -> tuple[str, ...]:
        own = ("ignore_head_node", "show_progress", "progress_interval")
        return (*own, *(field.name for field in fields(RayActorPoolConfig)))

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        check_options(cls, options)
        known = {field.name for field in fields(RayActorPoolConfig)}
        config = {name: value for name, value in options.items() if name in known}
        own = {name: value for name, value in options.items() if name not in known}
        return cls(config, **own)  # type: ignore[arg-type]

    def check(self, plan: Plan) -> None:
        wanted = [group for group in plan.groups if group.resources.requires_gpu]
        if not wanted:
            return
        nodes = [node["Resources"] for node in connect(type(self).__name__).nodes() if node["Alive"]]
        most = max((resources.get("GPU", 0.0) for resources in nodes), default=0.0)
        for group in wanted:
            if group.resources.gpus > most or not most:
                raise ConfigError(
                    f"{group.name}: expected {group.resources.gpus or 'a part of 1'} GPUs for a worker; "
                    f"got at most {most:g} on a node of the cluster"
                )
            if group.resources.gpu_memory_gb > self.config.gpu_memory_gb:
                raise ConfigError(
                    f"{group.name}: expected {group.resources.gpu_memory_gb:g} GB of GPU memory for a worker; got GPUs "
                    f"with {self.config.gpu_memory_gb:g} GB. config={{'gpu_memory_gb': ...}} says how large they are"
                )

    def has_gpu(self) -> bool:
        return cluster_has_gpu(type(self).__name__)

    @property
    def kept(self) -> "KeptActors | None":
        """The actors that several runs share, inside `kept_ready`."""
        return self._kept

    @contextlib.contextmanager
    def kept_ready(self, imports: Sequence[str] = ()) -> Iterator[BaseExecutor]:
        """Yield an executor whose runs hand their actors on to the next: starting one takes a second of a core.

        A process then sees the stages of several runs. Workers that are to be replaced after a while, because of
        `worker_max_lifetime_m` or `worker_max_tasks`, are not kept.
        """
        del imports  # actors start when there is something for them to do
        if self._kept is not None:
            yield self
            return
        from gristmill.backends.ray_actor_pool.kept_actors import KeptActors

        recycles = self.config.worker_max_lifetime_m is not None or self.config.worker_max_tasks is not None
        ready = copy.copy(self)
        ready._kept = KeptActors(keeps_workers=not recycles)
        try:
            yield ready
        finally:
            ready._kept.close()

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        ray = connect(type(self).__name__)
        # Imported when a run starts: the rest of the package knows executors without loading what they run on.
        from gristmill.backends.ray_actor_pool.run import RayRun

        with watched(f"the run of {plan.name!r} has been held up for", self.watchdog_s):
            run = RayRun(self, ray, plan, options)
            try:
                return run.execute()
            finally:
                run.close()
