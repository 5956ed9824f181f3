"""A server of a language model in a process of its own, for benchmarks of clients: its work is not in their figures."""

import json
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Start a server and give its address."""
    command = [sys.executable, "-m", "gristmill.testing.llm_server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def take_statistics(url: str) -> dict[str, float]:
    """Return what the server has seen since it was last asked."""
    with urllib.request.urlopen(f"{url}/statistics") as answer:  # our own server's address
        told: dict[str, float] = json.load(answer)
    return told


def measured(command: list[str]) -> dict[str, float]:
    """Run a program that prints a JSON object, and return that."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and greatest of what the rounds gave."""
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}
