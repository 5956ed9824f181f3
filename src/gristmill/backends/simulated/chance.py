"""Everything about a simulated item that is left to chance: how long it takes, what it becomes, what is wrong with it.

Drawn from a generator that belongs to the item, so it depends neither on the worker nor on the order, and a run on real
processes that draws from the same spec meets the same items. No clock and no state here.
"""

import math
import random

from gristmill.backends.simulated.spec import SimulationSpec, SlowdownSpec


class Chance:
    """The draws of one spec."""

    def __init__(self, spec: SimulationSpec) -> None:
        self._spec = spec
        self._slowdowns = [[s for s in spec.slowdowns if s.stage == stage.name] for stage in spec.stages]
        self._bad_share = spec.faults.poison_share + spec.faults.fatal_share

    def service_s(self, group: int, item_id: str) -> float:
        """Seconds of work of one item in one stage, as long as nothing slows it down."""
        stage = self._spec.stages[group]
        if not stage.sigma:
            return stage.service_s
        draw = random.Random(f"{self._spec.seed}/{group}/{item_id}").gauss(-(stage.sigma**2) / 2, stage.sigma)
        factor = math.exp(draw)
        return stage.service_s * (factor if stage.longest is None else min(factor, stage.longest))

    def lasts_s(self, group: int, started: float, work_s: float) -> float:
        """Seconds on the clock that `work_s` seconds of work take when begun at `started`."""
        slowdowns = self._slowdowns[group]
        return work_s if not slowdowns else _end_of(slowdowns, started, work_s) - started

    def fan_out(self, group: int, item_id: str) -> int:
        """How many items one item turns into."""
        mean = self._spec.stages[group].fan_out
        whole = int(mean)
        if mean == whole:
            return whole
        return whole + (random.Random(f"{self._spec.seed}/{group}/{item_id}/out").random() < mean - whole)

    def bad_documents(self, item: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the rows of a source item that raise, and those that end their worker."""
        if not self._bad_share:
            return (), ()
        rng = random.Random(f"{self._spec.seed}/bad/{item}")
        draws = [rng.random() for _ in range(self._spec.documents)]
        poison_share = self._spec.faults.poison_share
        poison = tuple(row for row, draw in enumerate(draws) if draw < poison_share)
        fatal = tuple(row for row, draw in enumerate(draws) if poison_share <= draw < self._bad_share)
        return poison, fatal


def _end_of(slowdowns: list[SlowdownSpec], started: float, work_s: float) -> float:
    """When work begun at `started` is done, if its speed changes on the way."""
    now, left = started, work_s
    edges = sorted({edge for s in slowdowns for edge in (s.from_s, s.until_s) if edge > started})
    for edge in [*edges, math.inf]:
        factor = math.prod(s.factor for s in slowdowns if s.from_s <= now < s.until_s)
        if now + left * factor <= edge:
            return now + left * factor
        left -= (edge - now) / factor
        now = edge
    return now


def probes(rows: range, bad: tuple[int, ...]) -> int:
    """Calls it takes to find the bad rows among `rows`, known to hold one, by halving."""
    if len(rows) <= 1:
        return 0
    middle = len(rows) // 2
    halves = (rows[:middle], rows[middle:])
    return 2 + sum(probes(half, bad) for half in halves if any(row in half for row in bad))
