"""`LanguageModel`: the likeliest language of a line by lid.176, as fastText has it, in half of its time or less.

fastText finds parts of words in a hash table of many small pieces, and between two pages the parser has pushed all of
that out of the processor's caches. Here it is a bitmap and a matrix (`kernels/fasttext/subwords.py`). Labels are the
same; probabilities differ in the seventh digit, because exponentials are taken in double precision here.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.models.fasttext_quantised import QuantisedFile, read_quantised_file
from gristmill.stages.compiled_kernel import CompiledKernel

END_OF_TEXT = b"</s>"
_WORD_BITS = 64
_LEAST_SHARE = 1e-5  # fastText adds it before it takes a logarithm

_score_text = CompiledKernel("fasttext.subwords", "score_text")


class LanguageModel:
    """A model that is loaded, with memory for one line at a time."""

    def __init__(self, path: Path) -> None:
        file = read_quantised_file(path)
        self._labels = file.labels
        self._children = label_tree(file.label_counts)
        keys, rows = _table_of(file.words)
        kept, kept_before = _map_of(file)
        end_row = file.words.index(END_OF_TEXT) if END_OF_TEXT in file.words else -1
        num_rows, dim = file.inputs.shape
        num_outputs = len(file.outputs)
        self._vocabulary = (keys, rows, len(keys), len(file.words), end_row, file.shortest, file.longest)
        self._parts = (kept, kept_before, file.buckets)
        self._matrices = (file.inputs.reshape(-1), num_rows, dim, file.outputs.reshape(-1), num_outputs)
        self._hidden, self._scores = np.zeros(dim, np.float32), np.zeros(num_outputs, np.float32)
        self._word = np.zeros(0, np.uint8)

    def predict(self, line: str) -> tuple[str, float] | None:
        """Return the likeliest label and its probability; None if the model recognises nothing in the text."""
        data = line.encode("utf-8", "replace")
        if len(self._word) < len(data) + 2:
            self._word = np.zeros(2 * len(data) + 2, np.uint8)
        scratch = (self._word, self._hidden, self._scores)
        text = np.frombuffer(data, np.uint8)
        if not _score_text(text, len(data), *self._vocabulary, *self._parts, *self._matrices, *scratch):
            return None
        label, score = self._likeliest(self._scores.tolist())
        return self._labels[label], min(math.exp(score), 1.0)  # rounding may take it a little above

    def _likeliest(self, scores: list[float]) -> tuple[int, float]:
        """Go down the tree of labels, and leave out what is already less likely than the best so far."""
        num_labels = len(self._labels)
        best, best_score = 0, -math.inf
        stack = [(2 * num_labels - 2, 0.0)]
        while stack:
            node, score = stack.pop()
            if score < best_score:
                continue
            if node < num_labels:
                best, best_score = node, score
                continue
            left, right = self._children[node - num_labels]
            share = 1.0 / (1.0 + math.exp(-scores[node - num_labels]))
            less = left, score + math.log(1.0 - share + _LEAST_SHARE)
            more = right, score + math.log(share + _LEAST_SHARE)
            stack += (less, more) if share >= 0.5 else (more, less)  # the likelier one is looked at first
        return best, best_score


def label_tree(counts: list[int]) -> list[tuple[int, int]]:
    """Return the children of each inner node of fastText's tree of labels, which are sorted by their counts.

    Labels are nodes 0 to L - 1, inner nodes follow in this order, and the last is the root.
    """
    num_labels = len(counts)
    totals = [*counts, *[10**15] * (num_labels - 1)]
    children = []
    leaf, node = num_labels - 1, num_labels
    for made in range(num_labels, 2 * num_labels - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and totals[leaf] < totals[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        totals[made] = totals[pair[0]] + totals[pair[1]]
        children.append((pair[0], pair[1]))
    return children


def _table_of(words: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Words by their 64-bit hashes, in a table at most half full."""
    slots = 1 << (2 * len(words)).bit_length()
    keys, rows = np.zeros(slots, np.uint64), np.full(slots, -1, np.int32)
    for row, word in enumerate(words):
        identity = _identity(word)
        slot = identity % slots
        while rows[slot] >= 0:
            slot = (slot + 1) % slots
        keys[slot], rows[slot] = identity, row
    return keys, rows


def _identity(word: bytes) -> int:
    """FNV-1a, as the kernel has it."""
    found = 0xCBF29CE484222325
    for byte in word:
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found ^ (found >> 32)


def _map_of(file: QuantisedFile) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """A bit for each part that was kept, and how many were kept before each 64."""
    size = -(-file.buckets // _WORD_BITS)
    places, bits = file.parts // _WORD_BITS, np.uint64(1) << (file.parts % _WORD_BITS).astype(np.uint64)
    kept = np.zeros(size, np.uint64)
    np.bitwise_or.at(kept, places, bits)
    before = np.cumsum(np.bincount(places, minlength=size)) - np.bincount(places, minlength=size)
    return kept, before.astype(np.int32)
