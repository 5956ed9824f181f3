"""Rows taken out of a dataset, the first wanted ones or some at random, and what was met on the way."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.rows import Found, Place
from gristmill.inspection.wanted import Wanted


@dataclass
class Selection:
    """The rows; how many were looked at to find them, and how many of those could not be judged."""

    rows: list[Located] = field(default_factory=list)
    num_read: int = 0
    num_damaged: int = 0
    num_of_other_kind: int = 0
    end: Place | None = None  # None: everything was looked at

    def add(self, found: Found) -> None:
        """Count what a stretch held."""
        self.num_read += found.num_read
        self.num_damaged += found.num_damaged
        self.num_of_other_kind += found.num_of_other_kind

    def said(self) -> str:
        """What a reader should know about rows that are not here."""
        parts = [f"{self.num_read:,} rows looked at"]
        parts += [f"{self.num_damaged:,} damaged, which cannot be judged"] if self.num_damaged else []
        parts += [f"{self.num_of_other_kind:,} values not of their column's kind"] if self.num_of_other_kind else []
        return ", ".join(parts)


def first(
    dataset: Dataset, wanted: Wanted, count: int, place: Place, go_on: Callable[[float], bool] = lambda _: True
) -> Selection:
    """The first wanted rows from a place on. `go_on` is told how far the search is, and ends it by returning False."""
    selection = Selection()
    if wanted.is_all:
        selection.rows = dataset.page(place, count)
        return selection
    for looked in dataset.look(place, wanted):
        selection.add(looked.found)
        selection.rows += looked.rows
        if len(selection.rows) >= count or not go_on(looked.share):
            selection.end = looked.end
            break
    del selection.rows[count:]
    return selection


def sampled(dataset: Dataset, wanted: Wanted, count: int, *, seed: int) -> Selection:
    """Rows chosen at random. To choose among wanted rows all are looked at, and each has the same chance."""
    selection = Selection()
    if wanted.is_all:
        selection.rows = [located for run in dataset.sample(count, seed=seed) for located in run]
        return selection
    chance, num_found = random.Random(seed), 0
    for looked in dataset.look(dataset.start, wanted):
        selection.add(looked.found)
        for located in looked.rows:
            num_found += 1
            if len(selection.rows) < count:
                selection.rows.append(located)
            elif (number := chance.randrange(num_found)) < count:
                selection.rows[number] = located
    selection.rows.sort(key=lambda located: located.place)
    return selection
