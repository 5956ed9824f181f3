"""`RunsSite`: what the dashboard's page asks about runs, as JSON and as a stream. Nothing here can be changed."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gristmill.dashboard.server import Answer, Wrong
from gristmill.dashboard.shown_run import Query, ShownRun
from gristmill.dashboard.static_files import StaticFile, read_static
from gristmill.dashboard.watched_run import ENDED, WatchedRun

COMMENT_S = 15.0  # between two signs of life on a stream without news: a proxy may cut a silent connection
API = "/api/"


class RunsSite:
    """Answers about the runs it was given; the page names them by their number, from 0."""

    def __init__(self, runs: Sequence[ShownRun]) -> None:
        self._runs = runs
        self._pages = read_static("gristmill.dashboard")
        self._ended = threading.Event()

    @property
    def pages(self) -> Mapping[str, StaticFile]:
        return self._pages

    def end(self) -> None:
        """Release everybody who waits for news."""
        self._ended.set()

    def answer(self, path: str, query: Query) -> Answer:
        if path == "/healthz":
            return Answer(b"ok\n", "text/plain")
        if path == "/api/runs":
            return Answer(msgspec.json.encode([_listed(run.watched) for run in self._runs]))
        if path == "/metrics":
            return self._asked_for(query).metrics()
        if not path.startswith(API):
            raise Wrong(404, "expected a question below /api; got another path")
        return self._asked_for(query).answer(path.removeprefix(API), query)

    def stream(self, path: str, query: Query) -> Iterator[bytes] | None:
        return self._events(self._asked_for(query).watched) if path == "/api/stream" else None

    def _asked_for(self, query: Query) -> ShownRun:
        text = query.get("run", "0")
        if not (text.isascii() and text.isdecimal() and len(text) < 9) or int(text) >= len(self._runs):
            raise Wrong(404, f"expected the number of a run, from 0 to {len(self._runs) - 1}; got {text[:20]!r}")
        return self._runs[int(text)]

    def _events(self, run: WatchedRun) -> Iterator[bytes]:
        """Snapshots as they come; an empty piece about every second, so that a client that has left is noticed."""
        number, told_at = 0, time.monotonic()
        while not self._ended.is_set():
            state = run.news(number, self._ended)
            if state is not None:
                number, told_at = state.number, time.monotonic()
                kind = b"end" if state.run in ENDED else b"snapshot"
                yield b"event: %s\nid: %d\ndata: %s\n\n" % (kind, number, msgspec.json.encode(state))
            elif time.monotonic() - told_at >= COMMENT_S:
                told_at = time.monotonic()
                yield b":\n\n"
            else:
                yield b""


def _listed(run: WatchedRun) -> object:
    state = run.state()
    name = state.snapshot.name if state.snapshot else ""
    return {"name": name, "directory": str(run.source), "state": state.run}
