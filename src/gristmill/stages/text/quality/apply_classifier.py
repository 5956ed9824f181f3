"""`ApplyClassifier`: the score of a classifier you trained, as a column or as a filter."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter
from gristmill.stages.text.judging.statistics import TextColumn, unparsed_texts
from gristmill.stages.text.quality.linear_classifier import LinearClassifier
from gristmill.stages.text.quality.model_card import CARD_FILE, check_files, read_card
from gristmill.stages.text.quality.trained_model import TrainedClassifier, load_classifier
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.storage.atomic_write import checksum_of
from gristmill.storage.file_system import absolute
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

EVEN = 0.5  # where a document is as likely of one class as of the other
LABELS = ("negative", "positive")


@dataclass(eq=False)
class ApplyClassifier(ProcessingStage[DocumentBatch, DocumentBatch], DocumentFilter[float | None]):
    """Add the probability that a text is of the positive class, by a model `gristmill train-classifier` has made.

    `model` is its directory. As a stage it drops nothing: every document gets a score in `score_field` and, if asked
    for, "positive" or "negative" in `label_field`; without text both are null. As a filter, inside `ScoreFilter` or
    `Score`, it keeps what scores at least `min_score`; which columns are read and added is then set there, not here.
    `min_score` is 0.5 unless it is given. Before the first document, the model has to give the rows of its card the
    scores they had when it was made.
    """

    score_type: ClassVar[pa.DataType] = pa.float64()
    adds_only_declared_columns: ClassVar[bool] = True

    model: str
    text_field: str = "text"
    score_field: str = "quality"
    label_field: str | None = None
    _: KW_ONLY
    min_score: float | None = None
    name: str = "apply_classifier"
    card: str = field(default="", init=False, repr=False)  # a changed model is another stage

    def __post_init__(self) -> None:
        if self.min_score is not None and not 0 <= self.min_score <= 1:
            raise ConfigError(f"ApplyClassifier: expected 0 ≤ min_score ≤ 1; got {self.min_score!r}")
        directory = Path(self.model)
        check_files(directory, read_card(directory, who="ApplyClassifier"), who="ApplyClassifier")
        self.card = checksum_of(str(directory / CARD_FILE))

    # As a stage

    def inputs(self) -> tuple[list[str], list[str]]:
        # Checked here, since a filter is not asked for its columns.
        if self.min_score is not None and self.label_field is None:
            raise ConfigError(
                f"{self.stage_name()}: expected no min_score, since this stage drops nothing, or a label_field, which "
                "it decides; to drop documents: ScoreFilter(ApplyClassifier(model, min_score=...))"
            )
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.score_field, *([] if self.label_field is None else [self.label_field])]

    def make_paths_absolute(self) -> None:
        self.model = absolute(self.model)

    def check_ready(self) -> None:
        for part in self._embedder():
            part.check_ready()
        if not self._embedder():
            self._loaded()

    def wants_node_setup(self) -> bool:
        return any(part.wants_node_setup() for part in self._embedder())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        for part in self._embedder():
            part.setup_on_node(node_info, worker_metadata)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._loaded()

    def process(self, task: DocumentBatch) -> DocumentBatch:
        scores = self._loaded().scores(self._texts(task))
        task = task.with_column(self.score_field, _with_nulls(scores))
        if self.label_field is None:
            return task
        least = self._least()
        labels = [None if np.isnan(score) else LABELS[score >= least] for score in scores.tolist()]
        return task.with_column(self.label_field, from_texts(labels))

    def _texts(self, task: DocumentBatch) -> TextColumn:
        texts = unparsed_texts(task, self.text_field) or TextColumn.of(task.column(self.text_field))
        if texts is None:
            kind = task.column(self.text_field).type
            raise StageError(f"{self.stage_name()}: expected texts in {self.text_field!r}; got {kind}")
        return texts

    # As a filter

    def model_check_or_download(self) -> None:
        """Get the embedder, if the model has one."""
        self.setup_on_node()

    def load_model(self) -> None:
        """Load and check the model. Called only by a stage that uses this as a filter, which names the columns."""
        own = {"text_field": "text", "score_field": "quality", "label_field": None}
        for option, default in own.items():
            if getattr(self, option) != default:
                raise ConfigError(
                    f"{self.name}: expected no {option} where it is used as a filter: give text_field and score_field "
                    f"to the stage around it; got {getattr(self, option)!r}"
                )
        self._loaded()

    def score_document(self, text: str) -> float | None:
        return self.score_documents([text])[0]

    def score_documents(self, texts: Sequence[str]) -> list[float | None]:
        return [None if np.isnan(score) else score for score in self._loaded().scores_of(texts).tolist()]

    def bounds(self) -> Bounds:
        return self._least(), None

    # Both

    def _least(self) -> float:
        return EVEN if self.min_score is None else self.min_score

    def _embedder(self) -> list[AnyStage]:
        """The stages that make vectors; none where the model counts words."""
        path = Path(self.model)
        is_linear = read_card(path, who=self.name).kind == "linear"
        return LinearClassifier.load(path).parts() if is_linear else []

    def _loaded(self) -> TrainedClassifier:
        return load_classifier(self.model, self.card, self.name)


def _with_nulls(scores: NDArray[np.float64]) -> pa.Array:
    """Return scores as Arrow's, null where there is none."""
    missing = np.isnan(scores)
    column = from_numbers(np.where(missing, 0.0, scores))
    if not missing.any():
        return column
    valid = from_bools(~missing).buffers()[1]
    return pa.Array.from_buffers(column.type, len(column), [valid, column.buffers()[1]])
