"""`ShownRun`: one run with everything the page can ask about it.

What is expensive to find out (the books, what was recorded, the schedule) is got from the functions in `Readers`,
and kept; for a live run it is found out again now and then.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gristmill.dashboard.funnel import StageBytes, funnel_of
from gristmill.dashboard.history_points import HistoryPoints
from gristmill.dashboard.kept_documents import KeptDocuments
from gristmill.dashboard.measures import Measures
from gristmill.dashboard.run_data import RunData
from gristmill.dashboard.server import Answer, Wrong
from gristmill.dashboard.timeline import KINDS, Happened, Timeline, events, one_worker, spans_within, workers
from gristmill.dashboard.watched_run import ENDED, Remembered, WatchedRun

if TYPE_CHECKING:
    from gristmill.metrics.exposition import Exposition

Query = Mapping[str, str]


@dataclass(frozen=True)
class Readers:
    """What a command knows how to find out about a run. Each may take a while."""

    documents: Callable[[], tuple[RunData, Measures, Mapping[str, StageBytes]]]
    history: Callable[[], HistoryPoints]
    timeline: Callable[[], Timeline]
    trace: Callable[[], bytes]
    quarantine_files: Callable[[], Sequence[str]]


class ShownRun:
    """Answers questions about one run. May be used by many threads."""

    def __init__(self, watched: WatchedRun, readers: Readers) -> None:
        self.watched = watched
        self._readers = readers
        self._found = Remembered(readers.documents, self._has_ended)
        self._history = Remembered(readers.history, self._has_ended)
        self._timeline = Remembered(readers.timeline, self._has_ended)
        self._documents = KeptDocuments()
        self._exposition: Exposition | None = None
        self._lock = threading.Lock()
        self._routes: dict[str, Callable[[Query], object]] = {
            "run": lambda _: self.watched.state(),
            "history": lambda _: self._history.get(),
            "funnel": lambda _: funnel_of(*self._found.get()),
            "slices": self._slices,
            "rules": lambda _: self._rules(),
            "rule": self._rule,
            "reasons": lambda _: self._reasons(),
            "examples": self._examples,
            "document": self._document,
            "quarantine": lambda _: self._found.get()[0].documents.quarantine,
            "quarantined": self._quarantined,
            "workers": lambda _: self._workers(),
            "worker": self._worker,
            "schedule": self._schedule,
            "events": self._events,
        }

    @property
    def questions(self) -> list[str]:
        """What can be asked."""
        return sorted([*self._routes, "trace"])

    def answer(self, question: str, query: Query) -> Answer:
        """Return the answer as JSON."""
        if question == "trace":
            return Answer(self._readers.trace())
        route = self._routes.get(question)
        if route is None:
            raise Wrong(404, f"expected one of {', '.join(self.questions)}; got another path")
        return Answer(msgspec.json.encode(route(query)))

    def metrics(self) -> Answer:
        """Return the latest snapshot as text for Prometheus."""
        from gristmill.metrics.exposition import Exposition

        with self._lock:
            self._exposition = self._exposition or Exposition()
            snapshot = self.watched.state().snapshot
            if snapshot is not None:
                self._exposition.add(snapshot)
            return Answer(*self._exposition.encode())

    def _has_ended(self) -> bool:
        return self.watched.state().run in ENDED

    # Rules

    def _slices(self, query: Query) -> object:
        column = _given(query, "column")
        values = self._found.get()[1].slices.get(column)
        if values is None:
            raise Wrong(404, f"expected a column there are slices by; got {column[:100]!r}")
        return {"column": column, "values": values}

    def _rules(self) -> object:
        return [
            {"stage": rule.stage, "name": rule.name, "refused": rule.num_refused, "kept": rule.num_kept}
            for rule in self._found.get()[1].rules
        ]

    def _rule(self, query: Query) -> object:
        found = self._found.get()[1].rule(_given(query, "stage"), _given(query, "rule"))
        if found is None:
            raise Wrong(404, "expected a rule of this run that was measured; got another")
        return found

    # Documents

    def _reasons(self) -> object:
        flows = self._found.get()[0].documents.funnel
        found = [(flow.stage, reason) for flow in flows for reason in flow.reasons]
        found.sort(key=lambda pair: -pair[1].documents)
        return [{"stage": stage, "reason": one.reason, "documents": one.documents} for stage, one in found]

    def _examples(self, query: Query) -> object:
        stage, reason = _given(query, "stage"), _given(query, "reason")
        directory = self._found.get()[0].setting.rejects_path
        kept = self._documents.rejects(Path(directory), stage, reason) if directory else []
        if kept:
            return {"examples": kept, "note": f"The first of those in {directory}."}
        sampled = self._found.get()[1].samples.get((stage, reason), [])
        return {"examples": sampled, "note": "A sample of all of them." if sampled else ""}

    def _quarantined(self, query: Query) -> object:
        home = Path(str(self.watched.source)).resolve()
        found = map(Path, self._readers.quarantine_files())
        files = [file for file in found if file.resolve().is_relative_to(home)]  # no link leads out of the run
        wanted = [_given(query, name) for name in ("stage", "kind", "message")]
        return {"records": self._documents.quarantined(files, *wanted)}

    def _document(self, query: Query) -> object:
        found = self._documents.document(_number(query, "ref"))
        if found is None:
            raise Wrong(404, "expected the number of a document that was shown; got another")
        return found

    # Workers

    def _workers(self) -> object:
        timeline = self._timeline.get()
        found = workers(timeline, is_live=not self._has_ended())
        named = {"groups": timeline.groups, "duration_s": timeline.duration_s, "problem": timeline.problem}
        return {**named, "workers": [{"number": w.number, "group": w.group, "state": w.state} for w in found]}

    def _worker(self, query: Query) -> object:
        found = one_worker(self._timeline.get(), _number(query, "worker"), is_live=not self._has_ended())
        if found is None:
            raise Wrong(404, "expected the number of a worker; got another")
        return found

    def _schedule(self, query: Query) -> object:
        timeline = self._timeline.get()
        start, end = _seconds(query, "from", 0.0), _seconds(query, "to", timeline.duration_s)
        spans, number = spans_within(timeline, start, end)
        busy = workers(timeline, is_live=not self._has_ended())
        return {
            "groups": timeline.groups,
            "kinds": KINDS,
            "duration_s": timeline.duration_s,
            "problem": timeline.problem,
            "num_spans": number,
            "spans": spans,
            "busy": [{"worker": w.number, "group": w.group, "tasks": w.tasks, "busy_s": w.busy_s} for w in busy],
        }

    def _events(self, query: Query) -> object:
        state = self.watched.state()
        snapshot = state.snapshot
        said = [] if snapshot is None else [Happened("message", snapshot.elapsed_s, m) for m in snapshot.messages]
        return events(self._timeline.get(), said, query.get("kind"))


def _given(query: Query, name: str) -> str:
    if name not in query:
        raise Wrong(400, f"expected {name!r} in the question; got {', '.join(map(repr, query))[:200] or 'nothing'}")
    return query[name]


def _number(query: Query, name: str) -> int:
    text = _given(query, name)
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Wrong(400, f"expected {name!r} to be a number; got {text[:50]!r}")
    return int(text)


def _seconds(query: Query, name: str, default: float) -> float:
    try:
        return float(query.get(name, default))
    except ValueError:
        raise Wrong(400, f"expected {name!r} to be seconds; got {query[name][:50]!r}") from None
