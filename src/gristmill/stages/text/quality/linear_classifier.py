"""`LinearClassifier`: logistic regression on the vectors of an embedder, any that `EmbeddingCreatorStage` takes."""

from functools import cached_property
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError
from gristmill.kernels.arrow_arrays import is_null
from gristmill.models.linear_head import LinearHead
from gristmill.models.static_model import WORDLLAMA
from gristmill.stages.base import AnyStage
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.storage.atomic_write import write_file
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

MODEL_FILE = "head.json"
DEFAULT_EMBEDDER = WORDLLAMA
TEXT, VECTOR = "text", "vector"


class _Written(msgspec.Struct, frozen=True):
    embedder: str
    bias: float
    weights: list[float]


def embedding_stage(embedder: str) -> EmbeddingCreatorStage:
    """Return the stage that adds vectors, the same for training and applying."""
    return EmbeddingCreatorStage(embedder, text_field=TEXT, embedding_field=VECTOR)


def read_vectors(column: pa.ChunkedArray) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return float32[M, dim] of the rows that have a vector, and bool[N], which of them do."""
    has = ~is_null(column)
    parts = [np.asarray(chunk.flatten(), np.float32) for chunk in column.chunks]  # nulls are left out
    flat = np.concatenate([np.empty(0, np.float32), *parts])
    return flat.reshape(int(has.sum()), -1) if has.any() else flat.reshape(0, 0), has


class LinearClassifier:
    """A head and the embedder it was trained on."""

    def __init__(self, head: LinearHead, embedder: str) -> None:
        self.head = head
        self.embedder = embedder

    @classmethod
    def load(cls, directory: Path) -> "LinearClassifier":
        """Read the head of a directory. The embedder is looked for when it is needed."""
        path = directory / MODEL_FILE
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_Written)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: expected a linear model as train-classifier writes it; got {error}") from None
        return cls(LinearHead(np.array(found.weights, np.float32), found.bias), found.embedder)

    def save(self, directory: Path) -> None:
        """Write the head to a directory; of the embedder, only its name."""
        written = _Written(self.embedder, self.head.bias, self.head.weights.astype(np.float64).tolist())
        write_file(str(directory / MODEL_FILE), [msgspec.json.encode(written) + b"\n"])

    def parts(self) -> list[AnyStage]:
        """Return the stages of the embedder, to be asked what they lack."""
        return embedding_stage(self.embedder).decompose()

    @cached_property
    def _ready(self) -> list[AnyStage]:
        parts = self.parts()
        for part in parts:
            part.setup()
        return parts

    def margins(self, texts: TextColumn) -> NDArray[np.float64]:
        """Return float64[D], the log odds that each text is of the positive class; NaN without a token."""
        bounds = zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)
        plain = [texts.data[start:stop].tobytes().decode() for start, stop in bounds]
        batch = DocumentBatch("texts", pa.Table.from_arrays([from_texts(plain)], names=[TEXT]))
        for part in self._ready:
            batch = cast("DocumentBatch", part.process(batch))
        if batch.num_items != len(texts):  # the embedder has put a document aside, in books that are not the run's
            raise StageError(f"{self.embedder}: expected vectors for {len(texts)} texts; got {batch.num_items}")
        vectors, has = read_vectors(batch.column(VECTOR))
        margins = np.full(len(texts), np.nan)
        if has.any():
            if vectors.shape[1] != len(self.head.weights):
                own = len(self.head.weights)
                raise ConfigError(f"{self.embedder}: expected vectors of {own} dimensions; got {vectors.shape[1]}")
            margins[has] = self.head.log_odds(vectors)
        return margins
