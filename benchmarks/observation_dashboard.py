"""What the web dashboard weighs and costs: its page, an update of it in a real browser, and its server.

    python -m benchmarks.observation_dashboard [--updates 15]

The run is made up: 40 stages, 1,000 workers, ten hours of history, and a snapshot a second written to its directory
as a run would. The server is a process of its own, as for a user. An update is what the browser's main thread spent on
one snapshot, in CPU time: scripts, styles, layout and painting together.
"""

import argparse
import contextlib
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
from benchmarks.record import header

from gristmill.metrics.history_writer import HistoryWriter, interval_s
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

STAGES, WORKERS, HOURS = 40, 1_000, 10
SPANS_OF_A_WORKER = 60
STATIC = Path(__file__).parents[1] / "src" / "gristmill" / "dashboard" / "static"
MARKS = {"page_kb": 100, "update_ms": 50, "server_mb": 60}
NEXT_UPDATE = """new Promise((done) => {
    const count = () => performance.getEntriesByName("gristmill-update").length, was = count();
    const look = () => count() > was ? requestAnimationFrame(() => requestAnimationFrame(done)) : setTimeout(look, 50);
    look();
})"""
SCREENS = ("flow", "funnel", "workers", "schedule", "events")


def snapshot(elapsed: float, made_at: float) -> RunSnapshot:
    """The state of the made-up run after so many seconds."""
    each = WORKERS // STAGES
    stages = []
    for number in range(STAGES):
        came = int(elapsed * 9_000 * (1 - number / 80))
        lost = int(elapsed * 9_000 / 80)
        busy = each - (number + int(elapsed)) % 7
        states = {"starting": 0, "idle": each - busy, "busy": busy, "blocked": 0, "draining": 0}
        stages.append(
            StageSnapshot(
                *(
                    f"stage_{number:02}",
                    number,
                    came,
                    came - lost,
                    lost,
                    0,
                    came * 3_000,
                    elapsed * busy * 0.9,
                    each,
                    busy,
                ),
                queued_tasks=number % 5,
                queue_s=(number * 7 + int(elapsed)) % 13,
                memory_bytes=busy * 300_000_000,
                reasons={f"reason_{k}": lost // 3 for k in range(3)},
                worker_states=states,
                last_progress_at=made_at,
            )
        )
    read = stages[0].documents_in
    kept = stages[-1].documents_out
    return RunSnapshot(
        *("large", "running", elapsed, int(elapsed), 72_000, read, kept, read - kept, 0, 0, read * 3_000, 10**15),
        memory_bytes=int(3e11),
        memory_limit=int(4e11),
        eta_s=40_000 - elapsed,
        stages=tuple(stages),
        bound_s=elapsed * 0.9,
        resource="cpu",
        shares={"useful": 0.8, "starved": 0.15, "setup": 0.05},
        made_at=made_at,
        started_at=made_at - elapsed,
        resource_seconds={"cpu": {"useful": elapsed * 800, "starved": elapsed * 150, "setup": elapsed * 50}},
    )


def write_history(place: Path) -> None:
    """Write ten hours of it."""
    writer, elapsed, end = HistoryWriter(), 0.0, HOURS * 3600.0
    began = time.time() - end
    with (place / "metrics.jsonl").open("wb") as file:
        while elapsed < end:
            elapsed += interval_s(elapsed)
            file.write(writer.lines(snapshot(elapsed, began + elapsed)))


# The server, in a process of its own


def timeline() -> object:
    """What a replay of its log would give."""
    from gristmill.dashboard.timeline import LOG_ENDS, Timeline

    made = Timeline(groups=tuple(f"stage_{number:02}" for number in range(STAGES)))
    long = HOURS * 3600.0 / SPANS_OF_A_WORKER
    for worker in range(WORKERS):
        for step in range(SPANS_OF_A_WORKER):
            last = step == SPANS_OF_A_WORKER - 1
            start = step * long + worker % 17
            end = HOURS * 3600.0 if last else start + long * 0.9
            number = made.add("task" if step else "set-up", worker, worker % STAGES, 0, start, end)
            made.items.append(f"part-{worker:04}-{step:04}")
            made.documents.append(3_000)
            if last:
                made.notes[number] = LOG_ENDS
        for second in range(0, 36_000, 300):
            made.sample(worker, float(second), 300_000_000 + second)
    for number in range(36_000):
        made.mark("commit", float(number), f"part-{number}")
    return made


def documents() -> object:
    """Its books: what is read of a run whose first partition is not committed yet."""
    from gristmill.dashboard.measures import Measures
    from gristmill.dashboard.run_data import Books, Documents, Reason, RunData, Setting, StageFlow
    from gristmill.dashboard.run_time import RunTime

    now = snapshot(36_000.0, time.time())
    flows = [
        StageFlow(
            **dict.fromkeys(StageFlow.__struct_fields__, 0)
            | {
                "stage": stage.name,
                "kind": "",
                "documents_in": stage.documents_in,
                "documents_out": stage.documents_out,
            }
            | {"dropped": stage.dropped, "bytes_in": stage.bytes_in, "counted": {}, "observed": {}}
            | {"reasons": tuple(Reason(reason=name, documents=n) for name, n in stage.reasons.items())}
        )
        for stage in now.stages
    ]
    found = Documents(books=Books(read=now.read, written=now.written, dropped=now.dropped), funnel=tuple(flows))
    run = RunData(
        run_dir="",
        name="large",
        state="running",
        is_live=True,
        process="",
        documents=found,
        time=RunTime(),
        setting=Setting(),
    )
    return run, Measures([], {}, {}), {}


class _Alive:
    """The run directory, of a run whose process is taken to live."""

    def __init__(self, place: str) -> None:
        self.place = Path(place)

    def read(self, name: str) -> bytes | None:
        file = self.place / name
        return file.read_bytes() if file.is_file() else None

    def life(self) -> object:
        from gristmill.dashboard.run_data import Life

        return Life("process 1", is_alive=True)


def serve(place: str) -> None:
    """Serve it as `gristmill dashboard` does, with the same command line loaded and the same processes apart."""
    import functools

    import gristmill.cli.main  # noqa: F401  # what a user's server has loaded
    from gristmill.cli.run_readers import read_history_points
    from gristmill.dashboard.apart import apart
    from gristmill.dashboard.guard import Guard
    from gristmill.dashboard.runs_site import RunsSite
    from gristmill.dashboard.server import WebServer
    from gristmill.dashboard.shown_run import Readers, ShownRun
    from gristmill.dashboard.watched_run import WatchedRun

    readers = Readers(
        documents=functools.partial(apart, documents),
        timeline=functools.partial(apart, timeline),
        history=functools.partial(apart, read_history_points, place),
        trace=lambda: b"{}",
        quarantine_files=list,
    )
    site = RunsSite([ShownRun(WatchedRun(_Alive(place)), readers)])
    with WebServer(site, Guard.for_address("127.0.0.1", None), "127.0.0.1", 0) as server:
        print(server.port, flush=True)
        server.serve_forever()


# Measuring


def page_weights() -> dict[str, float]:
    """Kilobytes that opening the page loads, as they are and as they are sent; and of all nine screens."""
    first = {"index.html", "style.css", "main.js", "api.js", "dom.js", "words.js", "flow.js", "charts.js"}
    vendor = [STATIC / "vendor" / name for name in ("uPlot.iife.min.js", "uPlot.min.css")]
    own = [file for file in STATIC.iterdir() if file.suffix in (".html", ".js", ".css")]
    opened = [file for file in own if file.name in first] + vendor
    sent = [len(gzip.compress(file.read_bytes(), 9)) for file in opened]
    everything = [*own, *vendor]
    return {
        "page_kb": sum(file.stat().st_size for file in opened) / 1e3,
        "page_sent_kb": sum(sent) / 1e3,
        "all_screens_kb": sum(file.stat().st_size for file in everything) / 1e3,
        "all_screens_sent_kb": sum(len(gzip.compress(file.read_bytes(), 9)) for file in everything) / 1e3,
    }


@contextlib.contextmanager
def living(place: Path) -> Iterator[None]:
    """Write a snapshot a second, as a run does."""
    ended = threading.Event()

    def write() -> None:
        elapsed = HOURS * 3600.0
        while not ended.wait(1.0):
            elapsed += 1.0
            temporary = place / "status.tmp"
            temporary.write_bytes(msgspec.json.encode(snapshot(elapsed, time.time())))
            temporary.replace(place / "status.json")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def updates(page: object, number: int) -> list[float]:
    """Milliseconds of the browser's main thread for each of so many updates."""
    from tests.browser import Browser

    assert isinstance(page, Browser)
    page.call("Performance.enable", timeDomain="threadTicks")  # CPU seconds, whatever else the machine does
    found = []
    for _ in range(number):
        before = _busy(page)
        page.run(NEXT_UPDATE)
        found.append(1e3 * (_busy(page) - before))
    return found


def _busy(page: object) -> float:
    metrics = page.call("Performance.getMetrics")["metrics"]  # type: ignore[attr-defined]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def measure(num_updates: int = 15) -> dict[str, object]:
    """Return every number, with the marks."""
    from tests.browser import browser

    result: dict[str, object] = {**page_weights(), "marks": MARKS}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "run"
        place.mkdir()
        write_history(place)
        result["history_mb"] = (place / "metrics.jsonl").stat().st_size / 1e6
        (place / "status.json").write_bytes(msgspec.json.encode(snapshot(36_000.0, time.time())))
        command = [sys.executable, "-m", "benchmarks.observation_dashboard", "--serve", str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            try:
                with living(place), browser(Path(scratch) / "profile") as page:
                    page.open(f"http://127.0.0.1:{port}/")
                    took = {}
                    for screen in SCREENS:
                        page.run(f"location.hash = '{screen}'")
                        page.until(f"document.querySelector('main').className === 'screen-{screen}'")
                        page.until("!document.querySelector('[aria-busy]')")
                        updates(page, 2)  # what is drawn for the first time is not an update
                        each = updates(page, num_updates)
                        took[screen] = {"median": statistics.median(each), "most": max(each)}
                    result["update_ms"] = took
                    result["elements"] = page.run("document.querySelectorAll('*').length")
                    result["server_mb"] = psutil.Process(server.pid).memory_info().rss / 1e6
            finally:
                server.terminate()
    return result


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=15)
    parser.add_argument("--serve", metavar="DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    print(json.dumps(header()))
    print(json.dumps(measure(arguments.updates), indent=1))


if __name__ == "__main__":
    main()
