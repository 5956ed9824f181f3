"""The kinds of classifier: what each needs, how it is trained, what its card says about that."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.models.fasttext_file import FastTextSettings
from gristmill.stages.text.quality.fasttext_classifier import (
    FastTextClassifier,
    RowFinder,
    Rows,
    Vocabulary,
    train_fasttext,
)
from gristmill.stages.text.quality.trained_model import TextModel
from gristmill.workflows.training.examples import TRAIN, Examples

Setting = int | float | str | None


@dataclass(frozen=True)
class Training:
    """What training is told: a directory for files in between, the seed, how many threads, which embedder."""

    scratch: Path
    seed: int
    threads: int
    embedder: str | None


class SavedModel(TextModel, Protocol):
    """A model that can be written down."""

    def save(self, directory: Path) -> None:
        """Write the model to a directory."""
        ...


@dataclass(frozen=True)
class Kind:
    """How one kind of classifier is made."""

    check: Callable[..., None]  # (training, who=...): refuse options that do not go with it
    train: Callable[[Examples, Training], SavedModel]
    settings: Callable[[Training], dict[str, Setting]]


# Words and pairs of words

ROWS_FILE = "rows.int32"
FASTTEXT = FastTextSettings()


def _check_fasttext(training: Training, *, who: str) -> None:
    if training.embedder is not None:
        raise ConfigError(f"{who}: expected no embedder for kind 'fasttext'; got {training.embedder!r}")


def _train_fasttext(examples: Examples, training: Training) -> FastTextClassifier:
    """Three passes over the texts: count words, write rows to disk, learn from the rows as often as it takes."""
    wanted = examples.part == TRAIN
    vocabulary = Vocabulary(FASTTEXT.min_count)
    for _, texts in examples.texts(wanted):
        vocabulary.add(texts)
    words, counts = vocabulary.words()
    rows = _rows_on_disk(examples, wanted, words, training.scratch / ROWS_FILE)
    positive = examples.positive[wanted]
    # By hash: classes are mixed, and files do not matter. Where a text is in both classes, the negative comes first.
    order = np.lexsort((positive, examples.order[wanted]))
    return train_fasttext(words, counts, rows, positive, order, FASTTEXT, seed=training.seed, threads=training.threads)


def _rows_on_disk(examples: Examples, wanted: NDArray[np.bool_], words: list[bytes], path: Path) -> Rows:
    """Write the rows of all documents to a file, and map it: what is learnt from need not fit into memory."""
    finder = RowFinder(words, FASTTEXT.buckets)
    lengths = [np.empty(0, np.int64)]
    with path.open("wb") as file:
        for _, texts in examples.texts(wanted):
            for ids, own in finder.rows(texts):
                file.write(ids.data)
                lengths.append(own)
    stops = np.cumsum(np.concatenate(lengths))
    return Rows(np.memmap(path, np.int32, "r"), stops - np.concatenate(lengths), stops)


def _settings_of_fasttext(_training: Training) -> dict[str, Setting]:
    return asdict(FASTTEXT)


KINDS = {"fasttext": Kind(_check_fasttext, _train_fasttext, _settings_of_fasttext)}
