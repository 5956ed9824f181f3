"""Rows B3, B4 and B7: stages that take long to start."""

from benchmarks.engine.outcome import Outcome, Row, at_least

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


ROWS = (
    Row("B3", "V", "126 slots, 0.17 s before 0.21 s with a set-up of 10 s", _slow_start),
    Row("B4", "V", "one GPU stage, set-up 40 s, 4 GPUs", _four_gpus),
    Row("B7", "V", "upstream pauses 60 s, set-up 90 s", _pause),
)
