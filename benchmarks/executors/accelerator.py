"""Suite rows B15 and B3 on Ray: how busy a scarce accelerator is kept, and how long others take for the same plan.

    python -m benchmarks.executors.accelerator ray ray_data xenna --items 200 --sleepers 16

One Ray on this machine, with as many logical cores as there are sleepers; the executors run one after another in this
program, each with a short run first, so that Ray's processes are there. All stages sleep: the two cores of a laptop
pretend to be a cluster. The accelerator is a stage with one worker and not a GPU, because Cosmos-Xenna believes only in
GPUs it finds.

B15: 0.05 s of processor, 0.1 s of the accelerator, 0.05 s of processor. Busy is the share of the time between the first
and the last task of the accelerator. B3: a pool of 0.17 s before a bottleneck of 0.21 s that takes 10 s to set up, two
minutes of work. Here the bottleneck is the accelerator: busy is the share of each of its workers' time between the
first and the last task. Beside it `all_busy`, of both stages, from when as many workers as there are cores have begun
until the last task begins; when that was is said too: starting a process of Ray takes a second of a real core.
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
    """Run B3 once: how long it took, how busy the bottleneck was, and all workers once they had begun."""
    spec = SimulationSpec(items=items, nodes=(NodeSpec(cpus=sleepers),), stages=SLOW_START.stages)
    started = time.time()
    result = run_for_real(spec, executor=executor)
    wall_s = time.time() - started
    workers: dict[tuple[str, float], list[tuple[float, float]]] = {}  # what each did, by stage and set-up
    for task in result:
        for stage in spec.stages:
            setup_at, *times = task._metadata[stage.name]
            workers.setdefault((stage.name, setup_at), []).append((times[0], times[1]))
    slow = [sorted(done) for (stage, _), done in workers.items() if stage == spec.stages[-1].name]
    at_work = sum(ended - began for done in slow for began, ended in done)
    work = [times for done in workers.values() for times in done]
    first = sorted(min(done)[0] for done in workers.values())[: spec.nodes[0].cpus][-1]
    last = max(began for began, _ in work)
    asleep = sum(max(0.0, min(ended, last) - max(began, first)) for began, ended in work)
    return {
        "wall_s": round(wall_s, 1),
        "least_s": round(sum(stage.service_s for stage in spec.stages) * items / sleepers, 1),
        "all_begun_s": round(first - started, 1),
        "busy": round(at_work / sum(done[-1][1] - done[0][0] for done in slow), 4),
        "all_busy": round(asleep / (last - first) / sleepers, 4),
        "of_bound": None if result.efficiency is None else round(result.efficiency.of_bound, 3),
    }


def main() -> None:
    """Measure every executor named, in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("executors", nargs="+")
    parser.add_argument("--sleepers", type=int, default=16)
    parser.add_argument("--items", type=int, default=200, help="of B15")
    parser.add_argument("--slow-start-items", type=int, help="of B3; two minutes of work if not given, 0 leaves it out")
    arguments = parser.parse_args()
    slow_items = arguments.slow_start_items
    if slow_items is None:
        slow_items = SLOW_START.items * arguments.sleepers // int(SLOW_START.nodes[0].cpus)
    import ray

    ray.init(address="local", num_cpus=arguments.sleepers, include_dashboard=True, log_to_driver=False)
    print(header())
    for name in arguments.executors:
        executor: BaseExecutor = find_executor(name, who="accelerator")()
        scarce_accelerator(executor, arguments.sleepers, WARM_ITEMS)
        print(name, "B15", scarce_accelerator(executor, arguments.sleepers, arguments.items), flush=True)
        if slow_items:
            print(name, "B3", slow_start(executor, arguments.sleepers, slow_items), flush=True)


if __name__ == "__main__":
    main()
