"""`hash_texts`: 128 bits of each text of a column, by a kernel where texts are long."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.content_hash import SECRET, SHORT_BYTES, content_hash
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.text_column import TextColumn

_LANES = 8
_hash_long_texts = CompiledKernel("text.xxh3", "hash_long_texts")


def hash_texts(texts: TextColumn) -> NDArray[np.uint64]:
    """Return uint64[D, 2], what `content_hash` returns: a call for each text is for short ones only."""
    hashes = np.empty((len(texts), 2), np.uint64)
    secret, sums = np.frombuffer(SECRET, np.uint8), np.empty(_LANES, np.uint64)
    _hash_long_texts(texts.data, texts.starts, texts.stops, len(texts), secret, sums, hashes)
    short = np.flatnonzero(texts.stops - texts.starts <= SHORT_BYTES)
    hashes[short] = content_hash(texts.data, texts.starts[short], texts.stops[short])
    return hashes
