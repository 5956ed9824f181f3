"""`TrainedClassifier`: a model directory in use, once it has given the rows of its card the scores they had."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.quality.fasttext_classifier import FastTextClassifier
from gristmill.stages.text.quality.linear_classifier import LinearClassifier
from gristmill.stages.text.quality.model_card import CARD_FILE, ModelCard, check_files, read_card, read_rows
from gristmill.storage.atomic_write import checksum_of
from gristmill.tasks.text_columns import from_texts

# Of a score. Words are counted alike everywhere; an embedder's last bits depend on the machine, and where the
# calibration is steep they are magnified.
TOLERANCE = {"fasttext": 1e-6, "linear": 1e-3}
_BLANK_BYTES = 256  # a text longer than this is not looked through for white space outside ASCII


class TextModel(Protocol):
    """What a kind of classifier has to do."""

    def margins(self, texts: TextColumn) -> NDArray[np.float64]:
        """Return the log odds that each text is of the positive class; NaN where there is nothing to judge."""
        ...


class TrainedClassifier:
    """A model and its card."""

    def __init__(self, model: TextModel, card: ModelCard) -> None:
        self.card = card
        self._model = model

    def scores(self, texts: TextColumn) -> NDArray[np.float64]:
        """Return float64[D], the calibrated probability of the positive class; NaN for a blank text."""
        if not len(texts):
            return np.empty(0, np.float64)
        scores = self.card.probabilities(self._model.margins(texts))
        scores[_blank(texts)] = np.nan
        return scores

    def scores_of(self, texts: Sequence[str | None]) -> NDArray[np.float64]:
        """The same for Python's strings. What UTF-8 cannot hold, half a surrogate pair, is replaced."""
        whole = [None if text is None else text.encode(errors="replace").decode() for text in texts]
        column = TextColumn.of(pa.chunked_array([from_texts(whole)]))
        return np.empty(0, np.float64) if column is None else self.scores(column)


@lru_cache(maxsize=8)
def load_classifier(directory: str, card: str, who: str) -> TrainedClassifier:
    """Return the model of a directory, loaded and checked once in every process. `card` is the checksum of its card."""
    path = Path(directory)
    found = read_card(path, who=who)
    if checksum_of(str(path / CARD_FILE)) != card:
        raise ConfigError(f"{who}: expected the model in {path} that the run was planned with; it has been replaced")
    check_files(path, found, who=who)
    model = TrainedClassifier(open_model(path, found), found)
    _check_rows(model, path, who)
    return model


def open_model(path: Path, card: ModelCard) -> TextModel:
    """Read the model a card describes."""
    return LinearClassifier.load(path) if card.kind == "linear" else FastTextClassifier.load(path)


def _check_rows(model: TrainedClassifier, path: Path, who: str) -> None:
    rows = read_rows(path, who=who)
    scores = model.scores_of([row.text for row in rows])
    for number, (row, score) in enumerate(zip(rows, scores.tolist(), strict=True), start=1):
        if not abs(score - row.score) <= TOLERANCE[model.card.kind]:
            raise ConfigError(
                f"{who}: expected {path} to give row {number} of its card the score {row.score}, as when it was made; "
                f"got {score}. Its files belong to different models, or this version scores differently: train it again"
            )


def _blank(texts: TextColumn) -> NDArray[np.int64]:
    """The rows of texts that are missing or hold nothing but white space."""
    lengths = texts.stops - texts.starts
    short = np.flatnonzero((lengths > 0) & (lengths <= _BLANK_BYTES) & ~texts.is_null)
    firsts = texts.data[texts.starts[short]]
    odd = short[(firsts >= 0x80) | (firsts <= 0x20)]
    blank = [
        row for row in odd.tolist() if texts.data[texts.starts[row] : texts.stops[row]].tobytes().decode().isspace()
    ]
    return np.concatenate([np.flatnonzero((lengths == 0) | texts.is_null), np.array(blank, np.int64)])
