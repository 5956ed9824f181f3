"""`WorkflowBase` and `WorkflowRunResult`: pipelines run one after another because something global lies between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.engine.plan import AnyTask


@dataclass
class WorkflowRunResult:
    """What a workflow has done: the final tasks of each pipeline, and numbers and paths by name."""

    workflow_name: str
    pipeline_tasks: dict[str, Sequence[AnyTask]] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)

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


class WorkflowBase:
    """Base of workflows: one call that runs everything and can be called again to continue."""

    def run(self) -> WorkflowRunResult:
        """Run to the end."""
        raise NotImplementedError(f"{type(self).__name__}: a workflow must define run")
