"""Suite rows B15 and B3 on Ray: how busy a scarce accelerator is kept, and how long others take for the same plan.

    python -m benchmarks.executors.accelerator ray ray_data xenna --items 200 --sleepers 16

One Ray on this machine, with as many logical cores as there are sleepers; the executors run one after another in this
program, each with a short run first, so that Ray's processes are there. All stages sleep: the two cores of a laptop
pretend to be a cluster. The accelerator is a stage with one worker and not a GPU, because Cosmos-Xenna believes only in
GPUs it finds.

B15: 0.05 s of processor, 0.1 s of the accelerator, 0.05 s of processor. Busy is the share of the time between the first
and the last task of the accelerator. B3: a pool of 0.17 s before a bottleneck of 0.21 s that takes 10 s to set up; all
sleepers are the accelerator, and busy is their share from when as many workers as there are cores have begun until the
last task begins. When that was is said too: starting a process of Ray takes a second of a real core.
"""

import argparse
import time

from benchmarks.engine.setup_times import SLOW_START
from benchmarks.engine.sleepers import run_for_real
from benchmarks.record import header

from gristmill.backends.base import BaseExecutor
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec
from gristmill.config.catalog import find_executor

WARM_ITEMS = 4
SCARCE = (
    StageSpec(name="prepare", service_s=0.05),
    StageSpec(name="accelerate", num_workers=1, service_s=0.1),
    StageSpec(name="finish", service_s=0.05),
)


def scarce_accelerator(executor: BaseExecutor, sleepers: int, items: int) -> dict[str, object]:
    """Run B15 once: the accelerator's busy share, and how long it took beside the least it can take."""
    spec = SimulationSpec(items=items, nodes=(NodeSpec(cpus=sleepers),), stages=SCARCE)
    started = time.time()
    used = sorted(task._metadata["accelerate"][1:] for task in run_for_real(spec, executor=executor))
    wall_s = time.time() - started
    span = used[-1][1] - used[0][0]
    busy = sum(end - began for began, end in used) / span
    return {"busy": round(busy, 4), "wall_s": round(wall_s, 1), "least_s": round(items * 0.1 + 0.1, 1)}


def slow_start(executor: BaseExecutor, sleepers: int, items: int) -> dict[str, object]:
    """Run B3 once: how long it took, when all workers had begun, how busy they were from then on."""
    spec = SimulationSpec(items=items, nodes=(NodeSpec(cpus=sleepers),), stages=SLOW_START.stages)
    started = time.time()
    result = run_for_real(spec, executor=executor)
    wall_s = time.time() - started
    firsts: dict[tuple[str, float], float] = {}  # by worker: when it began
    work = []
    for task in result:
        for stage in spec.stages:
            setup_at, began, ended = task._metadata[stage.name]
            key = (stage.name, setup_at)
            firsts[key] = min(began, firsts.get(key, began))
            work.append((began, ended))
    first, last = sorted(firsts.values())[: spec.nodes[0].cpus][-1], max(began for began, _ in work)
    asleep = sum(max(0.0, min(ended, last) - max(began, first)) for began, ended in work)
    return {
        "wall_s": round(wall_s, 1),
        "least_s": round(sum(stage.service_s for stage in spec.stages) * items / sleepers, 1),
        "all_begun_s": round(first - started, 1),
        "busy": round(asleep / (last - first) / sleepers, 4),
        "of_bound": None if result.efficiency is None else round(result.efficiency.of_bound, 3),
    }


def main() -> None:
    """Measure every executor named, in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("executors", nargs="+")
    parser.add_argument("--sleepers", type=int, default=16)
    parser.add_argument("--items", type=int, default=200, help="of B15")
    parser.add_argument("--slow-start-items", type=int, default=1000, help="of B3; 0 leaves it out")
    arguments = parser.parse_args()
    import ray

    ray.init(address="local", num_cpus=arguments.sleepers, include_dashboard=True, log_to_driver=False)
    print(header())
    for name in arguments.executors:
        executor: BaseExecutor = find_executor(name, who="accelerator")()
        scarce_accelerator(executor, arguments.sleepers, WARM_ITEMS)
        print(name, "B15", scarce_accelerator(executor, arguments.sleepers, arguments.items), flush=True)
        if arguments.slow_start_items:
            print(name, "B3", slow_start(executor, arguments.sleepers, arguments.slow_start_items), flush=True)


if __name__ == "__main__":
    main()
