"""Many tiny files: what a source partition costs the driver, in bytes and in time.

    python -m benchmarks.many_files [--partitions 1000,10000,50000,200000] [--workers 2] [--resume] [--record]

Makes files of one or two documents in a temporary directory, copies them with a reader and a writer (so with a run
directory, a ledger and an output file for each) and prints the most memory the driver had. A partition's share is what
a run has more than the smallest, divided by the partitions it has more. With `--resume` the same command is run again
on what is finished, which reads the ledger and looks at every output.

Python takes memory from the system in arenas of 1 MiB, and one more or less is chance. Divided by 9,000 partitions it
is 117 bytes, by 199,000 it is 5. So up to 10,000 partitions the median of three runs counts, `give_or_take` says what
one arena makes of a partition, and a further run counts what Python's objects take, to the byte: `traced_bytes`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from benchmarks.record import ROOT, header, record

FILES_A_DIRECTORY = 1000
PARTITIONS = "1000,10000,50000,200000"
ARENA_BYTES = 1 << 20
FEW, ROUNDS = 10_000, 3  # up to so many partitions a run is short, and chance weighs


def main() -> None:
    """Measure every number of partitions, smallest first, and print what each partition costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default=PARTITIONS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="also run each again when it is finished")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(_run(*options.run, workers=options.workers, traced=options.traced)))
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
    for what in ("run", "run again")[: 1 + options.resume]:
        row = {"partitions": number, "what": what, **_repeated(work, number, options, again=what == "run again")}
        least = next((other for other in before if other["what"] == what), None)
        if least is not None:
            more = number - least["partitions"]
            row["bytes_a_partition"] = round((row["driver_peak_mb"] - least["driver_peak_mb"]) * 1e6 / more)
            row["give_or_take"] = round(ARENA_BYTES / more)
            if "traced_bytes" in row:
                row["traced_bytes_a_partition"] = round((row["traced_bytes"] - least["traced_bytes"]) / more)
        print(row, flush=True)
        rows.append(row)
    shutil.rmtree(work / "in")
    shutil.rmtree(work / "out")
    return rows


def _repeated(work: Path, number: int, options: argparse.Namespace, *, again: bool) -> dict[str, float]:
    """Run as often as it takes to see past chance; the figures are those of the run with the median peak."""

    def run(*more: str) -> dict[str, float]:
        if not again:
            shutil.rmtree(work / "out", ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.many_files", "--workers", str(options.workers), *more]
        command += ["--run", str(work / "in"), str(work / "out")]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        figures: dict[str, float] = json.loads(told.stdout)
        return figures

    few = number <= FEW
    traced = run("--traced") if few else {}
    runs = sorted([run() for _ in range(ROUNDS if few else 1)], key=lambda figures: figures["driver_peak_mb"])
    row = {**runs[len(runs) // 2]}
    if few:
        row["traced_bytes"] = traced["traced_bytes"]
    return row


def _run(source: str, output: str, *, workers: int, traced: bool = False) -> dict[str, float]:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io import JsonlReader, JsonlWriter

    if traced:
        tracemalloc.start()
    began = time.perf_counter()
    pipeline = Pipeline("many_files", stages=[JsonlReader(source), JsonlWriter(output)])
    result = pipeline.run(LocalExecutor(num_workers=workers), quiet=True)
    wall_s = time.perf_counter() - began
    # Before the files are counted, which takes memory too.
    use, peak, held = os.times(), _peak_bytes(), tracemalloc.get_traced_memory()[0]
    if not result.balanced or len(result.output_files) != sum(1 for _ in Path(source).rglob("*.jsonl")):
        raise SystemExit(f"expected an output for every file; got {len(result.output_files)}")
    return {
        "wall_s": round(wall_s, 1),
        "driver_cpu_s": round(use.user + use.system, 1),
        "workers_cpu_s": round(use.children_user + use.children_system, 1),
        "driver_peak_mb": round(peak / 1e6, 1),
        **({"traced_bytes": held} if traced else {}),
    }


def _peak_bytes() -> int:
    """The most memory this process ever had. What `getrusage` says of it includes the one that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("expected VmHWM in /proc/self/status: this benchmark is for Linux")


if __name__ == "__main__":
    main()
