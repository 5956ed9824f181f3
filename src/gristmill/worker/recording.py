"""`Recording`: when the stages of a group are asked what they observed, and when that becomes a file.

What counts is decided by the runner: it records a call when the call has gone into the books, and writes when a job is
done. A run that records nothing loads nothing for it, and has an `is_on` to ask.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.engine.plan import AnyTask, Group
from gristmill.stages.context import StageContext
from gristmill.worker.job import Job, JobResult, RunSettings

if TYPE_CHECKING:
    from gristmill.worker.observer import Observer


class Recording:
    """What is recorded about the documents of one group."""

    def __init__(self, group: Group, settings: RunSettings) -> None:
        self.is_on = settings.observation.is_on and settings.measures_path is not None
        self._names = group.names
        self._first = settings.stages_before + group.first_stage
        self._settings = settings
        self._observer: Observer | None = None

    @property
    def observer(self) -> "Observer":
        """Loads what it takes when something is first recorded."""
        if self._observer is None:
            from gristmill.worker.observer import Observer

            given = self._settings
            self._observer = Observer(given.observation, given.measures_path or "", given.side_options[1])
        return self._observer

    def take(self, first: int, contexts: Sequence[StageContext], result: JobResult) -> None:
        """Record what the stages from `first` on have reported in one call."""
        if not self.is_on or not any(context.has_observed for context in contexts):
            return
        from gristmill.worker.observer import Place, fewer

        named = enumerate(self._names[first : first + len(contexts)], self._first + first)
        places = [Place(name, number) for number, name in named]
        part = self.observer.part(list(zip(places, contexts, strict=True)))
        if part is not None:
            result.observed = fewer([*result.observed, part])

    def take_written(self, task: AnyTask, context: StageContext | None, result: JobResult) -> None:
        """Record documents that leave the pipeline at its end; those the call dropped have not come so far."""
        if self.is_on and task.counts_documents:
            part = self.observer.written(task, None if context is None else context.gone)
            result.observed += [part] if part is not None else []

    def write(self, job: Job, result: JobResult, context: StageContext) -> None:
        """Write what was recorded of a job, to be published with its partition; `context` says where."""
        if result.observed:
            # Named after the stages, not the group: whichever of them share a worker, it is another name.
            name = f"{job.item_id}-s{self._first:02d}"
            result.side_files.append(self.observer.write(result.observed, name, context))
            result.observed = []
