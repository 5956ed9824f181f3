"""What a scrape costs the driver of a run: `python -m benchmarks.observation_scrape [--scrapes 50]`.

Snapshots are made up: five stages, and forty stages with 1,000 workers and 1,024 GPUs. A process of its own asks for
the metrics as a Prometheus server does, OpenMetrics and gzip included; the processor time is this process's, over all
of it: the request, the exposition, the compression. `share` is that time over five seconds, the usual interval.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.record import header
from tests.run_snapshots import large_snapshot, run_snapshot, stage_snapshot

from gristmill.metrics.endpoint import Endpoint
from gristmill.metrics.exposition import Exposition
from gristmill.metrics.snapshot import RunSnapshot

INTERVAL_S = 5.0
ASK = """
import http.client, sys
host, port = sys.argv[1].split(":")
headers = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
for line in sys.stdin:
    connection = http.client.HTTPConnection(host, int(port))
    connection.request("GET", "/metrics", headers=headers)
    print(len(connection.getresponse().read()), flush=True)
"""


def cost(snapshot: RunSnapshot, scrapes: int) -> dict[str, object]:
    """Return series, bytes and processor milliseconds of a scrape of this snapshot."""
    exposition = Exposition("LocalExecutor")
    exposition.add(snapshot)
    endpoint = Endpoint("127.0.0.1", 0, lambda accept: (*exposition.encode(accept), False))
    command = [sys.executable, "-c", ASK, endpoint.target]
    spent, packed = [], 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        for _ in range(scrapes + 1):
            before = time.process_time()
            print(file=asking.stdin, flush=True)
            packed = int(asking.stdout.readline())
            spent.append(time.process_time() - before)
        asking.stdin.close()
    endpoint.close()
    text, _ = exposition.encode()
    median = statistics.median(spent[1:])  # the first loads what it needs
    return {
        "series": sum(not line.startswith(b"#") for line in text.splitlines()),
        "kb": round(len(text) / 1000),
        "kb_packed": round(packed / 1000),
        "cpu_ms": round(1000 * median, 1),
        "share": round(median / INTERVAL_S, 5),
    }


def measure(scrapes: int = 50) -> dict[str, object]:
    """Return the cost of a scrape of a small and of a large run."""
    small = run_snapshot([stage_snapshot(number) for number in range(5)], machines=1)
    return {"5 stages": cost(small, scrapes), "40 stages, 1,000 workers, 1,024 GPUs": cost(large_snapshot(), scrapes)}


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scrapes", type=int, default=50)
    print(header())
    print(json.dumps(measure(parser.parse_args().scrapes), indent=1))


if __name__ == "__main__":
    main()
