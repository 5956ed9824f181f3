"""`View`: what a user sees of a dataset, and how each step leads from one page to the next.

A page is some wanted rows from a place on. Steps may take long (a search over gigabytes), so each can be stopped:
`go_on` is told how far it is, and ends it by returning False. Nothing here draws.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from gristmill.inspection import selection
from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.rows import Place
from gristmill.inspection.wanted import Wanted

GoOn: TypeAlias = Callable[[float], bool]
PAGE_ROWS = 20


def _always(_: float) -> bool:
    return True


@dataclass
class View:
    """A page of a dataset. Every step returns what there is to say about it, or nothing."""

    dataset: Dataset
    page_rows: int = PAGE_ROWS
    wanted: Wanted = field(default_factory=Wanted)
    rows: list[Located] = field(default_factory=list)
    _before: list[Place] = field(default_factory=list)  # where the pages before began, while only some rows are wanted
    _is_sample: bool = False
    _place: Place = Place(0, 0)  # noqa: RUF009  # a tuple
    _num_samples: int = 0

    def first(self, go_on: GoOn = _always) -> str:
        """Show the first page."""
        self._before.clear()
        return self._show(self.dataset.start, go_on)

    def last(self, go_on: GoOn = _always) -> str:
        """Show the last page; of wanted rows it is not known where they end."""
        if not self.wanted.is_all:
            return "the last page is not known while there is a condition"
        last = self.dataset.last()
        return self._show(self.dataset.back(last, self.page_rows - 1), go_on)

    def next(self, go_on: GoOn = _always) -> str:
        """Show the page after this one."""
        if self._is_sample:
            return self._show(self._place, go_on)
        if not self.rows:
            return "there are no rows"
        shown, place = self.rows, self._place
        said = self._show(self.rows[-1].end, go_on)
        if not self.rows:
            self.rows, self._place = shown, place
            return said or "this is the last page"
        self._before.append(place)
        return said

    def previous(self, go_on: GoOn = _always) -> str:
        """Show the page before this one."""
        if self._is_sample:
            return self._show(self._place, go_on)
        if not self.wanted.is_all:
            return self._show(self._before.pop(), go_on) if self._before else "this is the first page that was found"
        if self._place == self.dataset.start:
            return "this is the first page"
        return self._show(self.dataset.back(self._place, self.page_rows), go_on)

    def jump(self, number: int, go_on: GoOn = _always) -> str:
        """Show the row of a number first; while rows are being counted, one about there."""
        self._before.clear()
        return self._show(self.dataset.at_row(number), go_on)

    def sample(self, go_on: GoOn = _always) -> str:
        """Show rows from all over the data; the next step leads back."""
        self._num_samples += 1
        if not self.wanted.is_all:
            return "a sample is taken from all rows: remove the condition first"
        found = selection.sampled(self.dataset, self.wanted, self.page_rows, seed=self._num_samples)
        self.rows, self._is_sample = found.rows, True
        return f"{len(self.rows)} rows from all over the data; the next or previous page leads back"

    def want(self, where: str, go_on: GoOn = _always) -> str:
        """Show only rows a condition holds for, or all again. Raises ConfigError for one that is wrong."""
        wanted = self.dataset.wanted(where, self.wanted.text)
        before = self.wanted
        self.wanted = wanted
        said = self.first(go_on)
        if not self.rows and before is not wanted:
            said = said or "no row: the condition holds for none"
        return said

    def find(self, text: str, place: Place, go_on: GoOn = _always) -> str:
        """Show the next row after a place that holds a text, among the wanted ones."""
        wanted = Wanted(self.wanted.where, text)
        found = selection.first(self.dataset, wanted, 1, place, go_on)
        if not found.rows:
            stopped = "stopped" if found.end is not None else "not found from here to the end"
            return f"{text!r}: {stopped}; {found.said()}"
        self._before.append(self._place)
        return self._show(found.rows[0].place, go_on)

    def _show(self, place: Place, go_on: GoOn) -> str:
        found = selection.first(self.dataset, self.wanted, self.page_rows, place, go_on)
        self.rows, self._place, self._is_sample = found.rows, place, False
        if self.wanted.is_all:
            return ""
        if found.end is not None and len(found.rows) < self.page_rows:
            return f"stopped; {found.said()}"
        return found.said() if not found.rows or found.num_damaged or found.num_of_other_kind else ""
