"""What seeing costs, section by section: what was measured, the mark it is to keep, and whether it keeps it.

    make benchmarks/out/venvs/frames/.installed          # duckdb and polars, which `inspect` is measured beside
    python -m benchmarks.observation [--gigabytes 1] [SECTION ...]

`--gigabytes` is the size of each of the two files that `inspect` looks at. Without a section all of them are measured;
`cost`, and whatever is told in seconds by the clock, needs a machine on which nothing else runs.
"""

import argparse
import importlib
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.record import header

SECTIONS = {  # name -> module with a `measure()`
    "history": "benchmarks.observation_history",
    "cost": "benchmarks.observation_cost",
    "dashboard": "benchmarks.observation_dashboard",
    "inspect": "benchmarks.inspection",
    "replayed": "benchmarks.observation_replayed",
    "scrape": "benchmarks.observation_scrape",
    "report": "benchmarks.observation_report",
}
LARGE = "40 stages, 1,000 workers, 1,024 GPUs"
OPENING = "open and first page"
SCREENS = ("flow", "funnel", "workers", "schedule", "events")


class Mark(NamedTuple):
    """A number that is not to be passed: where it is in the result of its section, and the sign, ≤ or ≥."""

    what: str
    path: tuple[str, ...]
    sign: str
    bound: float | tuple[str, ...]  # a number, or where the result has the one to compare with


MARKS: Mapping[str, tuple[Mark, ...]] = {
    "history": tuple(
        Mark(f"MB in the first hour, 40 stages in {groups}", (groups, "mb_in_the_first_hour"), "≤", 1.2)
        for groups in ("5 groups", "10 groups", "40 groups")
    ),
    "cost": (Mark("CPU seconds with everything on over everything off, 28 filters", ("ratio",), "≤", 1.02),),
    "dashboard": (
        Mark("kB of the page", ("page_kb",), "≤", 100),
        *(Mark(f"ms of an update of {name}", ("update_ms", name, "median"), "≤", 50) for name in SCREENS),
        Mark("MB of the server", ("server_mb",), "≤", 60),
    ),
    "inspect": tuple(
        mark
        for form in ("parquet", "jsonl")
        for mark in (
            Mark(f"s to open {form}", (form, "gristmill", OPENING), "≤", 1.0),
            Mark(f"MB at most while looking at {form}", (form, "gristmill", "peak_mb"), "≤", 150),
            *(
                Mark(
                    f"s to the first page of {form}, beside {peer}",
                    (form, "gristmill, first page", OPENING),
                    "≤",
                    (form, peer, OPENING),
                )
                for peer in ("duckdb", "polars")
            ),
        )
    ),
    "replayed": (
        Mark("events of the log a CPU second in a trace", ("trace", "events_per_cpu_s"), "≥", 15_000),
        Mark("speed of finding an id, over grep's", ("find", "over_grep"), "≥", 0.5),
    ),
    "scrape": (Mark("CPU ms of a scrape, 40 stages, 1,024 GPUs", (LARGE, "cpu_ms"), "≤", 25),),
    "report": (
        Mark("bytes, a million documents and 30 rules", ("bytes",), "≤", 1_000_000),
        Mark("s to write it", ("wall_s",), "≤", 2.0),
    ),
}
HOLDS: Mapping[str, Callable[[float, float], bool]] = {"≤": operator.le, "≥": operator.ge}


def judged(section: str, result: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    """Each mark of a section with what was measured, and whether it holds."""
    for mark in MARKS[section]:
        measured = _at(result, mark.path)
        bound = _at(result, mark.bound) if isinstance(mark.bound, tuple) else mark.bound
        yield {
            "what": mark.what,
            "measured": round(measured, 4),
            "mark": f"{mark.sign} {bound:,}",
            "holds": HOLDS[mark.sign](measured, bound),
        }


def _at(result: Mapping[str, Any], path: tuple[str, ...]) -> float:
    found: Any = result
    for key in path:
        found = found[key]
    return float(found)


def main() -> None:
    """Run the sections named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of {', '.join(SECTIONS)}; all otherwise")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)  # was needed once
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of each file that `inspect` looks at")
    chosen = parser.parse_args()
    if unknown := set(chosen.sections) - SECTIONS.keys():
        parser.error(f"expected some of {', '.join(SECTIONS)}; got {', '.join(sorted(unknown))}")
    print(json.dumps(header()))
    for name in chosen.sections or SECTIONS:
        given = {"gigabytes": chosen.gigabytes} if name == "inspect" else {}
        result = importlib.import_module(SECTIONS[name]).measure(**given)
        print(json.dumps({name: result}, indent=1))
        for mark in judged(name, result):
            print(json.dumps(mark, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
