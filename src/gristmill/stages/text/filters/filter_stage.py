"""What `Score`, `Filter` and `ScoreFilter` have in common: they consist of steps, and neighbours can share one pass."""

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar, cast

from gristmill.errors import StageError
from gristmill.stages.base import JoinedStages, ProcessingStage
from gristmill.stages.context import StageContext
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter_runner import FilterRunner
from gristmill.stages.text.filters.step import Step
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch, Task

X = TypeVar("X", bound=Task)  # type: ignore[type-arg]  # a stage of any task, as in the base class
Y = TypeVar("Y", bound=Task)  # type: ignore[type-arg]


class _FilterStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage that measures documents, drops some, or both. Subclasses say in which steps."""

    adds_only_declared_columns: ClassVar[bool] = True

    def steps(self) -> list[Step]:
        """What is done, in order."""
        raise NotImplementedError(f"{self.stage_name()}: a filter stage must define steps")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        runner = self.__dict__.get("_runner")
        if runner is None:
            runner = self.__dict__["_runner"] = FilterRunner([self.steps()])
        return cast("FilterRunner", runner).run(task, [self.context])

    def wants_node_setup(self) -> bool:
        """Whether some filter has a model or the like to look for."""
        check = DocumentFilter.model_check_or_download
        return any(type(judge).model_check_or_download is not check for judge in self._filter_objects())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        for judge in self._filter_objects():
            judge.model_check_or_download()

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        for judge in self._filter_objects():
            judge.load_model()
            judge.load_tokenizer()

    def joined_with(self, following: Sequence[ProcessingStage[X, Y]]) -> JoinedStages | None:
        stages = [self, *(stage for stage in following if isinstance(stage, _FilterStage))]
        return _FilterPass(stages) if len(stages) == len(following) + 1 and all(map(_is_plain, stages)) else None

    def _filter_objects(self) -> list[DocumentFilter[object]]:
        return [step.judge for step in self.steps() if isinstance(step.judge, DocumentFilter)]


class _FilterPass:
    """Several filter stages as one: each statistic is counted once, and documents are copied once."""

    def __init__(self, stages: Sequence[_FilterStage]) -> None:
        self._runner = FilterRunner([stage.steps() for stage in stages])

    def process(
        self, task: Task[object], contexts: Sequence[StageContext], enter: Callable[[int, int], None]
    ) -> Task[object]:
        if not isinstance(task, DocumentBatch):
            raise StageError(f"filters: expected a DocumentBatch; got {type(task).__name__}")
        return cast("Task[object]", self._runner.run(task, contexts, enter))


def _is_plain(stage: _FilterStage) -> bool:
    """Whether a stage does what its steps say: a user's subclass may do something else."""
    return type(stage).process is _FilterStage.process and type(stage).process_batch is ProcessingStage.process_batch
