"""What recording costs: processor seconds of all processes of a run with everything recorded, over one with nothing.

A run of `english-heuristics` (28 filters) over the corpus of the text benchmark, with everything on and with everything
off. Runs take turns, in pairs whose order alternates. What is told is the median of the ratios of pairs, with the
interval that holds the true median in 95 of 100 cases.

    on      `--observe full`, as a run is without any option, and the history a line a second
    sliced  the same with `--slice source`: a column that no stage reads, so it is looked for in every line of JSON.
            Columns that a stage has read are counted by value without being asked for, which is in `on`
    off     `--observe off`, and a history of its first and its last line (`logging_interval` of the executor)

The mark is for `on`. What `--slice` costs is told beside it.

What cannot be switched off is on in both: the ledger with its counts by reason, the event log, which is also what a
resumed run and `gristmill replay` need, and the snapshot a second in `status.json`. What is on only if asked for is off
in both: endpoints and files of metrics, whose cost `observation_scrape` measures, and the dashboard, another process.
"""

import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import process_tree
from benchmarks.corpus import corpus

from gristmill.config.shipped import recipe_path
from gristmill.metrics.history import read_history
from gristmill.metrics.observation_files import load_observations

PAIRS, MEGABYTES = 60, 200  # the size `make bench-text` has; of 20 pairs nobody could tell 1.01 from 1.03
GOAL = 1.02
NEVER_S = 1_000_000.0  # between two lines of the history
SLICED_PAIRS = 6
FULL = ("--observe", "full")
FLAGS = {"full": FULL, "sliced": (*FULL, "--slice", "source"), "off": ("--observe", "off")}
WORKERS = {"num_workers": 2}
EXECUTORS = {"full": WORKERS, "sliced": WORKERS, "off": {**WORKERS, "logging_interval": NEVER_S}}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The values between which the median lies with 95 %, whatever their distribution."""
    number, below = len(values), 0.0
    rank = 0
    while rank < number // 2:
        below += math.comb(number, rank) / 2**number
        if below > 0.025:
            break
        rank += 1
    ordered = sorted(values)
    return ordered[max(0, rank - 1)], ordered[min(number - 1, number - rank)]


def run_recipe(source: Path, level: str) -> tuple[float, int]:
    """Return processor seconds of a whole run, and the bytes of what it recorded about documents."""
    with tempfile.TemporaryDirectory(dir=source.parent) as place:
        out, recipe = Path(place) / "out", Path(place) / "recipe.yaml"
        executor = json.dumps({"executor": {"LocalExecutor": EXECUTORS[level]}})[1:-1]
        recipe.write_text(f"{recipe_path('english-heuristics').read_text()}\n{executor}\n")
        command = [sys.executable, "-m", "gristmill.cli.main", "run", str(recipe), "--quiet"]
        command += ["--input", str(source), "--output", str(out), *FLAGS[level]]
        # Modules are loaded as in an installation, where pip has compiled them, whatever this shell says.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        seconds = process_tree.measure(command, kept).cpu_s
        check(out / ".gristmill", level)
        recorded = sum(file.stat().st_size for file in (out / ".gristmill").glob("measures/*"))
    return seconds, recorded


def check(run: Path, level: str) -> None:
    """See that what is compared is what was meant."""
    seen, lines = load_observations(run), len(read_history((run / "metrics.jsonl").read_bytes()))
    found = bool(seen.tallies), "source" in seen.slices
    if found != (level != "off", level == "sliced") or (level == "off" and lines > 2):
        raise RuntimeError(f"{level}: got {len(seen.tallies)} tallies, slices {list(seen.slices)}, {lines} lines")


def in_turn(source: Path, level: str, pairs: int) -> tuple[list[float], list[float], int]:
    """Return processor seconds with a level on and with everything off, and the most bytes that were recorded."""
    on: list[float] = []
    off: list[float] = []
    recorded = 0
    for each in (level, "off"):
        run_recipe(source, each)  # compiles, and fills the cache of files
    for pair in range(pairs):
        for each in (level, "off") if pair % 2 else ("off", level):
            seconds, size = run_recipe(source, each)
            recorded = max(recorded, size)
            (off if each == "off" else on).append(seconds)
    return on, off, recorded


def measure() -> dict[str, object]:
    """Everything on over everything off, in processor seconds."""
    source = corpus(MEGABYTES)
    on, off, recorded = in_turn(source, "full", PAIRS)
    ratios = [one / other for one, other in zip(on, off, strict=True)]
    sliced, without, _ = in_turn(source, "sliced", SLICED_PAIRS)
    low, high = interval(ratios)
    input_bytes = sum(file.stat().st_size for file in source.iterdir())
    return {
        "ratio": round(statistics.median(ratios), 4),
        "interval_95": [round(low, 4), round(high, 4)],
        "goal": GOAL,
        "pairs": len(ratios),
        "ratio_of_medians": round(statistics.median(on) / statistics.median(off), 4),
        "ratio_of_minima": round(min(on) / min(off), 4),
        "cpu_s_full": round(statistics.median(on), 3),
        "cpu_s_off": round(statistics.median(off), 3),
        "recorded_share_of_input": round(recorded / input_bytes, 5),
        "spread": [round(min(ratios), 4), round(max(ratios), 4)],
        "ratio_with_slice_source": round(statistics.median(a / b for a, b in zip(sliced, without, strict=True)), 4),
    }
