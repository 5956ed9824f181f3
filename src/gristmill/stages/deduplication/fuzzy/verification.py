"""`verify`: which of several candidates are duplicates of which, by their shingle sets."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.compiled_kernel import CompiledKernel

MAX_KEPT = 256  # documents a bucket takes in
MAX_COMPARED = 128  # documents one is compared with

_verify = CompiledKernel("dedup.verify", "verify")


class Verified(NamedTuple):
    """What is decided about D documents."""

    nearest: NDArray[np.int64]  # [D] the kept document each one is most similar to, or -1
    lost_to: NDArray[np.int64]  # [D] the same where that is similar enough, else -1
    similarity: NDArray[np.float64]  # [D] to the nearest
    shared_bands: NDArray[np.int32]  # [D] with the nearest
    full: NDArray[np.int64]  # [buckets] how many kept documents found a bucket full


def verify(
    buckets: NDArray[np.int64],
    num_buckets: int,
    sets: tuple[NDArray[np.uint32], NDArray[np.int64]],
    fixed: NDArray[np.bool_],
    threshold: float,
    *,
    containment: bool = False,
    max_kept: int = MAX_KEPT,
    max_compared: int = MAX_COMPARED,
) -> Verified:
    """Decide about documents given best first; `buckets` is [D, B], `fixed` those that stay whatever they are like.

    With `containment`, what counts is the share of a document's shingles that the kept one has.
    """
    num_docs, num_bands = buckets.shape
    made = Verified(
        np.empty(num_docs, np.int64),
        np.empty(num_docs, np.int64),
        np.zeros(num_docs),
        np.zeros(num_docs, np.int32),
        np.zeros(num_buckets, np.int64),
    )
    head, before = np.full(num_buckets, -1), np.full(num_docs * num_bands, -1)
    kept_in, met = np.zeros(num_buckets, np.int32), np.zeros(num_docs, np.int32)
    _verify(
        *(buckets, num_docs, num_bands, *sets, fixed.view(np.uint8)),
        *(np.array([threshold], np.float64), int(containment), max_kept, max_compared),
        *(head, before, kept_in, met, np.empty(num_docs, np.int64)),
        *made,
    )
    return made
