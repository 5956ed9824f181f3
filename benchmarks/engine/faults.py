"""Rows B10, B11 and B13: workers, nodes and drivers that die, documents that cannot be processed."""

import math

from benchmarks.engine.outcome import Outcome, Row

from gristmill.backends.simulated.chance import Chance
from gristmill.backends.simulated.result import Manifest
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import FaultSpec, NodeSpec, SimulationSpec, StageSpec

STAGES = (
    StageSpec(name="read", service_s=2, sigma=0.5, fan_out=3),
    StageSpec(name="embed", cpus=1, gpus=0.5, service_s=1, setup_s=20),
    StageSpec(name="write", service_s=0.2),
)
CLUSTER = (NodeSpec(count=8, cpus=16, gpus=4),)
DEATHS = FaultSpec(kill_worker_every_s=60, lose_node_every_s=600, node_back_s=120, kill_at={900: 0.3})
CALM = SimulationSpec(items=40_000, nodes=CLUSTER, stages=STAGES, seed=3)
STRUCK = SimulationSpec(items=40_000, nodes=CLUSTER, stages=STAGES, seed=3, faults=DEATHS)
BATCH = 64
BAD = SimulationSpec(
    items=1_000,
    documents=BATCH,
    nodes=(NodeSpec(cpus=16),),
    stages=(StageSpec(name="score", service_s=1), StageSpec(name="write", service_s=0.2)),
    faults=FaultSpec(poison_share=0.001, fatal_share=0.001),
)
SMALL = SimulationSpec(
    items=60,
    documents=4,
    nodes=(NodeSpec(count=2, cpus=4),),
    stages=(StageSpec(name="a", sigma=1.0, fan_out=2.5), StageSpec(name="b", batch_size=4)),
    faults=FaultSpec(kill_worker_every_s=7, poison_share=0.02),
)
EVERY = 5  # events between two crashes


def _deaths() -> list[Outcome]:
    calm, struck = Simulation(CALM).run(), Simulation(STRUCK).run()
    extra = (struck.wasted_s - struck.killed_s) / struck.useful_s
    same = struck.digest == calm.digest
    return [
        Outcome("output", "as without deaths", "the same" if same else "another", same),
        Outcome(
            f"wasted beyond what was killed ({struck.killed_s:.0f} s)",
            "≤ 5 %",
            f"{extra:.1%}",
            extra <= 0.05,
        ),
        Outcome("makespan / calm", "(no mark)", f"{struck.makespan_s / calm.makespan_s:.3f}", passed=True),
    ]


def _bad_documents() -> list[Outcome]:
    simulation = Simulation(BAD)
    result = simulation.run()
    chance = Chance(BAD)
    k = sum(len(rows) for item in range(BAD.items) for rows in chance.bad_documents(item))
    allowed = BAD.items + k * (2 * math.log2(BATCH) + 2)
    # Attempts of the second stage are not part of the bound.
    attempts = result.attempts - sum(len(outputs) for outputs in simulation.manifest.roots.values())
    committed = len(simulation.manifest.roots) * BATCH - result.quarantined
    good = BAD.items * BATCH - k
    return [
        Outcome("good documents committed", f"{good:,}", f"{committed:,}", committed == good, {"bad": k}),
        Outcome("attempts", f"≤ {allowed:,.0f}", f"{attempts:,}", attempts <= allowed),
    ]


def _crashes() -> list[Outcome]:
    """Crash the driver after every k-th event and go on from what is committed."""
    whole = Simulation(SMALL)
    expected, total = whole.run().digest, whole.num_events
    tried = [_resumed(after) == expected for after in range(EVERY, total, EVERY)]
    return [
        Outcome("identical manifests", f"{len(tried)} of {len(tried)}", f"{sum(tried)} of {len(tried)}", all(tried))
    ]


def _resumed(crash_after: int) -> str:
    first = Simulation(SMALL)
    first.begin()
    while first.finish is None and first.num_events < crash_after:
        first.step()
    second = Simulation(SMALL, done=first.manifest.roots)
    second.run()
    both = Manifest()
    both.update(first.manifest)
    both.update(second.manifest)
    return both.digest()


ROWS = (
    Row("B10", "V", "a worker killed a minute, a node lost every ten, 30 % of the workers at once", _deaths),
    Row("B11", "V", f"0.1 % poison and 0.1 % fatal documents in batches of {BATCH}", _bad_documents),
    Row("B13", "V", f"the driver crashes at every {EVERY}th event and goes on", _crashes),
)
