"""`BaseExecutor`: where a plan runs."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from gristmill.engine.plan import Plan
from gristmill.runs.books import RunResult
from gristmill.runs.user import RunOptions
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata

__all__ = ["BaseExecutor", "NodeInfo", "RunOptions", "WorkerMetadata"]

WATCHDOG_S = 40.0


class BaseExecutor:
    """Runs plans. One executor may run several, one after another.

    `show_progress` and `progress_interval` are for people watching: whether progress is shown, and after how many
    seconds another line follows where there is no terminal.
    """

    show_progress: bool = True
    progress_interval: float = 30.0

    watchdog_s: float = WATCHDOG_S  # how long anything may take before it is named in a message

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "execute" in cls.__dict__:
            cls.execute = _takes_stages(cls.execute)  # type: ignore[method-assign]

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of all options it takes."""
        return tuple(inspect.signature(cls).parameters)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make an executor from named options; an unknown one is a ConfigError that says which executor has it."""
        from gristmill.backends.options import check_options

        check_options(cls, options)
        return cls(**options)

    def check(self, plan: Plan) -> None:
        """Raise ConfigError if the plan can never run here (more GPUs than there are, ...)."""

    def has_gpu(self) -> bool:
        """Whether there is a GPU where plans run. Stages that can do without one are told so while a plan is made."""
        return False

    @contextlib.contextmanager
    def kept_ready(self, imports: Sequence[str] = ()) -> Iterator["BaseExecutor"]:
        """Yield an executor for several runs in a row, which may keep between them what takes time to start.

        `imports` are modules all of them will need: it may import them ahead, while the caller does.
        """
        yield self

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        """Run a plan to its end."""
        raise NotImplementedError(f"{type(self).__name__}: an executor must define execute")


Execute = Callable[[Any, Plan, RunOptions], RunResult]


def _takes_stages(own: Execute) -> Callable[..., RunResult]:
    """`execute` of an executor, which scripts may also call with a list of stages and their initial tasks."""

    @functools.wraps(own)
    def execute(executor: BaseExecutor, *given: Any, **named: Any) -> RunResult:
        if named.keys() & {"stages", "initial_tasks"} or (given and isinstance(given[0], list | tuple)):
            from gristmill.backends.stage_lists import run_stages

            return run_stages(executor, *given, **named)
        return own(executor, *given, **named)

    return execute
