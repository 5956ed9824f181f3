"""`TaskPerfUtils`: the times and numbers that tasks carry from the stages they went through, as users know it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from gristmill.tasks.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TaskPerfUtils"]


class _OfAWorkflow(Protocol):
    pipeline_tasks: Mapping[str, Iterable[Task[Any]]]


Tasks = Iterable[Task[Any]] | Mapping[str, Iterable[Task[Any]]] | _OfAWorkflow | None


class TaskPerfUtils:
    """Gathers what stages noted on tasks: the final tasks of a run, a mapping of such lists, or a workflow's result.

    A run's own metrics are complete (`RunResult.stage_metrics`): a task that was dropped carries nothing any more.
    """

    @staticmethod
    def collect_stage_metrics(tasks: Tasks) -> "dict[str, dict[str, NDArray[np.float64]]]":
        """Return the values by stage and metric, one for each task that went through the stage."""
        import numpy as np

        found: dict[str, dict[str, list[float]]] = {}
        for task in _all(tasks):
            for perf in task._stage_perf:
                metrics = found.setdefault(perf.stage_name, {})
                for name, value in perf.items():
                    metrics.setdefault(name, []).append(float(value))
        return {
            stage: {name: np.array(values, np.float64) for name, values in metrics.items()}
            for stage, metrics in found.items()
        }

    @staticmethod
    def aggregate_task_metrics(tasks: Tasks, prefix: str | None = None) -> dict[str, float]:
        """Return sum, mean and standard deviation of each metric, as `<prefix>_<stage>_<metric>_<sum|mean|std>`."""
        start = "" if prefix is None else f"{prefix}_"
        return {
            f"{start}{stage}_{metric}_{how}": float(getattr(values, how)())
            for stage, metrics in TaskPerfUtils.collect_stage_metrics(tasks).items()
            for metric, values in metrics.items()
            for how in ("sum", "mean", "std")
        }


def _all(tasks: Tasks) -> Iterable[Task[Any]]:
    if tasks is None:
        return []
    of_workflow = getattr(tasks, "pipeline_tasks", None)
    groups = of_workflow if of_workflow is not None else tasks
    if isinstance(groups, Mapping):
        return [task for some in groups.values() for task in some]
    return cast("Iterable[Task[Any]]", groups)
