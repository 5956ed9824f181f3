"""Exact order statistics of more numbers than fit in memory, and what is made of them: edges, buckets, quantiles.

A double becomes an unsigned integer of the same order (its bits, adjusted for the sign). Numbers are counted by
their leading bits; of those that share the leading bits with a number asked for, the next bits are counted in
another pass, until the few that are left can be sorted. Counts are added up, so the result does not depend on the order
in which numbers come or on how they are cut into arrays. The memory is that of `COUNTERS` counts or `HELD` numbers,
however many numbers there are.

Letters: N numbers, R ranks, B buckets, K steps of a quantile table.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

HELD = 1 << 22  # up to this many numbers are simply sorted: 32 MiB
COUNTERS = 1 << 22  # 32 MiB of counts per pass
_AT_ONCE = 1 << 20  # numbers of many small arrays that are counted together
_MOST_PIECES = 1000  # and at most this many arrays of them
_SIGN = np.uint64(1 << 63)
_ALL_BITS = 64


def ordered_bits(values: Numbers) -> NDArray[np.uint64]:
    """Return uint64[N] that compare as the doubles do; 0.0 and -0.0 are one number. There must be no NaN."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def numbers_of_bits(keys: NDArray[np.uint64]) -> Numbers:
    """Undo `ordered_bits`."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def order_statistics(
    chunks: Callable[[], Iterable[Numbers]],
    ranks_of: Callable[[int], NDArray[np.int64]],
    *,
    held: int = HELD,
    counters: int = COUNTERS,
) -> tuple[int, Numbers]:
    """Return N, and for each rank in `ranks_of(N)` the number that would stand there if all were sorted.

    `chunks` is called once for each pass: one pass if the numbers can be held, and most often three if not. It must
    yield the same numbers each time, and no NaN.
    """
    kept, total = _hold(chunks(), held)
    ranks = ranks_of(total)
    if not total or not len(ranks):
        return total, np.empty(0, np.float64)
    if kept is not None:
        return total, np.sort(kept + 0.0)[ranks]
    wanted = np.unique(ranks)
    found = numbers_of_bits(_select(chunks, wanted, held, counters))
    return total, found[np.searchsorted(wanted, ranks)]


def _hold(chunks: Iterable[Numbers], held: int) -> tuple[Numbers | None, int]:
    """All numbers, if there are no more than `held`; and how many there are."""
    kept, total = [np.empty(0, np.float64)], 0
    for chunk in _joined(chunks):
        total += len(chunk)
        kept = [*kept, chunk] if total <= held else []
    return (np.concatenate(kept) if total <= held else None), total


def _select(
    chunks: Callable[[], Iterable[Numbers]], ranks: NDArray[np.int64], held: int, counters: int
) -> NDArray[np.uint64]:
    """Return uint64[R], the keys at these ranks, which are sorted and differ."""
    shift = _ALL_BITS  # bits that are not known yet
    prefixes = np.zeros(1, np.uint64)  # the known bits of what is searched for, sorted
    group = np.zeros(len(ranks), np.int64)  # whose prefix rank r has
    within = ranks.copy()  # its rank among the numbers with that prefix
    while shift:
        bits = min(shift, max(1, (counters // len(prefixes)).bit_length() - 1))
        counts = _counts(chunks(), prefixes, shift, bits)
        ends = np.cumsum(counts, axis=1)
        digits = np.array([np.searchsorted(ends[g], w, side="right") for g, w in zip(group, within, strict=True)])
        sizes = counts[group, digits]
        within -= ends[group, digits] - sizes
        keys = (prefixes[group] << np.uint64(bits)) | digits.astype(np.uint64)
        shift -= bits
        prefixes, first, group = np.unique(keys, return_index=True, return_inverse=True)
        if shift and sizes[first].sum() <= held:
            rest = np.sort(np.concatenate(list(_with_prefix(chunks(), prefixes, shift))))
            starts = np.searchsorted(rest, prefixes << np.uint64(shift))
            found: NDArray[np.uint64] = rest[starts[group] + within]
            return found
    return prefixes[group]


def _counts(chunks: Iterable[Numbers], prefixes: NDArray[np.uint64], shift: int, bits: int) -> NDArray[np.int64]:
    """Return int64[P, 2**bits]: of the numbers with prefix p, how many have which next bits."""
    counts = np.zeros(len(prefixes) << bits, np.int64)
    low = np.uint64(shift - bits)
    for keys in _with_prefix(chunks, prefixes, shift):
        places = np.searchsorted(prefixes, _shifted(keys, shift)).astype(np.uint64) << np.uint64(bits)
        own, times = np.unique(places | ((keys >> low) & np.uint64((1 << bits) - 1)), return_counts=True)
        counts[own.astype(np.int64)] += times
    return counts.reshape(len(prefixes), -1)


def _with_prefix(chunks: Iterable[Numbers], prefixes: NDArray[np.uint64], shift: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the keys of those numbers whose known bits are one of the prefixes."""
    for values in _joined(chunks):
        keys = ordered_bits(values)
        known = _shifted(keys, shift)
        places = np.minimum(np.searchsorted(prefixes, known), len(prefixes) - 1)
        yield keys[prefixes[places] == known]


def _shifted(keys: NDArray[np.uint64], shift: int) -> NDArray[np.uint64]:
    """The known bits. Shifting by all 64 is undefined: then none is known."""
    return keys >> np.uint64(shift) if shift < _ALL_BITS else np.zeros(len(keys), np.uint64)


def _joined(chunks: Iterable[Numbers]) -> Iterator[Numbers]:
    waiting: list[Numbers] = []
    for chunk in chunks:
        waiting.append(chunk)
        if sum(map(len, waiting)) >= _AT_ONCE or len(waiting) >= _MOST_PIECES:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


# Buckets


def edge_ranks(total: int, buckets: int) -> NDArray[np.int64]:
    """Return int64[B - 1], where the buckets of `total` sorted numbers begin, but for the first.

    Bucket b holds the numbers from rank b * total // B on: no share is off by as much as one.
    """
    return np.arange(1, buckets, dtype=np.int64) * total // buckets


def bucket_numbers(values: Numbers, edges: Numbers) -> NDArray[np.int32]:
    """Return int32[N], the bucket of each number: how many of the sorted edges are at or below it.

    Edges are equal where so many items share a number that it fills several buckets. Such items cannot be told apart,
    so all of them go to the middle one of these buckets, neither to the lowest nor to the highest.
    """
    below, upto = (np.searchsorted(edges, values, side=side) for side in ("left", "right"))
    return ((below + upto + 1) // 2).astype(np.int32)


# Quantiles


def table_ranks(total: int, steps: int) -> NDArray[np.int64]:
    """Return the ranks of a table of quantiles: all of them, or K + 1, the first, the last and K - 1 between."""
    steps = min(steps, total - 1)
    return np.arange(steps + 1, dtype=np.int64) * (total - 1) // max(steps, 1)


def quantiles(values: Numbers, table: Numbers) -> Numbers:
    """Return the quantile of each number, from 0 to 1: the share of the table below it.

    Between two entries it is interpolated; a number that fills several entries is at their middle; what is below or
    above all of the table is at 0 or 1.
    """
    steps = len(table) - 1
    if steps < 1:
        return np.full(len(values), 0.5)
    below, upto = (np.searchsorted(table, values, side=side) for side in ("left", "right"))
    place = (below + upto - 1) / 2
    between = np.flatnonzero((below == upto) & (below > 0) & (below <= steps))
    low, high = table[below[between] - 1], table[below[between]]
    with np.errstate(invalid="ignore", over="ignore"):
        part = (values[between] - low) / (high - low)  # for an infinite gap: 0, or not a number
    place[between] = below[between] - 1 + np.where(np.isfinite(part), part, 0.5)
    return np.clip(place / steps, 0.0, 1.0)
