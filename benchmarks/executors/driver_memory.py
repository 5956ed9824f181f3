"""Memory of the driver while data goes through an executor: it must not grow with the data.

    python -m benchmarks.executors.driver_memory ray_data --megabytes 200 2000

Prints the most memory (RSS) this process had during each run. Tasks travel
between two groups, so that there is something a driver could hold.
"""

import argparse
import json
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import psutil

from gristmill.backends.base import BaseExecutor
from gristmill.config.catalog import find_executor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

FILE_MB = 20
LOOK_S = 0.05


class PassOn(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Does nothing, in workers of its own."""

    name = "pass_on"
    fusible = False

    def process(self, task: DocumentBatch) -> DocumentBatch:
        return task


def write_input(directory: Path, megabytes: int) -> None:
    """Write one file of documents of 10 kB, and links to it."""
    directory.mkdir(parents=True)
    line = json.dumps({"id": 1, "text": "the miller's grain " * 526}) + "\n"
    first = directory / "00000.jsonl"
    first.write_text(line * (FILE_MB * 1_000_000 // len(line)))
    for number in range(1, max(1, megabytes // FILE_MB)):
        os.link(first, directory / f"{number:05d}.jsonl")


def watch(stop: threading.Event, seen: list[int]) -> None:
    """Note the memory of this process until told to stop."""
    process = psutil.Process()
    while not stop.wait(LOOK_S):
        seen.append(process.memory_info().rss)


def measure(executor: BaseExecutor, megabytes: int, work: Path) -> tuple[float, float]:
    """Return the peak in MB and the seconds of one run."""
    write_input(work / "in", megabytes)
    seen: list[int] = []
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(stop, seen))
    stages = [JsonlReader(str(work / "in"), blocksize="8MB"), PassOn(), JsonlWriter(str(work / "out"))]
    started = time.monotonic()
    watcher.start()
    Pipeline("memory", stages=stages).run(executor)  # type: ignore[arg-type]  # stages of documents are stages
    seconds = time.monotonic() - started
    stop.set()
    watcher.join()
    shutil.rmtree(work)
    return max(seen) / 1e6, seconds


def main() -> None:
    """Measure one executor at several sizes, a small one first to load everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("executor")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--cpus", type=int, help="logical cores of a Ray of its own; Cosmos-Xenna needs one a stage")
    arguments = parser.parse_args()
    if arguments.cpus:
        import ray

        ray.init(address="local", num_cpus=arguments.cpus, include_dashboard=True, log_to_driver=False)
    executor: BaseExecutor = find_executor(arguments.executor, who="driver_memory")()
    with tempfile.TemporaryDirectory() as directory:
        for megabytes in [FILE_MB, *arguments.megabytes]:
            peak, seconds = measure(executor, megabytes, Path(directory) / str(megabytes))
            print(f"{arguments.executor}: {megabytes} MB in {seconds:.0f} s, driver at most {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
