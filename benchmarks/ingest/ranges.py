"""Records by range: gristmill beside requests with threads, at equal concurrency, from a server with 50 ms latency.

    python -m benchmarks.ingest.ranges [--records 1500] [--record]

Two lists: records far apart in a file, and records that lie near each other, as the pages of a host in a crawl do. Of
both, answers a second and processor time of the client for each. Records far apart are asked for once more of a server
that answers one range only, as S3 does: then each costs a request whoever asks, and nobody gets more than the latency
allows.
"""

import argparse
import concurrent.futures
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.record import header, record

LATENCY_S = 0.05
RECORD_BYTES = 7_000
NEAR_BYTES = 40_000  # from one record to the next
FAR_BYTES = 1_000_000

KINDS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("far", FAR_BYTES, ()),
    ("near", NEAR_BYTES, ()),
    ("far, one range a request", FAR_BYTES, ("--one-range",)),
)

Range = tuple[int, int]


@contextlib.contextmanager
def serving(root: Path, *more: str) -> Iterator[str]:
    """A server of a directory, in a process of its own."""
    command = [sys.executable, "-m", "gristmill.testing.file_server", str(root), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def by_requests(url: str, ranges: Sequence[Range], at_once: int) -> list[bytes]:
    """As NeMo Curator does it: a session of requests, a pool of threads."""
    import requests

    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_connections=at_once, pool_maxsize=2 * at_once, max_retries=3)
    session.mount("http://", adapter)

    def one(wanted: Range) -> bytes:
        answer = session.get(url, headers={"Range": f"bytes={wanted[0]}-{wanted[1] - 1}"}, timeout=30)
        answer.raise_for_status()
        return answer.content

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, ranges))


def by_gristmill(url: str, ranges: Sequence[Range], at_once: int) -> list[bytes]:
    from gristmill.storage.http_ranges import Piece, fetch_pieces
    from gristmill.storage.transfer import TransferOptions

    found = fetch_pieces([Piece(url, *wanted) for wanted in ranges], TransferOptions(max_connections=at_once))
    return [piece for piece in found if isinstance(piece, bytes)]


CLIENTS: dict[str, Callable[[str, Sequence[Range], int], list[bytes]]] = {
    "requests": by_requests,
    "gristmill": by_gristmill,
}


def measure(client: str, url: str, ranges: Sequence[Range], at_once: int) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    found = CLIENTS[client](url, ranges, at_once)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if [len(piece) for piece in found] != [end - start for start, end in ranges]:
        raise SystemExit(f"{client}: expected all {len(ranges)} records; got {len(found)}")
    return {"per_s": round(len(ranges) / wall, 1), "cpu_ms": round(1000 * cpu / len(ranges), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1500)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    began, rows = header(), {}
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "archive"
        with file.open("wb") as archive:
            archive.truncate(options.records * FAR_BYTES)
        _raise_first_rate()
        for kind, step, more in KINDS:
            ranges = [(n * step, n * step + RECORD_BYTES) for n in range(options.records)]
            random.Random(1).shuffle(ranges)
            with serving(Path(made), "--latency-s", str(LATENCY_S), *more) as url:
                for at_once in (16, 64):
                    row = {name: measure(name, f"{url}/archive", ranges, at_once) for name in CLIENTS}
                    ours, theirs = row["gristmill"], row["requests"]
                    row["times"] = round(ours["per_s"] / theirs["per_s"], 2)
                    row["cpu_share"] = round(ours["cpu_ms"] / theirs["cpu_ms"], 3)
                    rows[f"{kind}, {at_once} at once"] = row
                    print(kind, at_once, row, flush=True)
    record("ingest_ranges", began, rows)


def _raise_first_rate() -> None:
    """A server that never refuses: what a rate costs is measured in `rate.py`."""
    from gristmill.storage import rate

    rate.FIRST = 1e6


if __name__ == "__main__":
    main()
