"""Spherical k-means on unit vectors, and greedy near-duplicates by cosine. Plain numpy, in blocks."""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
ROUNDING = 1e-6  # a cosine of equal vectors may be this far from 1


def normalize(vectors: Vectors) -> Vectors:
    """Return the vectors at length one; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def fit(vectors: Vectors, count: int, *, seed: int, max_iter: int, tol: float) -> Vectors:
    """Return at most `count` centroids [K, dim]: k-means++ (Arthur, Vassilvitskii 2007), then Lloyd's steps."""
    rng = np.random.default_rng(seed)
    count = min(count, len(vectors))
    centroids = vectors[[int(rng.integers(len(vectors)))]]
    distance = 1 - vectors @ centroids[0]
    while len(centroids) < count:
        weights = np.where(distance > ROUNDING, distance, 0).astype(np.float64)
        total = weights.sum()
        if total == 0:  # fewer different vectors than clusters
            break
        chosen = int(np.searchsorted(np.cumsum(weights), rng.random() * total, side="right"))
        centroids = np.vstack([centroids, vectors[min(chosen, len(vectors) - 1)]])
        distance = np.minimum(distance, 1 - vectors @ centroids[-1])
    for _ in range(max_iter):
        nearest = assign(vectors, centroids)[0]
        sums = np.zeros_like(centroids, np.float64)
        np.add.at(sums, nearest, vectors)
        moved = np.where((np.bincount(nearest, minlength=len(centroids)) > 0)[:, None], sums, centroids)
        moved = normalize(moved.astype(np.float32))
        shift = float(np.abs(moved - centroids).max())
        centroids = moved
        if shift < tol:
            break
    return centroids


def assign(vectors: Vectors, centroids: Vectors, *, block: int = 8192) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return int64[N], the nearest centroid of each vector, and float32[N], the cosine to it."""
    nearest = np.empty(len(vectors), np.int64)
    cosine = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), block):
        similarities = vectors[start : start + block] @ centroids.T
        own = similarities.argmax(axis=1)
        nearest[start : start + block] = own
        cosine[start : start + block] = np.take_along_axis(similarities, own[:, None], axis=1)[:, 0]
    return nearest, cosine


def find_similar(vectors: Vectors, threshold: float, *, block: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Decide about vectors given best first: each loses to the most similar kept one at or above `threshold`.

    Returns int64[N], the vector each one loses to, or -1, and float32[N], the cosine of the two. Memory is two blocks
    of similarities, whatever N is.
    """
    lost_to = np.full(len(vectors), -1, np.int64)
    cosine = np.zeros(len(vectors), np.float32)
    kept = np.empty(0, np.int64)
    for start in range(0, len(vectors), block):
        own = vectors[start : start + block]
        best, place = np.full(len(own), -2.0, np.float32), np.full(len(own), -1, np.int64)
        for first in range(0, len(kept), block):
            some = kept[first : first + block]
            similarities = own @ vectors[some].T
            nearest = similarities.argmax(axis=1)
            value = np.take_along_axis(similarities, nearest[:, None], axis=1)[:, 0]
            better = value > best
            best[better], place[better] = value[better], some[nearest[better]]
        within = own @ own.T
        kept_here: list[int] = []
        for i in range(len(own)):
            if kept_here:
                near = int(np.argmax(within[i, kept_here]))
                if within[i, kept_here[near]] > best[i]:
                    best[i], place[i] = within[i, kept_here[near]], start + kept_here[near]
            if best[i] >= threshold:
                lost_to[start + i], cosine[start + i] = place[i], best[i]
            else:
                kept_here.append(i)
        kept = np.append(kept, np.array(kept_here, np.int64) + start)
    return lost_to, cosine
