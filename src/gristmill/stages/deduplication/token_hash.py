"""`hash_tokens`: texts that differ in case, accents, punctuation or white space only have the same hash."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.text_column import TextColumn

_hash_tokens = CompiledKernel("dedup.tokens", "hash_tokens")


def hash_tokens(texts: TextColumn) -> NDArray[np.uint64]:
    """Return uint64[D, 2]: 128 bits of each text's sequence of folded words; zeros for a text without words."""
    hashes = np.empty((len(texts), 2), np.uint64)
    tokens = np.empty(texts.longest + 1, np.uint64)
    _hash_tokens(texts.data, texts.starts, texts.stops, len(texts), fold_table(), tokens, hashes)
    return hashes
