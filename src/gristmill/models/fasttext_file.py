"""The file of a fastText classifier with two classes, written and read without fastText.

The layout is that of fastText 0.9 (version 12 of its files): settings, vocabulary, input matrix, output matrix, all
little-endian. Whatever reads fastText's files reads ours. We read those that are as ours are: whole, softmax, words and
pairs of words without parts of words. Training and scoring are not here (`stages/text/quality/fasttext_classifier.py`).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.storage.atomic_write import Chunk

END_OF_TEXT = b"</s>"
POSITIVE = "__label__hq"  # what `FastTextQualityFilter` looks for
NEGATIVE = "__label__lq"

_MAGIC, _VERSION = 793712314, 12
_HEAD = struct.Struct("<14id")  # magic, version and twelve settings; then the share of rare words to leave out
_COUNTS = struct.Struct("<3i2q")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<?2q")  # whether the matrix is quantised, which ours is not
_SOFTMAX, _SUPERVISED, _PAIRS = 3, 3, 2


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
        # In fastText's order: dim, window, epochs, least count, negatives, n-grams, loss, model, buckets, shortest and
        # longest part of a word, rows between two changes of the step.
        options = (made.dim, 5, made.epochs, made.min_count, 5, _PAIRS, _SOFTMAX, _SUPERVISED, made.buckets, 0, 0, 100)
        yield _HEAD.pack(_MAGIC, _VERSION, *options, 0.0001)
        entries = len(self.words) + 2
        yield _COUNTS.pack(entries, len(self.words), 2, int(self.counts.sum()) + sum(self.documents), -1)
        for word, count in zip(self.words, self.counts.tolist(), strict=True):
            yield word + b"\0" + _ENTRY.pack(count, 0)
        for label, count in zip((NEGATIVE, POSITIVE), self.documents, strict=True):
            yield label.encode() + b"\0" + _ENTRY.pack(count, 1)
        for matrix in (self.inputs, self.outputs):
            yield _SHAPE.pack(False, *matrix.shape)  # noqa: FBT003
            yield memoryview(np.ascontiguousarray(matrix, "<f4").view(np.uint8).reshape(-1).data)


def read_fasttext_file(path: Path) -> FastTextFile:
    """Read a file, or say what is wrong with it."""
    try:
        return _Reading(path.read_bytes(), path).file()
    except (struct.error, IndexError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path}: expected a whole fastText model; it ends too early or is damaged") from error


class _Reading:
    """The bytes of a file, and how far they have been read."""

    def __init__(self, content: bytes, path: Path) -> None:
        self._content, self._path, self._at = content, path, 0

    def file(self) -> FastTextFile:
        magic, version, dim, _, epochs, min_count, _, ngrams, loss, model, buckets, _, longest, _, _ = self._take(_HEAD)
        if (magic, version) != (_MAGIC, _VERSION):
            raise self._unlike("a fastText model, version 12", f"({magic}, {version}) at its start")
        if (loss, model, ngrams, longest) != (_SOFTMAX, _SUPERVISED, _PAIRS, 0):
            got = f"loss {loss}, model {model}, {ngrams} words, parts of words up to {longest} characters"
            raise self._unlike("a softmax classifier of words and pairs of words", got)
        entries, num_words, num_labels, _, pruned = self._take(_COUNTS)
        if num_labels != 2 or entries != num_words + 2 or pruned >= 0 or num_words < 1:
            raise self._unlike("words and two classes", f"{entries} entries, {num_labels} of them classes")
        words, counts = self._entries(num_words)
        if words.count(END_OF_TEXT) != 1:
            raise self._unlike('the word "</s>" once', f"{words.count(END_OF_TEXT)} of it")
        labels, documents = self._entries(2)
        if labels != [NEGATIVE.encode(), POSITIVE.encode()]:
            raise self._unlike(f"the classes {NEGATIVE} and {POSITIVE}", repr(labels))
        inputs, outputs = self._matrix(num_words + buckets, dim), self._matrix(2, dim)
        if self._at != len(self._content):
            raise self._unlike("nothing behind the matrices", f"{len(self._content) - self._at} bytes")
        settings = FastTextSettings(dim, epochs, buckets=buckets, min_count=min_count)
        return FastTextFile(words, np.array(counts, np.int64), (documents[0], documents[1]), inputs, outputs, settings)

    def _take(self, kind: struct.Struct) -> tuple[int, ...]:
        self._at += kind.size
        return kind.unpack_from(self._content, self._at - kind.size)

    def _entries(self, number: int) -> tuple[list[bytes], list[int]]:
        words, counts = [], []
        for _ in range(number):
            end = self._content.index(b"\0", self._at)
            words.append(self._content[self._at : end])
            self._at = end + 1
            counts.append(self._take(_ENTRY)[0])
        return words, counts

    def _matrix(self, rows: int, columns: int) -> NDArray[np.float32]:
        shape = self._take(_SHAPE)
        if shape != (False, rows, columns):
            raise self._unlike(
                f"a plain matrix of {rows} × {columns}", f"{shape[1]} × {shape[2]}, quantised: {shape[0]}"
            )
        matrix = np.frombuffer(self._content, "<f4", rows * columns, self._at).astype(np.float32)
        self._at += 4 * rows * columns
        if not np.isfinite(matrix).all():
            raise self._unlike("finite numbers", "others")
        return matrix.reshape(rows, columns)

    def _unlike(self, expected: str, got: str) -> ConfigError:
        return ConfigError(f"{self._path}: expected {expected}; got {got}")
