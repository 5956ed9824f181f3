"""Rows B8 and B9: service times that vary much, and that change half way."""

from benchmarks.engine.outcome import Outcome, Row, at_least
from benchmarks.engine.sleepers import run_for_real

from gristmill.backends.simulated.accounts import rooms_of
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, SlowdownSpec, StageSpec
from gristmill.engine.fleet import Demand, area_bound

TAIL = SimulationSpec(
    items=4_000,
    nodes=(NodeSpec(cpus=16),),
    stages=(StageSpec(name="a", service_s=1, sigma=1.5, longest=20), StageSpec(name="b", service_s=0.2)),
)
# The same on processes: 60 s of work for each of 16, the longest item 5 s.
TAIL_E = SimulationSpec(
    items=3_200,
    nodes=(NodeSpec(cpus=16),),
    stages=(StageSpec(name="a", service_s=0.25, sigma=1.5, longest=20), StageSpec(name="b", service_s=0.05)),
    rescale_interval_s=1.0,
)
ITEMS, FACTOR = 6_000, 4.0
NODES = (NodeSpec(cpus=32),)
A_S, B_S = 1.0, 0.5


def _tail() -> list[Outcome]:
    outcomes = []
    for seed in range(3):
        spec = SimulationSpec(items=TAIL.items, nodes=TAIL.nodes, stages=TAIL.stages, seed=seed)
        result = Simulation(spec).run()
        over = result.makespan_s / result.bound_s
        facts: dict[str, object] = {"makespan_s": result.makespan_s, "bound_s": result.bound_s}
        outcomes.append(Outcome(f"makespan / LB, seed {seed}", "≤ 1.1", f"{over:.3f}", over <= 1.1, facts))
    return outcomes


def _tail_for_real() -> list[Outcome]:
    found = run_for_real(TAIL_E).efficiency
    assert found is not None
    over = found.makespan_s / found.bound_s
    return [Outcome("makespan / LB", "≤ 1.1", f"{over:.3f}", over <= 1.1, found.to_json())]


def _change() -> list[Outcome]:
    """The best possible: at the best rate until the change, at the other best rate after it."""
    stages = (StageSpec(name="a", service_s=A_S), StageSpec(name="b", service_s=B_S))
    before, after = (_best_rate(stages, factor) for factor in (1.0, FACTOR))
    change_s = ITEMS / before / 2
    slower = SlowdownSpec(stage="a", from_s=change_s, factor=FACTOR)
    result = Simulation(SimulationSpec(items=ITEMS, nodes=NODES, stages=stages, slowdowns=(slower,))).run()
    optimum_s = change_s + (ITEMS - before * change_s) / after
    facts: dict[str, object] = {"makespan_s": result.makespan_s, "optimum_s": optimum_s}
    return [at_least("optimum / makespan", optimum_s / result.makespan_s, 0.9, **facts)]


def _best_rate(stages: tuple[StageSpec, ...], factor: float) -> float:
    seconds = (stages[0].service_s * factor, stages[1].service_s)
    demands = [Demand(i, s.resources, 1.0, 1 / seconds[i]) for i, s in enumerate(stages)]
    return area_bound(demands, rooms_of(SimulationSpec(items=1, stages=stages, nodes=NODES)))


ROWS = (
    Row("B8", "V", "log-normal service, sigma 1.5, longest 20 × the mean", _tail),
    Row("B8", "E", "the same on 16 sleepers", _tail_for_real),
    Row("B9", "V", "service time of the first stage × 4 at half way", _change),
)
