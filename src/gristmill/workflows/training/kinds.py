"""The kinds of classifier: what each needs, how it is trained, what its card says about that."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.models.fasttext_file import FastTextSettings
from gristmill.models.linear_head import fit_linear
from gristmill.stages.base import AnyStage
from gristmill.stages.text.quality.fasttext_classifier import (
    FastTextClassifier,
    RowFinder,
    Rows,
    Vocabulary,
    train_fasttext,
)
from gristmill.stages.text.quality.linear_classifier import DEFAULT_EMBEDDER, LinearClassifier, embedding_stage
from gristmill.stages.text.quality.trained_model import TextModel
from gristmill.workflows.training.examples import TRAIN, Examples

Setting = int | float | str | None


@dataclass(frozen=True)
class Training:
    """What training is told: a directory for intermediate files, the seed, how many threads, which embedder."""

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
    stages: Callable[[Training], list[AnyStage]] = lambda _: []  # what is added to documents while they are read


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
    """Write the rows of all documents to a file, and map it: the rows need not fit into memory."""
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


# A line between vectors

L2 = 1.0
VECTORS_FILE = "vectors.float32"


def _check_linear(training: Training, *, who: str) -> None:
    if training.threads != 1:
        raise ConfigError(f"{who}: expected threads to be 1 for kind 'linear'; got {training.threads}")


def _embedder(training: Training) -> str:
    """The embedder; a directory by its whole path, since the model may be applied from anywhere."""
    given = training.embedder or DEFAULT_EMBEDDER
    return str(Path(given).absolute()) if Path(given).is_dir() else given


def _train_linear(examples: Examples, training: Training) -> LinearClassifier:
    """Put vectors in the order of their hashes, on disk, and fit a line to them."""
    wanted = examples.part == TRAIN
    order = np.lexsort((examples.positive, examples.order))
    place = np.empty(len(examples), np.int64)
    place[order[wanted[order]]] = np.arange(int(wanted.sum()))
    has = np.zeros(int(wanted.sum()), np.bool_)
    vectors: NDArray[np.float32] | None = None
    for rows, own in examples.vectors(wanted):
        if vectors is None:
            vectors = np.memmap(training.scratch / VECTORS_FILE, np.float32, "w+", shape=(len(has), own.shape[1]))
        vectors[place[rows]] = own
        has[place[rows]] = True
    positive = examples.positive[order[wanted[order]]]
    if vectors is None or not positive[has].any() or positive[has].all():
        raise ConfigError(
            f"train-classifier: expected vectors from {_embedder(training)} for documents of both classes; got "
            f"{int(has.sum())} vectors for {len(has)} documents"
        )
    head = fit_linear(vectors if has.all() else vectors[has], positive[has], l2=L2)
    return LinearClassifier(head, _embedder(training))


def _settings_of_linear(training: Training) -> dict[str, Setting]:
    return {"embedder": _embedder(training), "l2": L2}


def _stages_of_linear(training: Training) -> list[AnyStage]:
    return [embedding_stage(_embedder(training))]


KINDS = {
    "fasttext": Kind(_check_fasttext, _train_fasttext, _settings_of_fasttext),
    "linear": Kind(_check_linear, _train_linear, _settings_of_linear, _stages_of_linear),
}
