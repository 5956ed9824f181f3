"""`BaseExecutor`: where a plan runs."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gristmill.backends.run_result import RunResult
from gristmill.engine.plan import Plan
from gristmill.engine.policies.quarantine_limit import DEFAULT_LIMIT, QuarantineLimit
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.storage.file_system import absolute, is_url

__all__ = ["BaseExecutor", "NodeInfo", "RunOptions", "WorkerMetadata"]

WATCHDOG_S = 60.0
Observer = Callable[[RunSnapshot], None]


@dataclass(frozen=True)
class RunOptions:
    """What belongs to one run rather than to the executor."""

    checkpoint_path: Path | str | None = None  # a string only where it is a URL
    rejects_path: str | None = None
    limit: QuarantineLimit = DEFAULT_LIMIT  # of documents that may fail
    fresh: bool = False
    retry_quarantined: bool = False  # do again what could not be done, though it is committed
    observer: Observer | None = None
    shared: bool = False  # whether others may read the run directory, as far as the umask lets them
    segment_of: Path | None = None  # the directory of the whole run, where this is one segment of it

    def __post_init__(self) -> None:
        # A stage may change the working directory, and the next call may come from another one.
        if self.rejects_path is not None:
            object.__setattr__(self, "rejects_path", absolute(self.rejects_path))
        if self.checkpoint_path is not None:
            object.__setattr__(self, "checkpoint_path", _absolute_path(self.checkpoint_path))


def _absolute_path(path: Path | str) -> Path | str:
    full = absolute(str(path))
    return full if is_url(full) else Path(full)


class BaseExecutor:
    """Runs plans. One executor may run several, one after another.

    `show_progress` and `progress_interval` are for those who watch: whether progress is shown, and after how many
    seconds another line follows where there is no terminal.
    """

    show_progress: bool = True
    progress_interval: float = 30.0

    watchdog_s: float = WATCHDOG_S  # how long somebody may be at one thing before it is named

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of all options it takes."""
        return tuple(inspect.signature(cls).parameters)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make one from named options; one it does not have is a ConfigError that says which executor has it."""
        from gristmill.backends.options import check_options

        check_options(cls, options)
        return cls(**options)

    def check(self, plan: Plan) -> None:
        """Raise ConfigError if the plan can never run here (more GPUs than there are, ...)."""

    @contextlib.contextmanager
    def kept_ready(self, imports: Sequence[str] = ()) -> Iterator["BaseExecutor"]:
        """Yield an executor for several runs in a row, which may keep between them what takes time to start.

        `imports` are modules all of them will need: it may import them ahead, while the caller does.
        """
        yield self

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        """Run a plan to its end."""
        raise NotImplementedError(f"{type(self).__name__}: an executor must define execute")
