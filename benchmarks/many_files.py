"""Many tiny files: what a source partition costs the driver, in bytes and in time.

    python -m benchmarks.many_files [--partitions 1000,10000,50000,200000] [--workers 2] [--resume] [--record]

Makes files of one or two documents in a temporary directory, copies them with a reader and a writer (so with a run
directory, a ledger and an output file for each) and prints the most memory the driver had. A partition's share is what
a run has more than the smallest, divided by the partitions it has more. With `--resume` the same command is run again
on what is finished, which reads the ledger and looks at every output.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.record import ROOT, header, record

FILES_A_DIRECTORY = 1000
PARTITIONS = "1000,10000,50000,200000"


def main() -> None:
    """Measure every number of partitions, smallest first, and print what each partition costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default=PARTITIONS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="also run each again when it is finished")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(_run(*options.run, workers=options.workers)))
        return
    began = header()
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="many-files-") as directory:
        for number in sorted(map(int, options.partitions.split(","))):
            rows += _measure(Path(directory), number, options, rows)
    record("many_files", began, {"workers": options.workers, "rows": rows})


def make_files(directory: Path, number: int) -> None:
    """Write so many files: every other one has two documents."""
    line = json.dumps({"id": 1, "text": "the miller's grain"}) + "\n"
    for index in range(number):
        folder = directory / f"{index // FILES_A_DIRECTORY:04d}"
        if not index % FILES_A_DIRECTORY:
            folder.mkdir(parents=True)
        (folder / f"{index:07d}.jsonl").write_text(line * (1 + index % 2))


def _measure(
    work: Path, number: int, options: argparse.Namespace, before: list[dict[str, float]]
) -> list[dict[str, float]]:
    make_files(work / "in", number)
    rows = []
    for round_ in ("run", "run again")[: 1 + options.resume]:
        command = [sys.executable, "-m", "benchmarks.many_files", "--workers", str(options.workers)]
        command += ["--run", str(work / "in"), str(work / "out")]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        row = {"partitions": number, "what": round_, **json.loads(told.stdout)}
        least = next((other for other in before if other["what"] == round_), None)
        if least is not None:
            more = (row["driver_peak_mb"] - least["driver_peak_mb"]) * 1e6
            row["bytes_a_partition"] = round(more / (number - least["partitions"]))
        print(row, flush=True)
        rows.append(row)
    shutil.rmtree(work / "in")
    shutil.rmtree(work / "out")
    return rows


def _run(source: str, output: str, *, workers: int) -> dict[str, float]:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io import JsonlReader, JsonlWriter

    began = time.perf_counter()
    pipeline = Pipeline("many_files", stages=[JsonlReader(source), JsonlWriter(output)])
    result = pipeline.run(LocalExecutor(num_workers=workers), quiet=True)
    wall_s = time.perf_counter() - began
    use, peak = os.times(), _peak_bytes()  # before the files are counted, which takes memory too
    if not result.balanced or len(result.output_files) != sum(1 for _ in Path(source).rglob("*.jsonl")):
        raise SystemExit(f"expected an output for every file; got {len(result.output_files)}")
    return {
        "wall_s": round(wall_s, 1),
        "driver_cpu_s": round(use.user + use.system, 1),
        "workers_cpu_s": round(use.children_user + use.children_system, 1),
        "driver_peak_mb": round(peak / 1e6, 1),
    }


def _peak_bytes() -> int:
    """The most memory this process ever had. What `getrusage` says of it includes the one that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("expected VmHWM in /proc/self/status: this benchmark is for Linux")


if __name__ == "__main__":
    main()
