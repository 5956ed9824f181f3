"""What recording costs: processor seconds of all processes of a run with everything recorded, over one with nothing.

A run of `english-heuristics` (28 filters) over the corpus of the text benchmark, with `--observe full` and with
`--observe off`. Runs take turns, in pairs whose order alternates. What is told is the median of the ratios of pairs,
with the interval that holds the true median in 95 of 100 cases.
"""

import math
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import process_tree
from benchmarks.corpus import corpus

PAIRS, MEGABYTES = 20, 150
GOAL = 1.02


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
        out = Path(place) / "out"
        command = [sys.executable, "-m", "gristmill.cli.main", "run", "english-heuristics", "--quiet"]
        command += ["--input", str(source), "--output", str(out), "--workers", "2", "--observe", level]
        # Modules are loaded as in an installation, where pip has compiled them, whatever this shell says.
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        seconds = process_tree.measure(command, kept).cpu_s
        recorded = sum(file.stat().st_size for file in (out / ".gristmill").glob("measures/*"))
    return seconds, recorded


def measure() -> dict[str, object]:
    """Everything on over everything off, in processor seconds."""
    source = corpus(MEGABYTES)
    ratios, seconds = [], {"full": [], "off": []}  # type: ignore[var-annotated]
    recorded = 0
    for level in ("full", "off"):
        run_recipe(source, level)  # compiles, and fills the cache of files
    for pair in range(PAIRS):
        taken = {}
        for level in ("full", "off") if pair % 2 else ("off", "full"):
            taken[level], size = run_recipe(source, level)
            recorded = max(recorded, size)
            seconds[level].append(taken[level])
        ratios.append(taken["full"] / taken["off"])
    low, high = interval(ratios)
    input_bytes = sum(file.stat().st_size for file in source.iterdir())
    return {
        "ratio": round(statistics.median(ratios), 4),
        "interval_95": [round(low, 4), round(high, 4)],
        "goal": GOAL,
        "pairs": len(ratios),
        "ratio_of_medians": round(statistics.median(seconds["full"]) / statistics.median(seconds["off"]), 4),
        "ratio_of_minima": round(min(seconds["full"]) / min(seconds["off"]), 4),
        "cpu_s_full": round(statistics.median(seconds["full"]), 3),
        "cpu_s_off": round(statistics.median(seconds["off"]), 3),
        "recorded_share_of_input": round(recorded / input_bytes, 5),
        "spread": [round(min(ratios), 4), round(max(ratios), 4)],
    }
