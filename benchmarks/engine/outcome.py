"""`Outcome`: what one row of the suite measured, and whether that is good enough."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """One measurement. `of` says of what the row may have several; `facts` are the numbers behind the value."""

    of: str
    mark: str  # what the value has to be
    value: str
    passed: bool
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One row of the suite in one mode: V is virtual time, E real processes with accelerators that sleep."""

    id: str
    mode: str
    what: str
    measure: Callable[[], list[Outcome]]


def at_least(of: str, share: float, mark: float, **facts: object) -> Outcome:
    """A share that has to reach its mark."""
    return Outcome(of, f"≥ {mark:g}", f"{share:.3f}", share >= mark, facts)
