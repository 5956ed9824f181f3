"""`BaseExecutor`: where a plan runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gristmill.backends.run_result import RunResult
from gristmill.engine.plan import Plan
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata

__all__ = ["BaseExecutor", "NodeInfo", "RunOptions", "WorkerMetadata"]

Observer = Callable[[RunSnapshot], None]


@dataclass(frozen=True)
class RunOptions:
    """What belongs to one run rather than to the executor."""

    checkpoint_path: Path | None = None
    rejects_path: str | None = None
    max_quarantined: int | float | None = None
    fresh: bool = False
    observer: Observer | None = None


class BaseExecutor:
    """Runs plans. One executor may run several, one after another."""

    def check(self, plan: Plan) -> None:
        """Raise ConfigError if the plan can never run here (more GPUs than there are, ...)."""

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        """Run a plan to its end."""
        raise NotImplementedError(f"{type(self).__name__}: an executor must define execute")
