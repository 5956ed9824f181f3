"""`StageCounts`: what a stage did, as numbers that add up over tasks, workers and resumed runs."""

from collections.abc import Callable, Container
from typing import Any

import msgspec

from gristmill.metrics.error_counts import MAX_KINDS, OTHERS
from gristmill.metrics.tally import Slots

MAX_METRICS = 100  # names of each kind that a stage may give; what it counts under further names is "other"


class StageCounts(msgspec.Struct, array_like=True):
    """Documents in and out of one stage, what became of the others, and what it cost.

    `read` counts documents a reader met for the first time, `created` those a splitter made out of others, `written`
    those that left the pipeline at its end. So over a whole run: read + created = written + dropped + quarantined.
    """

    documents_in: int = 0
    documents_out: int = 0
    read: int = 0
    created: int = 0
    written: int = 0
    quarantined: int = 0
    bytes_in: int = 0
    process_s: float = 0.0
    lost_parts: int = 0  # files, or parts of files, that could not be read: nobody knows how many documents they held
    lost_bytes: int = 0
    dropped: dict[str, int] = msgspec.field(default_factory=dict)  # reason -> documents
    returned_none: int = 0  # documents in tasks for which the stage gave back None and no reason: they count as dropped
    errors: dict[str, int] = msgspec.field(default_factory=dict)  # what failed, by `error_kind` -> documents or parts
    counted: dict[str, int] = msgspec.field(default_factory=dict)  # what the stage's author counts, by name
    observed: dict[str, Slots] = msgspec.field(default_factory=dict)  # values the author has the stage note (tally.py)

    def add(self, other: "StageCounts") -> None:
        _add(self, other)

    def subtract(self, other: "StageCounts") -> None:
        """Take back what was added."""
        _subtract(self, other)

    def note_error(self, kind: str, number: int) -> None:
        """Count what failed by a short name of its kind, for whoever watches; quarantine has all about each."""
        _add_each(self.errors, {kind: number}, _BOUNDS["errors"])

    def measure(self, counted: dict[str, int], observed: dict[str, Slots]) -> None:
        """Add what a stage's author has counted and observed."""
        _add_each(self.counted, counted, _BOUNDS["counted"])
        _add_each(self.observed, observed, _BOUNDS["observed"])

    @property
    def commonest_error(self) -> str:
        """The kind of error most documents failed by, or ""."""
        kinds = [kind for kind, number in self.errors.items() if number > 0 and kind != OTHERS]
        return min(kinds, key=lambda kind: (-self.errors[kind], kind), default="")

    def is_empty(self) -> bool:
        """Whether no document was counted."""
        return not (
            self.documents_in or self.documents_out or self.read or self.quarantined or self.written or self.lost_parts
        )

    @property
    def has_passed(self) -> bool:
        """Whether any document came through the stage; one that it dropped has."""
        return bool(self.documents_out or self.written or self.dropped)

    @property
    def has_failures(self) -> bool:
        return bool(self.quarantined or self.lost_parts)

    @property
    def dropped_total(self) -> int:
        return sum(self.dropped.values())

    def numbers(self, *, but: Container[str] = ()) -> dict[str, float]:
        """Every field that is a number and not zero, by its name."""
        found = {name: getattr(self, name) for name in self.__struct_fields__ if name not in but}
        return {name: value for name, value in found.items() if value and not isinstance(value, dict)}

    def to_json(self) -> dict[str, object]:
        """Only what is not zero, so that a ledger line stays short."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if value}


class NamedCounts(StageCounts, array_like=False, omit_defaults=True, forbid_unknown_fields=True):
    """The same with the names of its fields, for files that people read."""

    @classmethod
    def of(cls, counts: StageCounts) -> "NamedCounts":
        return cls(*(getattr(counts, name) for name in cls.__struct_fields__))

    def plain(self) -> StageCounts:
        """The counts, to calculate with."""
        return StageCounts(*(getattr(self, name) for name in self.__struct_fields__))


Bound = tuple[int, str]  # how many names are kept, and what the others together are called
# Messages of errors may be different for every document, and so may what somebody makes names of metrics from.
_BOUNDS = {"errors": (MAX_KINDS, OTHERS), "counted": (MAX_METRICS, "other"), "observed": (MAX_METRICS, "other")}


def _add_each(mine: dict[Any, Any], theirs: dict[Any, Any], bound: Bound | None = None) -> None:
    """Add numbers by name, or tallies by name, which are numbers by slot."""
    for name, count in theirs.items():
        known = name if bound is None or name in mine or len(mine) < bound[0] else bound[1]
        if type(count) is dict:
            _add_each(mine.setdefault(known, {}), count)
        else:
            mine[known] = mine.get(known, 0) + count


def _subtract_each(mine: dict[Any, Any], theirs: dict[Any, Any], bound: Bound | None = None) -> None:
    """Take back what was added; what nothing is left of is no longer there."""
    for name, count in theirs.items():
        # Gone already if what was added under it came to nothing: zeros, or tallies of no values.
        known = bound[1] if bound is not None and name not in mine and bound[1] in mine else name
        if type(count) is dict:
            left = mine.get(known, {})
            _subtract_each(left, count)
        else:
            left = mine.get(known, 0) - count
        if left:
            mine[known] = left
        else:
            mine.pop(known, None)


def _arithmetic(sign: str, each: str) -> Callable[[StageCounts, StageCounts], None]:
    """Return `x += y` or `x -= y` over all fields, written out from their names: none can be forgotten.

    A loop with getattr and setattr takes five times as long, and books are kept several times for every task (measured
    in docs/log/2026-11-17-back-to-speed.md). Most fields of a task are empty, and those are only looked at.
    """
    lines = [
        f"    if other.{name}: {each}(self.{name}, other.{name}, {_BOUNDS.get(name)})"
        if isinstance(empty, dict)
        else f"    if other.{name}: self.{name} {sign}= other.{name}"
        for name, empty in msgspec.structs.asdict(StageCounts()).items()
    ]
    made: dict[str, Callable[..., None]] = {"add_each": _add_each, "subtract_each": _subtract_each}
    exec("\n".join(["def calculate(self, other):", *lines]), made)  # noqa: S102  # nothing but names written above
    return made["calculate"]


_add, _subtract = _arithmetic("+", "add_each"), _arithmetic("-", "subtract_each")


def balance(counts: list[StageCounts]) -> int:
    """Return read + created - written - dropped - quarantined over all stages: 0 when the books balance."""
    return sum(c.read + c.created - c.written - c.dropped_total - c.quarantined for c in counts)
