"""N-grams of folded words: the hashes of those in some texts, and which of them are in others."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn

_ngram_hashes = CompiledKernel("dedup.overlap", "ngram_hashes")
_overlaps = CompiledKernel("dedup.overlap", "overlaps")


def hash_ngrams(texts: TextColumn, n: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of every n words of D texts, end to end, and int64[D + 1] where each text's begin."""
    values = np.empty(texts.num_bytes + 1, np.uint64)
    bounds = np.empty(len(texts) + 1, np.int64)
    _ngram_hashes(*_arguments(texts, n), values, bounds)
    return values[: bounds[-1]].copy(), bounds


def find_ngrams(texts: TextColumn, n: int, known: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compare D texts with sorted hashes: return the place of the first one met, or -1, and how many are met."""
    first, hits = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    _overlaps(*_arguments(texts, n), known, len(known), first, hits)
    return first, hits


def _arguments(texts: TextColumn, n: int) -> tuple[NDArray[np.generic] | int, ...]:
    """The first arguments of both kernels: the texts, and room for the words and n-grams of the longest."""
    rooms = np.empty(texts.longest + 1, np.uint64), np.empty(texts.longest + 1, np.uint64)
    return texts.data, texts.starts, texts.stops, len(texts), fold_table(), n, *rooms
