"""Rows B1 and B2: two production stage tables on a few machines, and on hundreds and a thousand.

The tables are in `stage_tables.yaml`. B1 asks for the best integer packing and for a run that keeps up with it; B2 asks
how much is lost, and how long planning takes, when the cluster grows.
"""

import dataclasses
import statistics
import time
from pathlib import Path

import yaml
from benchmarks.engine.outcome import Outcome, Row, at_least

from gristmill.backends.simulated.accounts import rooms_of
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec
from gristmill.engine.fleet import Demand, WorkerPlan, area_bound, plan_workers

TABLES: dict[str, dict[str, object]] = yaml.safe_load(Path(__file__).with_name("stage_tables.yaml").read_text())
RUN_S = 5_000.0  # of virtual time at the best rate: filling and emptying the pipeline is a few percent of it
ROUNDS = 3


def spec_of(table: str, *, nodes: int | None = None, items: int = 1) -> SimulationSpec:
    """A table as a workload."""
    document = TABLES[table]
    kind = NodeSpec(**document["nodes"])  # type: ignore[arg-type]
    kind = kind if nodes is None else dataclasses.replace(kind, count=nodes)
    stages = []
    for row in document["stages"]:  # type: ignore[attr-defined]
        per_node = row.get("per_node")
        stages.append(
            StageSpec(
                name=row["name"],
                cpus=row["cpus"],
                gpus=row.get("gpus", 0),
                service_s=1 / row["rate"],
                num_workers=None if per_node is None else per_node * kind.count,
            )
        )
    return SimulationSpec(items=items, stages=tuple(stages), nodes=(kind,), rescale_interval_s=30)


def demands_of(spec: SimulationSpec) -> list[Demand]:
    """What the planner is told when everything is measured and the source is long."""
    return [Demand(i, s.resources, 1.0, 1 / s.service_s, fixed=s.num_workers) for i, s in enumerate(spec.stages)]


def best_of(table: str) -> float:
    """Items a second of the best integer packing."""
    bounds = TABLES[table]["bounds"]
    assert isinstance(bounds, dict)
    return float(bounds["best"])


def _plans() -> list[Outcome]:
    outcomes = []
    for table in TABLES:
        best, spec = best_of(table), spec_of(table)
        plan = plan_workers(demands_of(spec), rooms_of(spec))
        theta = plan.theta if plan else 0.0
        outcomes.append(at_least(f"{table}: plan", theta / best, 0.9995, theta=theta, best=best))
        result = Simulation(spec_of(table, items=round(RUN_S * best))).run()
        outcomes.append(at_least(f"{table}: run", result.items_per_s / best, 0.95, makespan_s=result.makespan_s))
    return outcomes


def _large() -> list[Outcome]:
    outcomes = []
    for table in TABLES:
        for nodes in (100, 1000):
            spec = spec_of(table, nodes=nodes)
            demands, rooms = demands_of(spec), rooms_of(spec)
            times: list[float] = []
            plan: WorkerPlan | None = None
            for _ in range(ROUNDS):
                present = [] if plan is None else [*plan.packing.kept, *plan.packing.new]
                began = time.process_time()
                plan = plan_workers(demands, rooms, present)
                times.append(time.process_time() - began)
            bound = min(area_bound(demands, rooms), *(d.most(nodes) for d in demands))
            theta = plan.theta if plan else 0.0
            outcomes.append(at_least(f"{table} × {nodes}", theta / bound, 0.99, theta=theta, bound=bound))
            took = statistics.median(times)
            outcomes.append(Outcome(f"{table} × {nodes}: replan", "< 0.3 s", f"{took:.3f} s", took < 0.3))
    return outcomes


ROWS = (
    Row("B1", "V", "two production stage tables, 10 and 3 nodes", _plans),
    Row("B2", "V", "the same on 100 and 1,000 nodes", _large),
)
