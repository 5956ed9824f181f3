"""Which candidates are duplicates: each is compared with documents that are kept, never with one that is removed.

Documents are taken best first. One that is similar enough to a kept document it shares a band with is removed and loses
to the most similar of them; otherwise it is kept. So removals form stars: chains of small differences remove nothing.

A bucket that many kept documents share (a licence text, a template) would cost the square of its size. It takes in no
more than `max_kept` of them, and a document is compared with no more than `max_compared`, those it shares most bands
with. Full buckets are counted, so that a run can say so.

    buckets      [D, B]   the bucket of each document in each band, numbered from 0
    values, bounds        the documents' shingle sets, sorted, end to end
    fixed        [D]      1 for documents that are kept whatever they are similar to: those of an index
    threshold    [1]
    containment           1 to measure the share of a document that is in the other, 0 for Jaccard similarity
    head         [number of buckets]  -1: the last document kept in a bucket, as document * B + band
    before       [D, B]   the one kept there before it, or -1
    kept_in      [number of buckets]  0
    met          [D]      0: bands shared with the document at hand
    found        [D]      room
    nearest      [D]      the kept document each one is most similar to, or -1 if it was compared with none
    lost_to      [D]      the same where that is similar enough, else -1
    similarity, shared_bands [D]  to and with the nearest; 0 before
    full         [number of buckets]  0: how many kept documents found a bucket full
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.shingle_sets import common
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import greatest, sized

NEAR = 0.8  # of the threshold: pairs whose sizes alone put them below it are not even measured


@inline
def _similarity(shared: int, size: int, other_size: int, containment: int) -> float:
    """Jaccard similarity, or the share of the first set that is in the second."""
    return shared / (size if containment else size + other_size - shared)


@inline
def _meet(
    buckets: NDArray[np.int64],
    d: int,
    num_bands: int,
    head: NDArray[np.int64],
    before: NDArray[np.int64],
    met: NDArray[np.int32],
    found: NDArray[np.int64],
) -> int:
    """Find the kept documents in the buckets of a document; return how many there are."""
    num_found = 0
    for band in range(num_bands):
        at = head[buckets[d * num_bands + band]]
        while at >= 0:
            other = at // num_bands
            if met[other] == 0:
                found[num_found] = other
                num_found += 1
            met[other] += 1
            at = before[at]
    return num_found


@inline
def _take_in(
    buckets: NDArray[np.int64],
    d: int,
    num_bands: int,
    max_kept: int,
    kept_in: NDArray[np.int32],
    head: NDArray[np.int64],
    before: NDArray[np.int64],
    full: NDArray[np.int64],
) -> None:
    """Put a document that is kept into its buckets, where they have room."""
    for band in range(num_bands):
        bucket = buckets[d * num_bands + band]
        if kept_in[bucket] >= max_kept:
            full[bucket] += 1
            continue
        kept_in[bucket] += 1
        before[d * num_bands + band] = head[bucket]
        head[bucket] = d * num_bands + band


@inline
def _place(other: int, met: NDArray[np.int32], documents: int) -> int:
    """Where a document stands among those to compare with, the first the lowest: most bands, then best."""
    return other - documents * np.int64(met[other])


@inline
def _last_place(
    found: NDArray[np.int64], num_found: int, met: NDArray[np.int32], num_bands: int, documents: int, most: int
) -> int:
    """Return the place of the last document to compare with: no two have the same, so halving finds it."""
    low, high = -documents * num_bands, documents
    while num_found > most and low < high:
        middle = low + (high - low) // 2
        before = 0
        for i in range(num_found):
            before += _place(found[i], met, documents) <= middle
        if before >= most:
            high = middle
        else:
            low = middle + 1
    return high


@sized(
    buckets=lambda documents, num_bands: documents * num_bands,
    bounds=lambda documents: documents + 1,
    values=lambda bounds, documents: bounds[documents],
    fixed=lambda documents: documents,
    threshold=lambda: 1,
    head=lambda buckets, documents, num_bands: greatest(buckets, documents * num_bands) + 1,
    before=lambda documents, num_bands: documents * num_bands,
    kept_in=lambda buckets, documents, num_bands: greatest(buckets, documents * num_bands) + 1,
    met=lambda documents: documents,
    found=lambda documents: documents,
    nearest=lambda documents: documents,
    lost_to=lambda documents: documents,
    similarity=lambda documents: documents,
    shared_bands=lambda documents: documents,
    full=lambda buckets, documents, num_bands: greatest(buckets, documents * num_bands) + 1,
)
def verify(
    buckets: NDArray[np.int64],
    documents: int,
    num_bands: int,
    values: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    fixed: NDArray[np.uint8],
    threshold: NDArray[np.float64],
    containment: int,
    max_kept: int,
    max_compared: int,
    head: NDArray[np.int64],
    before: NDArray[np.int64],
    kept_in: NDArray[np.int32],
    met: NDArray[np.int32],
    found: NDArray[np.int64],
    nearest: NDArray[np.int64],
    lost_to: NDArray[np.int64],
    similarity: NDArray[np.float64],
    shared_bands: NDArray[np.int32],
    full: NDArray[np.int64],
) -> None:
    """Decide about D documents, given best first. The arrays are described above."""
    for d in range(documents):
        num_found = _meet(buckets, d, num_bands, head, before, met, found)
        nearest[d] = lost_to[d] = -1
        size = bounds[d + 1] - bounds[d]
        last = _last_place(found, num_found, met, num_bands, documents, max_compared)
        for i in range(num_found):
            other = found[i]
            if _place(other, met, documents) > last:
                continue
            other_size = bounds[other + 1] - bounds[other]
            if not containment and min(size, other_size) < NEAR * threshold[0] * max(size, other_size):
                continue
            shared = common(values, bounds[d], bounds[d + 1], bounds[other], bounds[other + 1])
            measured = _similarity(shared, size, other_size, containment)
            if measured > similarity[d] or (measured == similarity[d] and other < nearest[d]):
                nearest[d], similarity[d], shared_bands[d] = other, measured, met[other]
        for i in range(num_found):
            met[found[i]] = 0
        if nearest[d] >= 0 and similarity[d] >= threshold[0] and not fixed[d]:
            lost_to[d] = nearest[d]
        else:
            _take_in(buckets, d, num_bands, max_kept, kept_in, head, before, full)
