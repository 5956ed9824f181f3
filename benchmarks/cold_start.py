"""The first run after `pip install` beside the second, and beside datatrove's first run on the same input.

    make dist benchmarks/out/venvs/datatrove/.installed
    python -m benchmarks.cold_start [--megabytes 12] [--rounds 3] [--record]

The wheel is installed into a new environment. A cold run has an empty cache; a warm one follows it with the same cache.
The two take turns. What is measured is from process start to exit. Files are in the system's memory in both: only the
very first process after an installation reads them from a disk, and nobody but the system could say how fast.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import corpus
from benchmarks.hello import HELLO
from benchmarks.record import ROOT, header, record

DATATROVE = ROOT / "benchmarks" / "out" / "venvs" / "datatrove" / "bin" / "python"
FACTOR, EXTRA_S = 1.5, 1.0  # the mark: cold is at most so many times warm, and so many seconds
HELLO_S = 0.2  # the mark for hello world: cold is at most so much longer than warm

GOPHER_IN_DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

if __name__ == "__main__":
    source, output, files = sys.argv[1:]
    LocalPipelineExecutor(
        pipeline=[
            JsonlReader(source, glob_pattern="*.jsonl"),
            GopherRepetitionFilter(),
            GopherQualityFilter(),
            JsonlWriter(f"{output}/out", output_filename="${rank}.jsonl", compression=None),
        ],
        tasks=int(files),
        workers=2,
        logging_dir=f"{output}/logs",
    ).run()
"""


class Installed:
    """The wheel in an environment of its own."""

    def __init__(self, directory: Path, wheel: Path) -> None:
        self.work = directory
        self.bin = directory / "environment" / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(self.bin.parent)], check=True)
        pip = [str(self.bin / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)

    def seconds(self, cache: Path, *command: str) -> float:
        """Run a program of the environment with this cache; return how long it took."""
        variables = {**os.environ, "GRISTMILL_CACHE_DIR": str(cache), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        variables.pop("PYTHONPATH", None)
        return timed([str(self.bin / command[0]), *command[1:]], self.work, variables)

    def cold_and_warm(self, rounds: int, command: Sequence[str]) -> dict[str, list[float]]:
        """Seconds of runs with an empty cache, and of the second one with each."""
        found: dict[str, list[float]] = {"cold": [], "warm": []}
        for number in range(rounds):
            cache = self.work / f"cache-{number}"
            for seconds in found.values():
                shutil.rmtree(self.work / "out", ignore_errors=True)
                seconds.append(self.seconds(cache, *command))
            shutil.rmtree(cache, ignore_errors=True)  # hello world needs none
        return found


def timed(command: Sequence[str], work: Path, variables: dict[str, str] | None = None) -> float:
    """Run a program; return how long it took."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=work, env=variables, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: failed\n{done.stdout}\n{done.stderr}")
    return seconds


def main() -> None:
    """Measure, print, and say which marks are met."""
    options = _options()
    began = header()
    source = corpus(options.megabytes)
    [wheel] = (ROOT / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory() as made:
        installed = Installed(Path(made), wheel)
        (installed.work / "in").mkdir()
        (installed.work / "in" / "hello.jsonl").write_text('{"text": "hello, world"}\n')
        (installed.work / "hello.py").write_text(HELLO)
        gopher = ("gristmill", "run", "gopher-datatrove", "--input", str(source), "--output", "out")
        recipe = installed.cold_and_warm(options.rounds, gopher)
        hello = installed.cold_and_warm(options.rounds + 4, ("python", "hello.py"))
        peer = _datatrove(installed.work, source)
    record("cold_start", began, _result(options.megabytes, recipe, hello, peer))


def _datatrove(work: Path, source: Path) -> float | None:
    """Seconds of its first run here, or nothing where it is not installed."""
    if not DATATROVE.exists():
        return None
    (work / "gopher.py").write_text(GOPHER_IN_DATATROVE)
    files = len(list(source.glob("*.jsonl")))
    return timed([str(DATATROVE), "gopher.py", str(source), str(work / "datatrove"), str(files)], work)


def _result(
    megabytes: int, recipe: dict[str, list[float]], hello: dict[str, list[float]], peer: float | None
) -> dict[str, object]:
    cold, warm = (statistics.median(recipe[kind]) for kind in ("cold", "warm"))
    first, again = (statistics.median(hello[kind]) for kind in ("cold", "warm"))
    return {
        "megabytes": megabytes,
        "gopher_datatrove_cold_s": round(cold, 2),
        "gopher_datatrove_warm_s": round(warm, 2),
        "mark": f"{FACTOR} × warm + {EXTRA_S:g} s = {FACTOR * warm + EXTRA_S:.2f}",
        "is_met": cold <= FACTOR * warm + EXTRA_S,
        "datatrove_first_run_s": None if peer is None else round(peer, 1),
        "hello_cold_s": round(first, 3),
        "hello_warm_s": round(again, 3),
        "hello_mark_s": HELLO_S,
        "hello_is_met": first - again <= HELLO_S,
        "all_s": {"gopher": recipe, "hello": hello},
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the first run of the built wheel beside the second.")
    parser.add_argument("--megabytes", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="keep the result in benchmarks/results")
    return parser.parse_args()


if __name__ == "__main__":
    main()
