"""`FastTextClassifier`: trained and applied by kernels of our own, in a file that fastText reads.

What is learnt is a function of the documents and the seed alone, not of files, order or workers: documents are taken by
rising hash, and the vocabulary is sorted. With several threads that is lost: all move the same two matrices at once,
and whichever comes first changes what the others see.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.row_hash import mix
from gristmill.models.fasttext_file import END_OF_TEXT, FastTextFile, FastTextSettings, read_fasttext_file
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.storage.atomic_write import write_file

_find_words = CompiledKernel("fasttext.features", "find_words")
_fill_table = CompiledKernel("fasttext.features", "fill_table")
_find_rows = CompiledKernel("fasttext.features", "find_rows")
_score_texts = CompiledKernel("fasttext.features", "score_texts")
_train = CompiledKernel("fasttext.training", "train")

MODEL_FILE = "model.bin"
_ROWS_MORE = 3  # `kernels.fasttext.features.ROWS_MORE`, which only a process that compiles can import
_SLICE_BYTES = 8 << 20  # of text looked at together: rows take up to four times as much


class Vocabulary:
    """Counts words, and keeps those that are found `min_count` times."""

    def __init__(self, min_count: int) -> None:
        self._min_count = min_count
        self._identities = np.empty(0, np.uint64)  # of all words so far, rising
        self._counts = np.empty(0, np.int64)
        self._kept: dict[int, bytes] = {}
        self._documents = 0

    def add(self, texts: TextColumn) -> None:
        """Count the words of some texts."""
        self._documents += len(texts)
        for part in _slices(texts):
            identities, places, lengths = find_words(part)
            found, first, counts = np.unique(identities, return_index=True, return_counts=True)
            merged = np.union1d(self._identities, found)
            before = np.zeros(len(merged), np.int64)
            before[np.searchsorted(merged, self._identities)] = self._counts
            now = before.copy()
            at = np.searchsorted(merged, found)
            now[at] += counts
            # A word is stored when it becomes frequent, from where it has just been seen.
            new = np.flatnonzero((before[at] < self._min_count) & (now[at] >= self._min_count))
            for identity, place in zip(found[new].tolist(), first[new].tolist(), strict=True):
                start = int(places[place])
                self._kept[identity] = part.data[start : start + int(lengths[place])].tobytes()
            self._identities, self._counts = merged, now

    def words(self) -> tuple[list[bytes], NDArray[np.int64]]:
        """Return the words, the most frequent first, and how often each was found."""
        identities = np.array(sorted(self._kept), np.uint64)
        counts = self._counts[np.searchsorted(self._identities, identities)].tolist()
        pairs = [(-count, self._kept[key]) for key, count in zip(identities.tolist(), counts, strict=True)]
        pairs = sorted([*pairs, (-self._documents, END_OF_TEXT)])
        return [word for _, word in pairs], np.array([-count for count, _ in pairs], np.int64)


@dataclass(eq=False)
class Rows:
    """Documents as rows of the input matrix: document d has ids[starts[d]:stops[d]]."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class RowFinder:
    """Finds the rows of texts, with a vocabulary."""

    def __init__(self, words: list[bytes], buckets: int) -> None:
        keys, rows = _table_of(words)
        self.arguments = keys, rows, len(keys), len(words), buckets, words.index(END_OF_TEXT)

    def rows(self, texts: TextColumn) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        """Yield the rows of some documents, end to end, and how many each of them has."""
        for part in _slices(texts):
            out = np.empty(part.num_bytes + _ROWS_MORE * len(part), np.int32)
            bounds = np.empty(len(part) + 1, np.int64)
            _find_rows(part.data, part.starts, part.stops, len(part), *self.arguments, out, bounds)
            yield out[: bounds[-1]], np.diff(bounds)


class FastTextClassifier:
    """A trained classifier."""

    def __init__(self, file: FastTextFile) -> None:
        self.file = file
        self._finder = RowFinder(file.words, file.settings.buckets)
        negative, positive = file.outputs.astype(np.float64)
        self._weights = positive - negative

    @classmethod
    def load(cls, directory: Path) -> "FastTextClassifier":
        """Read the model of a directory."""
        return cls(read_fasttext_file(directory / MODEL_FILE))

    def save(self, directory: Path) -> None:
        """Write the model to a directory."""
        write_file(str(directory / MODEL_FILE), self.file.chunks())

    def margins(self, texts: TextColumn) -> NDArray[np.float64]:
        """Return float64[D], the log odds that each text is of the positive class; NaN without a word."""
        margins, dim = np.empty(len(texts), np.float64), self.file.settings.dim
        own, hidden = np.empty(texts.longest + _ROWS_MORE, np.int32), np.empty(dim, np.float32)
        _score_texts(
            *(texts.data, texts.starts, texts.stops, len(texts), *self._finder.arguments),
            *(self.file.inputs, self._weights, dim, own, hidden, margins),
        )
        return margins


def find_words(texts: TextColumn) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the 64-bit hash, the place and the length of every word."""
    room = texts.num_bytes  # a page that is never written to costs nothing
    found = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
    count = _find_words(texts.data, texts.starts, texts.stops, len(texts), *found)
    return found[0][:count], found[1][:count], found[2][:count]


def train_fasttext(
    words: list[bytes],
    counts: NDArray[np.int64],
    examples: Rows,
    positive: NDArray[np.bool_],
    order: NDArray[np.int64],
    settings: FastTextSettings,
    *,
    seed: int,
    threads: int = 1,
) -> FastTextClassifier:
    """Learn from documents in this order, as often as `settings` says."""
    rows, dim = len(words) + settings.buckets, settings.dim
    inputs, outputs = _first_inputs(rows, dim, seed), np.zeros((2, dim), np.float32)
    total = float((examples.stops - examples.starts).sum()) * settings.epochs
    flags = positive.astype(np.uint8)

    def learn(part: int, epoch: int) -> None:
        first, last = (len(order) * bound // threads for bound in (part, part + 1))
        done = total * (epoch / settings.epochs)
        own = np.array([settings.learning_rate, done / threads, total / threads])
        hidden, gradient = np.empty(dim, np.float32), np.empty(dim, np.float32)
        _train(
            *(examples.ids, examples.starts, examples.stops, flags, len(flags), order, first, last),
            *(inputs, rows, outputs, dim, hidden, gradient, own),
        )

    with ThreadPoolExecutor(threads) as pool:
        for epoch in range(settings.epochs):
            list(pool.map(learn, range(threads), [epoch] * threads))
    documents = int((~positive).sum()), int(positive.sum())
    return FastTextClassifier(FastTextFile(words, counts, documents, inputs, outputs, settings))


def _first_inputs(rows: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Return numbers spread evenly over (−1/dim, 1/dim), the same for a seed with every version of every library."""
    inputs = np.empty(rows * dim, np.float32)
    start = mix(np.array([seed % 2**64], np.uint64))
    for first in range(0, len(inputs), 1 << 20):
        numbers = np.arange(first, min(first + (1 << 20), len(inputs)), dtype=np.uint64)
        bits = mix(start + numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        inputs[first : first + len(bits)] = (bits.astype(np.float64) / 2**23 - 1) / dim
    return inputs.reshape(rows, dim)


def _table_of(words: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the table that kernels look words up in. "</s>" has the key 0, which a text's words do not."""
    slots = 1 << (2 * len(words)).bit_length()
    keys, rows = np.zeros(slots, np.uint64), np.full(slots, -1, np.int32)
    identities = np.zeros(len(words), np.uint64)
    kept = [word for word in words if word != END_OF_TEXT]
    joined = np.frombuffer(b" ".join(kept), np.uint8)
    found = find_words(TextColumn(joined, np.zeros(1, np.int64), np.array([len(joined)], np.int64)))[0]
    if len(found) != len(kept):
        raise ConfigError(f"a fastText model: expected {len(kept)} words without white space; got {len(found)}")
    identities[[word != END_OF_TEXT for word in words]] = found
    _fill_table(identities, len(words), keys, rows, slots)
    return keys, rows


def _slices(texts: TextColumn) -> Iterator[TextColumn]:
    """Divide texts into slices of about `_SLICE_BYTES`, each of at least one text."""
    ends = np.cumsum(texts.stops - texts.starts)
    first = 0
    while first < len(texts):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _SLICE_BYTES, side="right")))
        yield texts.take(np.arange(first, last))
        first = last
