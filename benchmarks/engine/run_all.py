"""The scheduler suite: `make bench-engine`, or `python -m benchmarks.engine.run_all`.

    --row B5      only this row (may be repeated)
    --mode V      only virtual time (V) or only real processes (E)
    --record      keep the results in benchmarks/results

Prints a line for every measurement with its mark; the exit code is 1 if a mark is missed.
"""

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.engine.outcome import Outcome, Row
from benchmarks.record import header, record

HERE = Path(__file__).parent
MODULES = sorted(file.stem for file in HERE.glob("*.py") if "\nROWS = (" in file.read_text())
ROWS: tuple[Row, ...] = tuple(
    sorted(
        (row for name in MODULES for row in import_module(f"benchmarks.engine.{name}").ROWS),
        key=lambda row: (int(row.id[1:]), row.mode == "E"),
    )
)


def main() -> None:
    """Run the rows asked for and print the table."""
    options = _options()
    os.environ["GRISTMILL_PROFILES"] = "off"  # no row profits from one before it
    began = header()
    print(" ".join(f"{name}={value}" for name, value in began.items() if name != "packages"))
    results: dict[str, object] = {}
    missed = 0
    for row in ROWS:
        if (options.row and row.id not in options.row) or options.mode not in (None, row.mode):
            continue
        print(f"\n{row.id} {row.mode}  {row.what}", flush=True)
        started = time.perf_counter()
        outcomes = row.measure()
        missed += sum(not outcome.passed for outcome in outcomes)
        for outcome in outcomes:
            print(f"  {_line(outcome)}", flush=True)
        took = round(time.perf_counter() - started, 1)
        results[f"{row.id} {row.mode}"] = {"took_s": took, "outcomes": [_document(o) for o in outcomes]}
    print(f"\n{missed} marks missed")
    if options.record:
        record("engine", began, results)
    sys.exit(missed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", action="append", choices=sorted({row.id for row in ROWS}), help="only this row")
    parser.add_argument("--mode", choices=("V", "E"), help="only this mode")
    parser.add_argument("--record", action="store_true", help="keep the results")
    return parser.parse_args()


def _line(outcome: Outcome) -> str:
    return f"{'pass' if outcome.passed else 'MISS'}  {outcome.value:>12}  {outcome.mark:<20}  {outcome.of}"


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "of": outcome.of,
        "value": outcome.value,
        "mark": outcome.mark,
        "passed": outcome.passed,
        "facts": outcome.facts,
    }


if __name__ == "__main__":
    main()
