"""Does the simulator tell the truth? Rows B3, B4 and B8 on real processes, beside the same in virtual time.

    python -m benchmarks.engine.calibration [--rounds 5] [--row B4] [--record]

Both schedule the same items with the same service times. What a real run adds is taken from its own account, never from
its makespan: how long a worker takes to start, how long a message is on its way, how much longer than asked a sleep is.
The goal is that makespans agree within 3 %, median of five.
"""

import argparse
import dataclasses
import os
import statistics
import tempfile
from pathlib import Path

import msgspec
from benchmarks.engine.service_times import TAIL_E
from benchmarks.engine.setup_times import FOUR_GPUS_E, SLOW_START_E
from benchmarks.engine.sleepers import run_for_real
from benchmarks.record import header, record

from gristmill.backends.simulated.chance import Chance
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.runs.progress import MeasuredRun

MARK = 0.03
SPECS = {"B3": SLOW_START_E, "B4": FOUR_GPUS_E, "B8": TAIL_E}


def with_overheads(spec: SimulationSpec, run: MeasuredRun) -> SimulationSpec:
    """The spec with what a real run was seen to add to it."""
    chance = Chance(spec)
    names = [f"item-{i:06d}" for i in range(spec.items)]
    stages = []
    for index, (stage, found) in enumerate(zip(spec.stages, run.groups, strict=True)):
        asked_s = sum(chance.service_s(index, name) for name in names) / len(names)
        late_s = found.dispatch_s + max(0.0, found.service_s - asked_s)
        stages.append(dataclasses.replace(stage, setup_s=found.setup_s, dispatch_s=late_s))
    return dataclasses.replace(spec, stages=tuple(stages))


def compare(spec: SimulationSpec) -> tuple[float, float]:
    """Return the makespan of a real run, and that of its simulation."""
    with tempfile.TemporaryDirectory() as directory:
        run_for_real(spec, checkpoint_path=directory)
        run = msgspec.json.decode((Path(directory) / "measured.json").read_bytes(), type=MeasuredRun)
    return run.makespan_s, Simulation(with_overheads(spec, run)).run().makespan_s


def main() -> None:
    """Compare each row several times and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--row", choices=sorted(SPECS), action="append")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    os.environ["GRISTMILL_PROFILES"] = "off"  # no round profits from one before it
    began = header()
    result: dict[str, object] = {}
    for row, spec in SPECS.items():
        if options.row and row not in options.row:
            continue
        pairs = [compare(spec) for _ in range(options.rounds)]
        ratios = [simulated / real for real, simulated in pairs]
        median = statistics.median(ratios)
        result[row] = {
            "simulated_over_real": [round(ratio, 4) for ratio in ratios],
            "median": round(median, 4),
            "real_s": [round(real, 2) for real, _ in pairs],
            "within": MARK,
            "passed": abs(median - 1) <= MARK,
            "load": round(os.getloadavg()[0], 2),
        }
        print(row, result[row], flush=True)
    record("calibration", began, result)


if __name__ == "__main__":
    main()
