"""`InspectSite`: what the page asks about a dataset, as JSON. It can look, and change nothing.

A question names places in the files that were opened, never a path. One that would take long (a search over
gigabytes) is answered after a second with what was found so far and where to go on, and the page asks again: so it
can be stopped by closing the page. Labels are given in the terminal, because this server has no route that writes.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

import msgspec

from gristmill.dashboard.server import Answer, Wrong
from gristmill.dashboard.static_files import StaticFile, read_static
from gristmill.errors import ConfigError
from gristmill.inspection import selection
from gristmill.inspection.columns import of_row
from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.difference import compare
from gristmill.inspection.labels import as_json
from gristmill.inspection.rows import Place
from gristmill.inspection.safe_text import shortened
from gristmill.inspection.show import as_text
from gristmill.inspection.statistics import measure
from gristmill.inspection.wanted import Wanted
from gristmill.inspection.words import difference_lines

ANSWER_S = 1.0  # a search is answered after this, and goes on with the next question
STATISTICS_S = 5.0  # of rows a condition holds for; a sample of all takes less
MOST_ROWS = 200
_BRIEF_CHARS = 200
_TEXT_CHARS = 200_000
_SHARED = ("api.js", "dom.js", "words.js", "style.css")  # the dashboard's
Query = Mapping[str, str]


class InspectSite:
    """Answers about one dataset, and its difference to another if there is one."""

    def __init__(self, dataset: Dataset, *, there: Dataset | None = None, id_field: str = "id") -> None:
        self._dataset, self._there, self._id_field = dataset, there, id_field
        shared = read_static("gristmill.dashboard")
        own = read_static("gristmill.inspection.web")
        self._pages = {**{f"/static/{name}": shared[f"/static/{name}"] for name in _SHARED}, **own}
        self._difference: list[str] | None = None
        self._comparing: threading.Thread | None = None
        self._lock = threading.Lock()
        self._routes: dict[str, Callable[[Query], object]] = {
            "/api/about": self._about, "/api/page": self._page, "/api/row": self._row,
            "/api/statistics": self._statistics, "/api/difference": self._compared,
        }  # fmt: skip

    @property
    def pages(self) -> Mapping[str, StaticFile]:
        return self._pages

    def answer(self, path: str, query: Query) -> Answer:
        if path == "/healthz":
            return Answer(b"ok\n", "text/plain")
        route = self._routes.get(path)
        if route is None:
            raise Wrong(404, f"expected one of {', '.join(sorted(self._routes))}; got another path")
        try:
            return Answer(msgspec.json.encode(route(query)))
        except ConfigError as error:  # not a condition, or a column that is not there
            raise Wrong(400, str(error)) from error

    def stream(self, path: str, query: Query) -> Iterator[bytes] | None:
        return None

    def _about(self, _: Query) -> object:
        kinds, total = self._dataset.kinds(), self._dataset.num_rows()
        return {
            "paths": self._dataset.paths[:20], "num_files": len(self._dataset.paths), "num_rows": total.rows,
            "is_exact": total.is_exact, "has_difference": self._there is not None, "id_field": self._id_field,
            "columns": [{"name": name, "kind": kinds[name]} for name in self._dataset.columns()],
        }  # fmt: skip

    def _page(self, query: Query) -> object:
        """Rows from a place on, or before it, from a row's number on, the last ones, or some at random."""
        count = _number(query, "count", 20, most=MOST_ROWS)
        wanted = self._dataset.wanted(query.get("where", ""), query.get("text", ""))
        if "sample" in query:
            found = selection.sampled(self._dataset, Wanted(), count, seed=_number(query, "sample", 0))
            return self._found(found, found.rows[0].place if found.rows else self._dataset.start)
        place = self._asked_for(query, count)
        deadline = time.monotonic() + ANSWER_S
        shares = [0.0]

        def go_on(share: float) -> bool:
            shares[0] = share
            return time.monotonic() < deadline

        found = selection.first(self._dataset, wanted, count, place, go_on)
        is_stopped = found.end is not None and len(found.rows) < count
        next_place = found.end if is_stopped else found.rows[-1].end if found.rows else None
        return {
            **self._found(found, place), "next": next_place and _written(next_place),
            "is_stopped": is_stopped, "share": shares[0],
        }  # fmt: skip

    def _asked_for(self, query: Query, count: int) -> Place:
        if "row" in query:
            return self._dataset.at_row(_number(query, "row", 1))
        if "last" in query:
            return self._dataset.back(self._dataset.last(), count - 1)
        if "before" in query:
            return self._dataset.back(self._place(query["before"]), count)
        return self._place(query.get("place", "0.0"))

    def _found(self, found: selection.Selection, place: Place) -> dict[str, object]:
        names = self._dataset.columns()
        total = self._dataset.num_rows()
        return {
            "place": _written(place), "rows": [self._brief(located, names) for located in found.rows],
            "said": found.said() if found.num_read else "", "num_rows": total.rows, "is_exact": total.is_exact,
        }  # fmt: skip

    def _brief(self, located: Located, names: list[str]) -> dict[str, object]:
        number = self._dataset.row_at(located.place)
        shown = {"place": _written(located.place), "row": number.rows, "is_exact": number.is_exact}
        if located.row.damage:
            return {**shown, "damage": shortened(located.row.damage, _BRIEF_CHARS)}
        values = located.row.values
        return {**shown, "cells": [shortened(as_text(of_row(values, name)), _BRIEF_CHARS) for name in names]}

    def _row(self, query: Query) -> object:
        """One row in full, of very long values the beginning."""
        rows = self._dataset.page(self._place(query.get("place", "0.0")), 1)
        if not rows:
            raise Wrong(404, "expected the place of a row; there is none")
        located = rows[0]
        number = self._dataset.row_at(located.place)
        return {
            "row": number.rows, "is_exact": number.is_exact, "name": self._dataset.place_name(located.place),
            "damage": located.row.damage, "raw": located.row.raw,
            "values": [
                {"name": name, "text": shortened(as_text(value, indent=2), _TEXT_CHARS)}
                for name, value in located.row.values.items()
            ],
        }  # fmt: skip

    def _statistics(self, query: Query) -> object:
        deadline = time.monotonic() + STATISTICS_S
        wanted = self._dataset.wanted(query.get("where", ""))
        found = measure(
            self._dataset, self._dataset.columns(), seed=0, wanted=wanted, go_on=lambda _: time.monotonic() < deadline
        )
        return {"said": found.said(), "columns": [as_json(asdict(column)) for column in found.columns]}

    def _compared(self, _: Query) -> object:
        """The difference, once it is known; the first question starts to compare."""
        there = self._there
        if there is None:
            raise Wrong(404, "expected a second dataset: start with --diff PATH")
        with self._lock:
            if self._comparing is None:
                self._comparing = threading.Thread(target=self._compare, args=(there,), daemon=True)
                self._comparing.start()
        return {"lines": self._difference}

    def _compare(self, there: Dataset) -> None:
        try:
            found = compare(self._dataset, there, id_field=self._id_field)
            self._difference = list(difference_lines(self._dataset, there, found, self._id_field))
        except (ConfigError, OSError) as error:
            self._difference = [str(error)]

    def _place(self, text: str) -> Place:
        file, dot, offset = text.partition(".")
        if not (dot and file.isdecimal() and offset.isdecimal()) or int(file) >= len(self._dataset.paths):
            raise Wrong(400, f"expected a place as an answer gave it, FILE.OFFSET; got {text[:40]!r}")
        return Place(int(file), min(int(offset), 1 << 62))


def _written(place: Place) -> str:
    return f"{place.file}.{place.offset}"


def _number(query: Query, name: str, otherwise: int, most: int = 1 << 62) -> int:
    text = query.get(name, str(otherwise))
    if not text.isdecimal() or len(text) > 18:
        raise Wrong(400, f"expected {name} to be a number; got {text[:40]!r}")
    return max(1, min(int(text), most))
