"""Which candidates are duplicates: each is compared with documents that are kept, never with one that is removed.

Documents are taken best first. One that is similar enough to a kept document it shares a band with is removed and loses
to the most similar of them; otherwise it is kept. So removals form stars: chains of small differences remove nothing.

A bucket that many kept documents share (a licence text, a template) would cost the square of its size. It takes in no
more than `max_kept` of them, and a document is compared with no more than `max_compared`, those it shares most bands
with. Full buckets are counted, so that a run can say so.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.compiled import compiled
from gristmill.kernels.dedup.shingle_sets import common

NEAR = 0.8  # of the threshold: what a size alone puts below is not even measured


@compiled
def verify(
    buckets: NDArray[np.int64],
    num_buckets: int,
    values: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    fixed: NDArray[np.bool_],
    threshold: float,
    max_kept: int,
    max_compared: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
    """Decide about D documents, given best first.

    buckets      [D, B]   the bucket of each document in each band, numbered from 0
    values, bounds        the documents' shingle sets, sorted, end to end
    fixed        [D]      documents that are kept whatever they are similar to: those of an index
    returns      nearest  [D] the kept document each one is most similar to, or -1 if it was compared with none
                 lost_to  [D] the same where that is similar enough, else -1
                 similarity, shared_bands [D] to and with the nearest
                 full     [num_buckets] how many kept documents found a bucket full
    """
    num_docs, num_bands = buckets.shape
    nearest = np.full(num_docs, -1, np.int64)
    lost_to = np.full(num_docs, -1, np.int64)
    similarity = np.zeros(num_docs, np.float64)
    shared_bands = np.zeros(num_docs, np.int32)
    head = np.full(num_buckets, -1, np.int64)  # the last document kept in a bucket, as document * B + band
    before = np.full(num_docs * num_bands, -1, np.int64)
    kept_in = np.zeros(num_buckets, np.int32)
    full = np.zeros(num_buckets, np.int64)
    met = np.zeros(num_docs, np.int32)  # bands shared with the document at hand
    found = np.empty(num_docs, np.int64)
    for doc in range(num_docs):
        num_found = 0
        for band in range(num_bands):
            at = head[buckets[doc, band]]
            while at >= 0:
                other = at // num_bands
                if met[other] == 0:
                    found[num_found] = other
                    num_found += 1
                met[other] += 1
                at = before[at]
        _compare(
            doc, found[:num_found], met, values, bounds, threshold, max_compared, nearest, similarity, shared_bands
        )
        for i in range(num_found):
            met[found[i]] = 0
        if nearest[doc] >= 0 and similarity[doc] >= threshold and not fixed[doc]:
            lost_to[doc] = nearest[doc]
        else:
            for band in range(num_bands):
                bucket = buckets[doc, band]
                if kept_in[bucket] >= max_kept:
                    full[bucket] += 1
                    continue
                kept_in[bucket] += 1
                before[doc * num_bands + band] = head[bucket]
                head[bucket] = doc * num_bands + band
    return nearest, lost_to, similarity, shared_bands, full


@compiled
def _compare(
    doc: int,
    found: NDArray[np.int64],
    met: NDArray[np.int32],
    values: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    threshold: float,
    max_compared: int,
    nearest: NDArray[np.int64],
    similarity: NDArray[np.float64],
    shared_bands: NDArray[np.int32],
) -> None:
    """Find the most similar of the documents found; among equals the better one, which has the lower number."""
    if len(found) > max_compared:
        # Most bands first, then best first: the same choice whatever the order in which they were found.
        found = found[np.argsort(met[found] * -np.int64(len(met)) + found)][:max_compared]
    own = values[bounds[doc] : bounds[doc + 1]]
    for other in found:
        theirs = values[bounds[other] : bounds[other + 1]]
        least, most = min(len(own), len(theirs)), max(len(own), len(theirs))
        if least < NEAR * threshold * most:
            continue
        shared = common(own, theirs)
        measured = shared / (len(own) + len(theirs) - shared)
        if measured > similarity[doc] or (measured == similarity[doc] and other < nearest[doc]):
            nearest[doc], similarity[doc], shared_bands[doc] = other, measured, met[other]
