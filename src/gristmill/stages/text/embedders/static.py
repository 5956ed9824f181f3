"""`StaticEmbeddingStage`: embeddings from a table of token vectors, for a first look at a corpus."""

import hashlib
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, MissingDependency
from gristmill.kernels.arrow_arrays import from_matrix
from gristmill.models.runtime import ModelSource
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.judging.statistics import TextColumn, texts_of_batch
from gristmill.stages.text.models.files import check_positive
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.models.static_model import StaticFiles, StaticModel


def absolute(source: ModelSource) -> ModelSource:
    """Return the source with directories that do not depend on a process's working directory."""
    return replace(
        source,
        model_identifier=_absolute(source.model_identifier),
        tokenizer_identifier=None if source.tokenizer_identifier is None else _absolute(source.tokenizer_identifier),
        cache_dir=None if source.cache_dir is None else str(Path(source.cache_dir).absolute()),
    )


def _absolute(given: str) -> str:
    return str(Path(given).absolute()) if Path(given).is_dir() else given


@dataclass
class StaticEmbeddingStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Add the mean vector of each text's tokens, null where a text is null, blank or has no token."""

    adds_only_declared_columns: ClassVar[bool] = True

    source: ModelSource
    text_field: str = "text"
    embedding_field: str = "embeddings"
    _: KW_ONLY
    max_chars: int | None = None
    max_seq_length: int | None = None
    embedding_output_dtype: str = "float32"
    name: str = "static_embedding"

    def __post_init__(self) -> None:
        check_positive(self, ("max_chars", "max_seq_length"))
        self._model: StaticModel | None = None

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.embedding_field]

    def new_columns(self) -> list[str]:
        return [self.embedding_field]

    def get_config(self) -> dict[str, object]:
        """With a digest of table and tokenizer in place of where they are: another table makes another plan."""
        files = self._files()
        digest = hashlib.sha256(files.table.read_bytes() + files.tokenizer.read_bytes()).hexdigest()[:16]
        given = {name: value for name, value in super().get_config().items() if name != "source"}
        return {**given, "model_identifier": self.source.model_identifier, "table": digest}

    def make_paths_absolute(self) -> None:
        self.source = absolute(self.source)

    def check_ready(self) -> None:
        if find_spec("tokenizers") is None:
            raise MissingDependency(f"{self.source.who} needs tokenizers. Install: pip install 'gristmill[models]'")
        self._files()

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        from gristmill.models.static_model import StaticModel

        self._model = StaticModel(self._files(), who=self.source.who)

    def teardown(self) -> None:
        self._model = None

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if self._model is None:
            self.setup()  # called by hand, outside a run
        assert self._model is not None  # noqa: S101  # setup has made it
        shown, seen = self._shown(texts_of_batch(task, self.text_field))
        vectors, has_tokens = self._model.embed(shown, max_length=self.max_seq_length)
        seen[seen] = has_tokens
        column = from_matrix(vectors.astype(self.embedding_output_dtype, copy=False), seen)
        return task.with_column(self.embedding_field, column)

    def _files(self) -> "StaticFiles":
        from gristmill.models.static_model import static_files

        files = static_files(self.source)
        if files is None:
            given = self.source.model_identifier
            raise ConfigError(f"{self.source.who}: expected a static model; {given!r} is another kind")
        return files

    def _shown(self, column: TextColumn) -> tuple[list[str], NDArray[np.bool_]]:
        """Return what the model sees of the texts that are not blank, and which those are."""
        shown: list[str] = []
        seen = np.zeros(len(column), np.bool_)
        for row, (start, stop) in enumerate(zip(column.starts.tolist(), column.stops.tolist(), strict=True)):
            last = stop if self.max_chars is None else min(stop, start + 4 * self.max_chars)  # four bytes at most
            text = column.data[start:last].tobytes().decode("utf-8", "replace")[: self.max_chars]
            if text and not text.isspace():
                seen[row] = True
                shown.append(text)
        return shown, seen
