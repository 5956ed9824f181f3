"""How good are plans? Random instances of 16 to 64 machines, each plan beside the bound no placement can exceed.

    python -m benchmarks.engine.plan_quality [--seeds 500] [--record]

Two bounds: the linear programme over patterns of workers that fit on a machine, and the closer one that also asks for
whole workers (src/gristmill/engine/pattern_bound.py). The goal is that the 5th percentile of plan over bound is at
least 0.98 for the first, which no plan can reach where few workers of a group are needed: the second says how much of
the rest was there to be had. Needs scipy.
"""

import argparse
import random
import statistics
import time

from benchmarks.record import header, record

from gristmill.engine.fleet import Demand, plan_workers
from gristmill.engine.pattern_bound import pattern_bound
from gristmill.engine.policies.packing import UNITS, Room
from gristmill.stages.resources import Resources

MARK = 0.98
SHAPES = (
    Resources(cpus=1),
    Resources(cpus=0.25),
    Resources(cpus=2),
    Resources(cpus=5),
    Resources(cpus=16),
    Resources(cpus=1, gpus=0.1),
    Resources(cpus=1, gpus=0.25),
    Resources(cpus=1, gpus=0.4),
    Resources(cpus=2, gpus=0.6),
    Resources(cpus=1, gpus=1),
    Resources(cpus=4, gpus=2),
    Resources(cpus=4, gpus=4),
    Resources(cpus=1, gpu_memory_gb=10),
    Resources(cpus=1, gpu_memory_gb=35),
)


def instance(seed: int) -> tuple[list[Demand], list[Room]]:
    """Machines of one or two kinds, three to nine stages, rates from hundredths to hundreds of items a second."""
    chance = random.Random(seed)
    rooms = []
    kinds = [(chance.choice((32, 64, 96, 182)), chance.choice((4, 8)), 80.0) for _ in range(chance.randint(1, 2))]
    for node in range(chance.randint(16, 64)):
        cpus, gpus, memory = chance.choice(kinds)
        rooms.append(Room(node, cpus * UNITS, [UNITS] * gpus, (memory,) * gpus))
    demands = []
    for group in range(chance.randint(3, 9)):
        rate = 10 ** chance.uniform(-2, 2)
        demands.append(Demand(group, chance.choice(SHAPES), chance.choice((0.2, 1.0, 1.0, 5.0)), rate))
    return demands, rooms


def quality(seed: int) -> tuple[float, float]:
    """Plan over the bound of patterns, and over the one of whole workers, of one instance."""
    demands, rooms = instance(seed)
    plan = plan_workers(demands, rooms)
    bounds = [pattern_bound(demands, rooms, whole_workers=whole) for whole in (False, True)]
    loose, close = (1.0 if plan is None or not bound else float(plan.theta / bound) for bound in bounds)
    return loose, close


def fifth_percentile(qualities: list[float]) -> float:
    """The value that one in twenty is below."""
    return sorted(qualities)[len(qualities) // 20]


def main() -> None:
    """Print the distribution."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--record", action="store_true")
    seeds = parser.parse_args().seeds
    began, started = header(), time.perf_counter()
    found = [quality(seed) for seed in range(seeds)]
    of_patterns, of_whole_workers = ([pair[which] for pair in found] for which in (0, 1))
    low = fifth_percentile(of_patterns)
    result: dict[str, object] = {
        "seeds": seeds,
        "fifth_percentile": round(low, 4),
        "mark": MARK,
        "passed": low >= MARK,
        "worst": round(min(of_patterns), 4),
        "worst_seed": of_patterns.index(min(of_patterns)),
        "median": round(statistics.median(of_patterns), 4),
        "whole_workers_fifth_percentile": round(fifth_percentile(of_whole_workers), 4),
        "whole_workers_worst": round(min(of_whole_workers), 4),
        "took_s": round(time.perf_counter() - started, 1),
    }
    record("plan_quality", began, result)


if __name__ == "__main__":
    main()
