"""One rate for a server that allows 200 requests a second and refuses everything for a second beyond that.

    python -m benchmarks.ingest.rate [--seconds 60] [--record]

One worker process, then four that share the rate through its file. Goodput against what is allowed, and the share that
was refused, by the server's own count: whole, and without the first ten seconds in which the limit is found. Beside it
what a client does that tries again at once. Ranges are asked for in calls of as many as `CommonCrawlWARCReader` fetches
together: at the end of a call the last requests are waited for, and nothing new starts.
"""

import argparse
import json
import multiprocessing
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.ingest.ranges import serving
from benchmarks.record import header, record

ALLOWED = 200
WARM_UP_S = 10.0
AT_ONCE = 64
FILE_BYTES = 300_000_000
APART = 70_000  # bytes: such as are not fetched together


def work(url: str, directory: str, seconds: float, at_once: int) -> None:
    """Ask for small ranges until the time is over."""
    from gristmill.stages.text.download.common_crawl.download import MAX_BATCH_ROWS
    from gristmill.storage import rate
    from gristmill.storage.http_ranges import Piece, fetch_pieces
    from gristmill.storage.transfer import TransferOptions

    rate._directory = lambda: Path(directory)
    options = TransferOptions(max_connections=at_once, max_retries=50)
    end, first = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        starts = range(first, first + MAX_BATCH_ROWS * APART, APART)
        fetch_pieces([Piece(url, at, at + 100) for at in starts], options)
        first += 1000


def at_once(url: str, directory: str, seconds: float, number: int) -> None:
    """A client without manners: threads that try again when they are refused."""
    import concurrent.futures

    del directory

    def one(_: int) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            request = urllib.request.Request(url, headers={"Range": "bytes=0-99"})
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    answer.read()
            except OSError:
                continue

    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        list(pool.map(one, range(number)))


def statistics(base: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{base}/.statistics", timeout=10) as answer:
        return dict(json.loads(answer.read()))


def run(client: str, processes: int, seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "files"
        root.mkdir()
        with (root / "archive").open("wb") as file:
            file.truncate(FILE_BYTES)
        (Path(made) / "rates").mkdir()
        # One range a request: what is measured is how many requests are let through.
        with serving(root, "--latency-s", "0.05", "--one-range", "--max-rate", str(ALLOWED)) as base:
            given = (f"{base}/archive", f"{made}/rates", seconds, AT_ONCE // processes)
            target = {"gristmill": work, "at_once": at_once}[client]
            workers = [multiprocessing.Process(target=target, args=given, daemon=True) for _ in range(processes)]
            for worker in workers:
                worker.start()
            time.sleep(WARM_UP_S)
            early = statistics(base)
            time.sleep(seconds - WARM_UP_S)
            late = statistics(base)
            for worker in workers:
                worker.terminate()
                worker.join()
    rest = seconds - WARM_UP_S
    asked = early["requests"] + late["requests"]
    asked_s = rest + early["wall_s"]  # from the first request on: what came before is the start of Python
    return {
        "goodput": round((early["answered"] + late["answered"]) / asked_s / ALLOWED, 3),
        "refused": round((early["refused"] + late["refused"]) / asked, 4),
        "goodput_later": round(late["answered"] / rest / ALLOWED, 3),
        "refused_later": round(late["refused"] / late["requests"], 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    began = header()
    rows = {
        "one worker": run("gristmill", 1, options.seconds),
        "four workers": run("gristmill", 4, options.seconds),
        "tried again at once": run("at_once", 1, 20.0),
    }
    record("ingest_rate", began, rows)


if __name__ == "__main__":
    main()
