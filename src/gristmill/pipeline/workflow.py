"""`WorkflowBase` and `WorkflowRunResult`: pipelines run one after another because something global lies between."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from gristmill.engine.plan import AnyTask
from gristmill.metrics.snapshot import ErrorCount, alike
from gristmill.runs.books import RunResult
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

    def _repr_html_(self) -> str:
        """In notebooks: the same words, and a funnel of each pipeline that has one."""
        from gristmill.tasks.notebook_view import escaped

        funnels = [
            f"<p>{escaped(name)}</p>{tasks._repr_html_()}"
            for name, tasks in self.pipeline_tasks.items()
            if isinstance(tasks, RunResult) and tasks.counts
        ]
        words = "\n".join(escaped(line, 500) for line in str(self).split("\n"))
        return f"<p><b>{escaped(self.workflow_name)}</b></p><pre>{words}</pre>{''.join(funnels)}"

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
    """The errors of several pipelines. One that recurs whenever the same documents are read again counts once."""
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


# Options that other tools need and this one does not: accepted, so that scripts need no change, with a warning.
#
# A workflow lists them as `IGNORED`. Whatever is not listed has to be read: a test holds every workflow to that.


class IgnoresOptions(Protocol):
    """A dataclass that lists the options it does not look at."""

    IGNORED: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]


def warn_ignored(given: IgnoresOptions) -> None:
    """Warn once for the options that were set to something other than their default."""
    defaults = {name: given.__dataclass_fields__[name].default for name in given.IGNORED}
    changed = [name for name, default in defaults.items() if getattr(given, name) != default]
    if changed:
        have = "has" if len(changed) == 1 else "have"
        told = f"{type(given).__name__}: {', '.join(changed)} {have} no effect here"
        warnings.warn(told, UserWarning, stacklevel=4)
