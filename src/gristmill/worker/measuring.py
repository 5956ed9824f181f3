"""Counting what was measured: values of several rules at once, into slots, sums, the nearest to each bound and samples.

Done in two ways: by compiled code, all rules in one call, and in numpy for a worker that has seen little yet, because
loading compiled code takes 0.1 s. Both give the same; a test holds them to it.

Letters: R rules, V values of all rules, D documents, G reasons documents were dropped for.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import ge
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels import tally_layout as layout
from gristmill.kernels.arrow_arrays import is_null, numbers_of
from gristmill.metrics.tally import BEYOND, NOT_A_NUMBER, edge_of, tallied
from gristmill.stages.compiled_kernel import CompiledKernel, Fixed

_count_measures = CompiledKernel("tally", "count_measures")
_FRACTION_BITS = 32
_WINDOW = layout.WINDOWS * layout.NEAREST  # documents of a rule

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]
Keys = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)


class Values(NamedTuple):
    """The values of all rules, one rule after another: those of rule r are [firsts[r], firsts[r + 1])."""

    numbers: Doubles
    kept: NDArray[np.bool_]
    firsts: Longs
    bounds: Doubles  # low and high of each rule; not a number where there is none
    sources: Longs  # which documents they are of: where they begin in `rows`, or ALL, or KEPT
    offsets: Longs  # added to rows to make them numbers of documents
    rows: Longs

    def documents(self) -> list[Longs]:
        """Which documents the values of each rule are of."""
        found: list[Longs] = []
        for rule, (first, end) in enumerate(pairwise(self.firsts.tolist())):
            source = int(self.sources[rule])
            if source == layout.KEPT and rule:
                before = self.kept[self.firsts[rule - 1] : first]
                found.append(found[-1][before])
            elif source >= 0:
                found.append(self.rows[source : source + end - first])
            else:
                found.append(np.arange(end - first))
        return [rows + offset for rows, offset in zip(found, self.offsets.tolist(), strict=True)]


class Gone(NamedTuple):
    """The documents that were dropped, one reason after another."""

    rows: Longs
    firsts: Longs


class Texts(NamedTuple):
    """Texts that keys are made of: text d is data[starts[d]:stops[d]]."""

    data: NDArray[np.uint8]
    starts: Longs
    stops: Longs


class Windows(NamedTuple):
    """The examples of every rule and reason so far, each in a place of its own, in order.

    `nearest` and `sampled` say whether there is one: ELSEWHERE or NOBODY.
    """

    distances: Doubles  # [rules, 4, 8], flat
    found: Keys
    nearest: Longs
    least: Keys  # [reasons, 16], flat
    sampled: Longs

    @classmethod
    def empty(cls, rules: int, reasons: int) -> "Windows":
        """Return windows without a document."""
        near, some = rules * _WINDOW, reasons * layout.SAMPLED
        return cls(
            *(np.full(near, np.inf), np.zeros(near, np.uint64), np.full(near, layout.NOBODY)),
            *(np.zeros(some, np.uint64), np.full(some, layout.NOBODY)),
        )

    def without_samples(self) -> "Windows":
        """Return the windows of rules alone."""
        return self._replace(least=self.least[:0], sampled=self.sampled[:0])

    def has_room(self, rules: int, reasons: int) -> bool:
        """Whether there is a place for this many."""
        return len(self.found) == rules * _WINDOW and len(self.least) == reasons * layout.SAMPLED

    def copied(self) -> "Windows":
        """Return a copy in memory of its own."""
        return Windows(*[part.copy() for part in self])  # type: ignore[arg-type]  # each as it was


class Counted(NamedTuple):
    """What became of the values: sides of rules, refused and kept, as `Part` has them, and examples."""

    sums: Longs  # [R, 2, 2], flat
    extremes: Doubles  # [R, 2, 2]
    ends: NDArray[np.uint32]  # [R, 2]
    slots: NDArray[np.int16]
    counts: NDArray[np.int32]
    windows: NDArray[np.uint16]  # of examples next to a bound: which window, four of each rule (low refused, low kept)
    values: Doubles  # and what was measured
    near: NDArray[np.uint32]  # and which of `documents`
    reasons: NDArray[np.uint16]  # of examples in samples: of which reason
    gone: Longs  # and which of the dropped documents
    sampled: NDArray[np.uint32]  # and which of `documents`
    documents: Longs  # all that are examples, in order, each once
    # How their texts begin, end to end, and where each ends; None if they are still to be found.
    beginnings: tuple[NDArray[np.uint8], NDArray[np.uint32]] | None = None


def numbers_in(values: Any) -> Doubles | Longs | None:
    """Return what a stage measured as numbers, with NaN for what is missing; None if these are not numbers.

    Of a score with several parts the last number counts: for a language, how sure the model is.
    """
    if isinstance(values, np.ndarray):
        kind = values.dtype
        known = values.ndim == 1 and (kind is _DOUBLE or kind is _LONG or kind.kind in "fiub")
        return None if not known else values if kind is _DOUBLE or kind is _LONG else values.astype(np.float64)
    if isinstance(values, pa.ChunkedArray):
        parts = [numbers_in(chunk) for chunk in values.chunks]
        numbers = [part for part in parts if part is not None]
        return np.concatenate([np.empty(0), *numbers]) if len(numbers) == len(parts) else None
    if isinstance(values, pa.Array):
        return _of_arrow(values)
    if any(isinstance(value, str) for value in values):  # numpy would read the number in it
        return None
    try:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


_DOUBLE, _LONG = np.dtype(np.float64), np.dtype(np.int64)  # of which numpy has one each


def _of_arrow(array: pa.Array) -> Doubles | None:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_of_arrow(part) for part in array.flatten()]
        return next((part for part in reversed(parts) if part is not None), None)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    array = array.cast(pa.float64(), safe=False)
    missing = is_null(pa.chunked_array([array]))
    plain = (
        array
        if not array.null_count
        else pa.Array.from_buffers(pa.float64(), len(array), [None, array.buffers()[1]], offset=array.offset)
    )
    numbers = numbers_of(plain).astype(np.float64)
    numbers[missing] = np.nan
    return numbers


class Measures(NamedTuple):
    """What was measured by some rules: of each its numbers, which were kept, and of which documents."""

    numbers: list[Doubles | Longs]
    kept: list[NDArray[np.bool_] | None]  # None is all
    sources: list[int]  # KEPT, ALL, or where its documents begin in `rows` end to end
    offsets: list[int]
    rows: list[Longs]


class Laid:
    """Lays values out in memory that is used again: fresh pages cost more than filling them."""

    def __init__(self) -> None:
        self._numbers, self._kept = np.empty(0), np.empty(0, np.bool_)
        self._gone, self._ones = np.empty(0, np.int64), np.empty(0, np.bool_)

    def values(self, given: Measures, bounds: Doubles) -> Values:
        """Return the values of all rules."""
        sizes = [len(each) for each in given.numbers]
        firsts = np.array([0, *sizes]).cumsum()
        total = int(firsts[-1])
        if len(self._numbers) < total:
            self._numbers, self._kept = np.empty(total * 5 // 4), np.empty(total * 5 // 4, np.bool_)
            self._ones = np.ones(total * 5 // 4, np.bool_)
        kept = [self._ones[:size] if each is None else each for each, size in zip(given.kept, sizes, strict=True)]
        return Values(
            np.concatenate(given.numbers, out=self._numbers[:total]) if sizes else self._numbers[:0],
            np.concatenate(kept, out=self._kept[:total]) if sizes else self._kept[:0],
            *(firsts, bounds, np.array(given.sources, np.int64), np.array(given.offsets, np.int64)),
            np.concatenate(given.rows) if len(given.rows) > 1 else given.rows[0] if given.rows else firsts[:0],
        )

    def gone(self, rows: Sequence[Any]) -> Gone:
        """Return the documents that were dropped for each reason."""
        firsts = np.array([0, *map(len, rows)]).cumsum()
        total = int(firsts[-1])
        if len(self._gone) < total:
            self._gone = np.empty(total * 5 // 4, np.int64)
        return Gone(np.concatenate(rows, out=self._gone[:total]) if len(rows) else self._gone[:0], firsts)


_NO_TEXTS = Texts(np.zeros(1, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))


class _Room:
    """Reused memory for what compiled code gives back."""

    def __init__(self, rules: int, reasons: int, near: int, samples: int, documents: int) -> None:
        self.fits = rules, reasons, near, samples, documents
        chosen = min(documents, near + samples)
        self.sums, self.extremes = _room(4 * rules, np.int64), _room(4 * rules, np.float64)
        self.ends = _room(2 * rules, np.uint32)
        self.near_rows, self.marks = _room(near, np.int64), Fixed(np.zeros(documents, np.int32))
        self.owners, self.examples = _room(near + samples, np.uint16), _room(near + samples, np.uint32)
        self.values, self.gone = _room(near, np.float64), _room(samples, np.int64)
        self.documents = _room(chosen, np.int64)
        # Few of its pages are ever used.
        self.beginnings = _room(chosen * layout.BEGINNING * layout.LONGEST_CHARACTER + 8, np.uint8)
        self.beginning_ends, self.made = _room(chosen, np.uint32), _room(3, np.int64)

    def has(self, *wanted: int) -> bool:
        """Whether there is that much."""
        return all(map(ge, self.fits, wanted))


def _room(size: int, kind: type[_Number]) -> Fixed[_Number]:
    return Fixed(np.empty(size, kind))


class Counter:
    """Counts with compiled code, in memory that is used again: what it returns is valid until it is called again."""

    def __init__(self) -> None:
        self._counts = Fixed(np.zeros(2 * layout.SLOTS, np.int32))
        self._slots, self._taken, self._current = _room(0, np.int16), _room(0, np.int32), _room(0, np.int64)
        self._room = _Room(0, 0, 0, 0, 0)

    def count(
        self,
        values: Values,
        gone: Gone,
        keys: Keys,
        windows: Windows,
        places: tuple[Longs, Longs] | None = None,
        texts: Texts | None = None,
    ) -> Counted:
        """Count the values of all rules and choose examples in one call, which are entered into `windows` too.

        `places` say where the windows of each rule and the sample of each reason are; without it, in order. Keys are
        made if there are `texts`, and beginnings.
        """
        rules, reasons, number = len(values.firsts) - 1, len(gone.firsts) - 1, len(values.numbers)
        own, whose = (np.arange(rules), np.arange(reasons)) if places is None else places
        if self._slots.size < number:
            size = number * 5 // 4
            self._slots, self._taken, self._current = (
                _room(size, np.int16),
                _room(size, np.int32),
                _room(size, np.int64),
            )
        wanted = rules, reasons, len(windows.found), len(windows.least), len(keys)
        if not self._room.has(*wanted):
            self._room = _Room(*map(max, self._room.fits, wanted))
        room = self._room
        data, starts, stops = texts or _NO_TEXTS
        taken = _count_measures(
            *(data, starts, stops, len(starts), keys, rules, values.firsts, values.numbers),
            *(values.kept.view(np.uint8), values.sources, values.offsets, values.rows, self._current, values.bounds),
            *(own, reasons, gone.firsts, gone.rows, whose, self._counts, room.sums, room.extremes, room.ends),
            *(number, self._slots, self._taken, windows.distances, windows.found, windows.nearest, room.near_rows),
            *(windows.least, windows.sampled, *wanted[2:], room.marks, room.owners, room.examples, room.values),
            *(room.gone, room.documents, room.beginnings, room.beginning_ends, room.made),
        )
        near, samples, chosen = room.made.array.tolist()
        first = len(windows.found)
        end = first + samples
        return Counted(
            sums=room.sums.array[: 4 * rules],
            extremes=room.extremes.array[: 4 * rules],
            ends=room.ends.array[: 2 * rules],
            slots=self._slots.array[:taken],
            counts=self._taken.array[:taken],
            windows=room.owners.array[:near],
            values=room.values.array[:near],
            near=room.examples.array[:near],
            reasons=room.owners.array[first:end],
            gone=room.gone.array[:samples],
            sampled=room.examples.array[first:end],
            documents=room.documents.array[:chosen],
            beginnings=None if texts is None else (room.beginnings.array, room.beginning_ends.array[:chosen]),
        )


def count_plainly(values: Values, gone: Gone, keys: Keys) -> Counted:
    """Count without compiled code."""
    sides: list[tuple[dict[int, int], int, float, float]] = []
    windows: list[tuple[int, int, int]] = []
    for rule, ((first, end), rows_of_rule) in enumerate(
        zip(pairwise(values.firsts.tolist()), values.documents(), strict=True)
    ):
        low, high = values.bounds[2 * rule : 2 * rule + 2]
        for wanted in (False, True):
            places = np.flatnonzero(values.kept[first:end] == wanted)
            numbers, own = values.numbers[first:end][places] + 0.0, keys[rows_of_rule[places]]
            sides.append(_side(numbers))
            for place, (bound, other) in enumerate(((low, high), (high, low))):
                near = _nearest(places, numbers, own, bound, other, is_high=place == 1)
                number = layout.WINDOWS * rule + 2 * place + wanted
                windows += [(number, first + at, int(rows_of_rule[at])) for at in near]
    windows.sort(key=lambda found: found[0])  # and within a window as they are
    samples = [
        (reason, first + at)
        for reason, (first, end) in enumerate(pairwise(gone.firsts.tolist()))
        for at in np.unique(keys[gone.rows[first:end]], return_index=True)[1][: layout.SAMPLED].tolist()
    ]
    slots = [layout.NOT_A_NUMBER if slot == NOT_A_NUMBER else slot for found, *_ in sides for slot in found]
    totals = [divmod(total, 1 << _FRACTION_BITS) for _, total, _, _ in sides]
    window, nearest, rows = np.array(windows, np.int64).reshape(-1, 3).T
    reasons, sampled = np.array(samples, np.int64).reshape(-1, 2).T
    documents, numbers_of_documents = np.unique(np.concatenate([rows, gone.rows[sampled]]), return_inverse=True)
    which: NDArray[np.uint32] = numbers_of_documents.astype(np.uint32)
    return Counted(
        sums=np.array(totals, np.int64).ravel(),
        extremes=np.array([(least, most) for _, _, least, most in sides], np.float64).ravel(),
        ends=np.cumsum([len(found) for found, *_ in sides], dtype=np.uint32),
        slots=np.array(slots, np.int16),
        counts=np.array([count for found, *_ in sides for count in found.values()], np.int32),
        windows=window.astype(np.uint16),
        values=values.numbers[nearest] + 0.0,  # so that -0.0 becomes 0.0
        near=which[: len(rows)],
        reasons=reasons.astype(np.uint16),
        gone=sampled,
        sampled=which[len(rows) :],
        documents=documents,
    )


def _side(numbers: Doubles) -> tuple[dict[int, int], int, float, float]:
    """Return slots in order, the sum in fixed point, the least and the greatest."""
    slots = dict(sorted(tallied(numbers).items()))
    plain = numbers[~np.isnan(numbers)]
    in_range = plain[np.abs(plain) < edge_of(BEYOND)]  # below the last slot
    whole = np.floor(in_range)
    fractions = np.rint((in_range - whole) * 2.0**_FRACTION_BITS).astype(np.int64)
    total = (int(whole.astype(np.int64).sum()) << _FRACTION_BITS) + int(fractions.sum())
    return slots, total, float(plain.min(initial=np.inf)), float(plain.max(initial=-np.inf))


def _nearest(
    places: Longs, numbers: Doubles, keys: Keys, bound: float, other: float, *, is_high: bool
) -> Sequence[int]:
    if np.isnan(bound):
        return []
    distance, further = np.abs(numbers - bound), np.abs(numbers - other)
    mine = np.isfinite(distance) & (np.isnan(further) | (distance < further if is_high else distance <= further))
    order = np.lexsort((keys[mine], distance[mine]))
    chosen: dict[int, int] = {}
    for at in order.tolist():
        chosen.setdefault(int(keys[mine][at]), int(places[mine][at]))
        if len(chosen) == layout.NEAREST:
            break
    return list(chosen.values())
