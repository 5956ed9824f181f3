"""The file of a fastText classifier with two classes, written and read without fastText.

Whatever reads fastText's files reads ours. We read only files like ours: whole, softmax, words and pairs of words
without parts of words. Training and scoring are not here (`stages/text/quality/fasttext_classifier.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.models.fasttext_layout import (
    COUNTS,
    ENTRY,
    HEAD,
    MAGIC,
    SHAPE,
    SUPERVISED,
    VERSION,
    FastTextReading,
    Settings,
    reading,
)
from gristmill.storage.atomic_write import Chunk

END_OF_TEXT = b"</s>"
POSITIVE = "__label__hq"  # what `FastTextQualityFilter` looks for
NEGATIVE = "__label__lq"

_SOFTMAX, _PAIRS = 3, 2


@dataclass(frozen=True)
class FastTextSettings:
    """How a classifier is trained. Defaults measured in docs/log/2026-11-17-train-classifier.md."""

    dim: int = 16
    epochs: int = 3
    learning_rate: float = 0.1
    buckets: int = 200_000
    min_count: int = 3


@dataclass(frozen=True, eq=False)
class FastTextFile:
    """What a file holds: words by row with their counts ("</s>" among them), and two matrices.

    inputs   [words + buckets, dim]
    outputs  [2, dim]  the negative class, then the positive one
    """

    words: list[bytes]
    counts: NDArray[np.int64]
    documents: tuple[int, int]  # negative, positive
    inputs: NDArray[np.float32]
    outputs: NDArray[np.float32]
    settings: FastTextSettings = field(default_factory=FastTextSettings)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the bytes of the file."""
        made = self.settings
        options = Settings(
            made.dim, 5, made.epochs, made.min_count, 5, _PAIRS, _SOFTMAX, SUPERVISED, made.buckets, 0, 0, 100
        )
        yield HEAD.pack(MAGIC, VERSION, *msgspec.structs.astuple(options), 0.0001)
        entries = len(self.words) + 2
        yield COUNTS.pack(entries, len(self.words), 2, int(self.counts.sum()) + sum(self.documents), -1)
        for word, count in zip(self.words, self.counts.tolist(), strict=True):
            yield word + b"\0" + ENTRY.pack(count, 0)
        for label, count in zip((NEGATIVE, POSITIVE), self.documents, strict=True):
            yield label.encode() + b"\0" + ENTRY.pack(count, 1)
        for matrix in (self.inputs, self.outputs):
            yield SHAPE.pack(False, *matrix.shape)  # noqa: FBT003
            yield memoryview(np.ascontiguousarray(matrix, "<f4").view(np.uint8).reshape(-1).data)


def read_fasttext_file(path: Path) -> FastTextFile:
    """Read a file, or say what is wrong with it."""
    with reading(path) as content:
        return _read(content)


def _read(content: FastTextReading) -> FastTextFile:
    made = content.settings()
    if (made.loss, made.model, made.ngrams, made.longest) != (_SOFTMAX, SUPERVISED, _PAIRS, 0):
        got = (
            f"loss {made.loss}, model {made.model}, {made.ngrams} words, parts of words up to {made.longest} characters"
        )
        raise content.unlike("a softmax classifier of words and pairs of words", got)
    entries, num_words, num_labels, _, pruned = content.take(COUNTS)
    if num_labels != 2 or entries != num_words + 2 or pruned >= 0 or num_words < 1:
        raise content.unlike("words and two classes", f"{entries} entries, {num_labels} of them classes")
    words, counts = content.entries(num_words)
    if words.count(END_OF_TEXT) != 1:
        raise content.unlike('the word "</s>" once', f"{words.count(END_OF_TEXT)} of it")
    labels, documents = content.entries(2)
    if labels != [NEGATIVE.encode(), POSITIVE.encode()]:
        raise content.unlike(f"the classes {NEGATIVE} and {POSITIVE}", repr(labels))
    inputs, outputs = content.matrix(num_words + made.buckets, made.dim), content.matrix(2, made.dim)
    content.check_end()
    settings = FastTextSettings(made.dim, made.epochs, buckets=made.buckets, min_count=made.min_count)
    return FastTextFile(words, np.array(counts, np.int64), (documents[0], documents[1]), inputs, outputs, settings)
