"""`RunsSite`: what the dashboard's page asks about runs, as JSON and as a stream. Nothing here can be changed."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gristmill.dashboard.history_points import history_points
from gristmill.dashboard.server import Answer, Wrong
from gristmill.dashboard.static_files import StaticFile, read_static
from gristmill.dashboard.watched_run import ENDED, WatchedRun
from gristmill.metrics.snapshot import RunSnapshot

COMMENT_S = 15.0  # between two signs of life on a stream without news: what lies between may cut a silent connection
Query = Mapping[str, str]
Route = Callable[[WatchedRun, Query], object]


class _Moment(RunSnapshot, frozen=True, kw_only=True):
    time: float = 0.0


_decoder = msgspec.json.Decoder(_Moment)


class RunsSite:
    """Answers about the runs it was given; the page names them by their number, from 0."""

    def __init__(self, runs: Sequence[WatchedRun]) -> None:
        self._runs = runs
        self._pages = read_static("gristmill.dashboard")
        self._ended = threading.Event()
        self._routes: dict[str, Route] = {"/api/run": _run, "/api/history": _history}

    @property
    def pages(self) -> Mapping[str, StaticFile]:
        return self._pages

    def end(self) -> None:
        """Let go of everybody who waits for news."""
        self._ended.set()

    def answer(self, path: str, query: Query) -> Answer:
        if path == "/healthz":
            return Answer(b"ok\n", "text/plain")
        if path == "/api/runs":
            return _json([_listed(run) for run in self._runs])
        route = self._routes.get(path)
        if route is None:
            raise Wrong(404, f"expected one of {', '.join(sorted(self._routes))}; got another path")
        return _json(route(self._asked_for(query), query))

    def stream(self, path: str, query: Query) -> Iterator[bytes] | None:
        return self._events(self._asked_for(query)) if path == "/api/stream" else None

    def _asked_for(self, query: Query) -> WatchedRun:
        text = query.get("run", "0")
        if not text.isdecimal() or int(text) >= len(self._runs):
            raise Wrong(404, f"expected the number of a run, from 0 to {len(self._runs) - 1}; got {text[:20]!r}")
        return self._runs[int(text)]

    def _events(self, run: WatchedRun) -> Iterator[bytes]:
        """Snapshots as they come; an empty piece about every second, so that whoever has left is noticed."""
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


def _run(run: WatchedRun, _: Query) -> object:
    return run.state()


def _history(run: WatchedRun, _: Query) -> object:
    lines = (run.source.read("metrics.jsonl") or b"").splitlines()
    return history_points(_moments(lines))


def _moments(lines: Sequence[bytes]) -> Iterator[tuple[float, RunSnapshot]]:
    for line in lines:
        try:
            moment = _decoder.decode(line)
        except msgspec.DecodeError:  # the last line may be half written
            continue
        yield moment.time, moment


def _listed(run: WatchedRun) -> object:
    state = run.state()
    name = state.snapshot.name if state.snapshot else ""
    return {"name": name, "directory": str(run.source), "state": state.run}


def _json(content: object) -> Answer:
    return Answer(msgspec.json.encode(content))
