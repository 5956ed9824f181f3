"""M4: processor time a request, of our client and of the openai package, with 64 requests under way.

    python -m benchmarks.models.llm_client [--requests 2000] [--rounds 5] [--peer PYTHON]

PYTHON is of an environment with the openai package (`make bench-models` makes one). Server and client are processes of
their own, the sides take turns. The mark: at most a quarter.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.models.serving import measured, serving, spread
from benchmarks.record import ROOT, header, record

PEER = ROOT / "benchmarks" / "out" / "venvs" / "openai" / "bin" / "python"
PROGRAM = str(Path(__file__).with_name("ask_many.py"))
MARK = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default=str(PEER))
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    began = header()
    sides = {"gristmill": sys.executable, "openai": given.peer}
    cpu: dict[str, list[float]] = {side: [] for side in sides}
    wall: dict[str, list[float]] = {side: [] for side in sides}
    with serving() as url:
        for _ in range(given.rounds):
            for side, python in sides.items():
                took = measured([python, PROGRAM, side, url, str(given.requests), str(given.in_flight)])
                cpu[side].append(1000 * took["cpu_s"] / given.requests)
                wall[side].append(1000 * took["wall_s"] / given.requests)
    ratios = [ours / theirs for ours, theirs in zip(cpu["gristmill"], cpu["openai"], strict=True)]
    result = {
        "cpu_ms_a_request": {side: spread(values) for side, values in cpu.items()},
        "wall_ms_a_request": {side: spread(values) for side, values in wall.items()},
        "M4_ours_to_openai": spread(ratios) | {"mark": MARK},
    }
    record("llm_client", began, result)


if __name__ == "__main__":
    main()
