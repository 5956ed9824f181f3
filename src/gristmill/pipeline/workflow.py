"""`WorkflowBase` and `WorkflowRunResult`: pipelines run one after another because something global lies between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.engine.plan import AnyTask
from gristmill.metrics.error_counts import ErrorCount, alike
from gristmill.runs.result import RunResult
from gristmill.runs.summary import error_lines


@dataclass
class WorkflowRunResult:
    """What a workflow has done: the final tasks of each pipeline, and numbers and paths by name.

    `print(result)` says it in words. `errors` are those of all its pipelines.
    """

    workflow_name: str
    pipeline_tasks: dict[str, Sequence[AnyTask]] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    summary: str = ""
    errors: list[ErrorCount] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [self.summary or f"{self.workflow_name}: done"]
        if self.errors:
            lines += ["", "could not be processed:", *error_lines(self.errors, indent=2)]
        return "\n".join(lines)

    def add_pipeline_tasks(self, pipeline: str, tasks: Sequence[AnyTask] | None) -> None:
        """Record the final tasks of a pipeline."""
        self.pipeline_tasks[pipeline] = [] if tasks is None else tasks

    def add_metadata(self, key: str, value: object) -> None:
        """Record one thing."""
        self.metadata[key] = value

    def extend_metadata(self, more: Mapping[str, object] | None = None) -> None:
        """Record several things."""
        self.metadata.update(more or {})

    def get_metadata(self, key: str) -> object:
        """Return one thing, or None."""
        return self.metadata.get(key)


def errors_of(results: Sequence[RunResult]) -> list[ErrorCount]:
    """The errors of several pipelines. One that occurs whenever the same documents are read again is one."""
    most: dict[tuple[str, str, str], ErrorCount] = {}
    for result in results:
        for error in result.errors:
            key = error.stage, error.kind, alike(error.message)
            if key not in most or most[key].count < error.count:
                most[key] = error
    return list(most.values())


class WorkflowBase:
    """Base of workflows: one call that runs everything and can be called again to continue."""

    def run(self) -> WorkflowRunResult:
        """Run to the end."""
        raise NotImplementedError(f"{type(self).__name__}: a workflow must define run")
