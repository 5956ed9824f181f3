"""Rows B3, B4 and B7: stages that take long to start."""

from benchmarks.engine.outcome import Outcome, Row, at_least
from benchmarks.engine.sleepers import run_for_real

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, SlowdownSpec, StageSpec

SLOW_START = SimulationSpec(
    items=40_000,  # two minutes of work for 126 slots
    nodes=(NodeSpec(cpus=126),),
    stages=(StageSpec(name="fast", service_s=0.17), StageSpec(name="bottleneck", service_s=0.21, setup_s=10)),
)
FOUR_GPUS = SimulationSpec(
    items=1_600,
    nodes=(NodeSpec(cpus=8, gpus=4),),
    stages=(StageSpec(name="caption", gpus=1, service_s=0.5, setup_s=40),),
)
PAUSE = SimulationSpec(
    items=8_000,
    nodes=(NodeSpec(cpus=16, gpus=4),),
    stages=(
        StageSpec(name="prepare", service_s=1),
        StageSpec(name="caption", cpus=1, gpus=1, service_s=0.4, setup_s=90),
    ),
    slowdowns=(SlowdownSpec(stage="prepare", from_s=300, until_s=360, factor=float("inf")),),
)
# The same on processes, smaller: 24 that sleep, and a set-up short enough for a row to take a minute.
SLOW_START_E = SimulationSpec(items=3_000, nodes=(NodeSpec(cpus=24),), stages=SLOW_START.stages, rescale_interval_s=1.0)
FOUR_GPUS_E = SimulationSpec(
    items=240,
    nodes=(NodeSpec(cpus=8, gpus=4),),
    stages=(StageSpec(name="caption", cpus=0, gpus=1, service_s=0.5, setup_s=8),),
    rescale_interval_s=1.0,
)
AT_ONCE_S = 0.5  # between the first and the last set-up: processes are started one after another


def _slow_start() -> list[Outcome]:
    result = Simulation(SLOW_START).run()
    facts = {"makespan_s": result.makespan_s, "bound_s": result.bound_s, "started": result.workers_started}
    return [at_least("LB / makespan", result.of_bound, 0.95, **facts)]


def _four_gpus() -> list[Outcome]:
    result = Simulation(FOUR_GPUS).run()
    at_once = sum(second == 0 for second, _ in result.starts)
    return [Outcome("workers starting at t = 0", "4", str(at_once), at_once == 4, {"makespan_s": result.makespan_s})]


def _pause() -> list[Outcome]:
    result = Simulation(PAUSE).run()
    started = result.workers_started["caption"]
    return [Outcome("starts of the slow-starting stage", "4", str(started), started == 4)]


def _slow_start_for_real() -> list[Outcome]:
    found = run_for_real(SLOW_START_E).efficiency
    assert found is not None
    return [at_least("LB / makespan", found.of_bound, 0.95, **found.to_json())]


def _four_gpus_for_real() -> list[Outcome]:
    done = run_for_real(FOUR_GPUS_E)
    starts = sorted({task._metadata["caption"][0] for task in done})
    apart = starts[-1] - starts[0]
    mark = f"4 within {AT_ONCE_S:g} s"
    return [Outcome("set-ups begun", mark, f"{len(starts)} in {apart:.2f} s", len(starts) == 4 and apart <= AT_ONCE_S)]


ROWS = (
    Row("B3", "E", "24 sleepers, 0.17 s before 0.21 s with a set-up of 10 s", _slow_start_for_real),
    Row("B4", "E", "one GPU stage, set-up 8 s, 4 GPUs", _four_gpus_for_real),
    Row("B3", "V", "126 slots, 0.17 s before 0.21 s with a set-up of 10 s", _slow_start),
    Row("B4", "V", "one GPU stage, set-up 40 s, 4 GPUs", _four_gpus),
    Row("B7", "V", "upstream pauses 60 s, set-up 90 s", _pause),
)
