"""How a number is distributed, in counts that add up: what `context.observe` keeps of all the values it was given.

A value falls into a slot by its size: every octave (1 to 2, 2 to 4, ...) has 32 slots of equal width. Of a value only
the lower edge of its slot is kept, at most 3.1 % below it; whole numbers up to 64 are exact. There are
slots of their own for zero, for negative values and for what is not a number; what is beyond 2 to the power
of ±40 counts as that. So a tally has at most 5,186 slots, and as a rule a few dozen, which are kept in a dict.

Counts in fixed slots are the same in whatever order they are added, for one worker or a thousand, and can be taken back
when an attempt is lost. Sketches that choose their slots by what they have seen (t-digest, KLL) promise neither.
"""

import math
from collections.abc import Iterable, Mapping
from typing import SupportsFloat

import msgspec

Slots = dict[int, int]  # slot -> values in it

PER_OCTAVE = 32
LARGEST = 40  # powers of two
NOT_A_NUMBER = 1_000_000  # a slot that no number has
BEYOND = (2 * LARGEST + 1) * PER_OCTAVE  # the last slot, which also has whatever is larger


def slot_of(value: SupportsFloat) -> int:
    """The slot of a value: 0 for zero, negative for negative values, and growing with the value."""
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 300 digits
        number = math.inf if value > 0 else -math.inf  # type: ignore[operator]  # whatever can be that large
    if math.isnan(number):
        return NOT_A_NUMBER
    if not number:
        return 0
    fraction, exponent = math.frexp(abs(number)) if math.isfinite(number) else (0.5, LARGEST + 2)
    slot = (exponent + LARGEST) * PER_OCTAVE + int((fraction - 0.5) * 2 * PER_OCTAVE) + 1
    return int(math.copysign(min(max(slot, 1), BEYOND), number))


def edge_of(slot: int) -> float:
    """The value of this slot that is nearest to zero."""
    if not slot:
        return 0.0
    octave, part = divmod(abs(slot) - 1, PER_OCTAVE)
    return math.copysign(math.ldexp(0.5 + part / (2 * PER_OCTAVE), octave - LARGEST), slot)


def tallied(values: "SupportsFloat | Iterable[SupportsFloat]") -> Slots:
    """The slots of one value, or of all in a list or an array; an Arrow null is not a number."""
    if isinstance(values, int | float):
        return {slot_of(values): 1}
    if isinstance(values, str | bytes):  # numpy would read the number in it
        raise TypeError(f"expected a number; got {values!r:.200}")
    if not hasattr(values, "__len__"):
        each = values if isinstance(values, Iterable) else [values]
        return add_up({}, (slot_of(value) for value in each))
    import numpy as np  # a caller with an array has it already

    numbers = np.asarray(values, np.float64).ravel()
    finite = np.where(np.isinf(numbers), np.copysign(2.0 ** (LARGEST + 1), numbers), np.nan_to_num(numbers, nan=0.0))
    fraction, exponent = np.frexp(np.abs(finite))
    parts = ((fraction - 0.5) * 2 * PER_OCTAVE).astype(np.int64)
    slots = (exponent.astype(np.int64) + LARGEST) * PER_OCTAVE + parts + 1
    slots = np.copysign(np.clip(slots, 1, BEYOND), finite).astype(np.int64)
    slots[finite == 0.0] = 0
    slots[np.isnan(numbers)] = NOT_A_NUMBER
    found, counts = np.unique(slots, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def add_up(slots: Slots, more: Iterable[int]) -> Slots:
    """Count some slots, one value each."""
    for slot in more:
        slots[slot] = slots.get(slot, 0) + 1
    return slots


class Distribution(msgspec.Struct, frozen=True):
    """What can be said of the values in a tally. Values that are not numbers are counted and left out of the rest."""

    slots: Mapping[int, int]

    @property
    def num_values(self) -> int:
        return sum(self.slots.values()) - self.num_not_numbers

    @property
    def num_not_numbers(self) -> int:
        return self.slots.get(NOT_A_NUMBER, 0)

    @property
    def least(self) -> float:
        return self.quantile(0.0)

    @property
    def greatest(self) -> float:
        return self.quantile(1.0)

    def quantile(self, share: float) -> float:
        """The value that this share of all values does not exceed; not a number if there are none."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"quantile: expected a share from 0 to 1; got {share!r}")
        wanted = max(1, math.ceil(share * self.num_values))
        below = 0
        for slot in sorted(slot for slot in self.slots if slot != NOT_A_NUMBER):
            below += self.slots[slot]
            if below >= wanted:
                return edge_of(slot)
        return math.nan

    def to_json(self) -> dict[str, float]:
        """The usual figures, for a report; those of no values are left out."""
        figures: dict[str, float] = {"values": self.num_values}
        if self.num_values:
            shares = {"least": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "greatest": 1.0}
            figures |= {name: self.quantile(share) for name, share in shares.items()}
        if self.num_not_numbers:
            figures["not_numbers"] = self.num_not_numbers
        return figures

    def __str__(self) -> str:
        return in_words(self.to_json())


def in_words(figures: Mapping[str, float]) -> str:
    """The figures of a distribution in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in figures.items())


def shown(number: float) -> str:
    """A number as short as it can be said."""
    return f"{number:,.0f}" if float(number).is_integer() and abs(number) < 1e15 else f"{number:,.4g}"


def metric_lines(
    stage: str, counted: Mapping[str, float], observed: Mapping[str, Mapping[str, float]], *, indent: str = ""
) -> list[str]:
    """What the author of a stage counts and observes, a line for each, for a terminal."""
    lines = [f"{indent}{stage}: {name} {shown(number)}" for name, number in sorted(counted.items())]
    return [*lines, *(f"{indent}{stage}: {name}: {in_words(figures)}" for name, figures in sorted(observed.items()))]
