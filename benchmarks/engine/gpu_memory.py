"""Row B16: stages that share one GPU by memory. The best shares follow from the rates, and nobody states them."""

from collections import Counter

from benchmarks.engine.outcome import Outcome, Row

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec

ITEMS = 1_000
WANTED = {"encode": 2, "pick": 1, "caption": 10}  # 102 GB: 2 × 1 GB + 10 × 10 GB, each one item a second

SPEC = SimulationSpec(
    items=ITEMS,
    nodes=(NodeSpec(cpus=64, gpus=1, gpu_memory_gb=102),),
    stages=(
        StageSpec(name="encode", cpus=0, gpu_memory_gb=1, service_s=2),
        StageSpec(name="pick", service_s=1),
        StageSpec(name="caption", cpus=0, gpu_memory_gb=10, service_s=10),
    ),
)


def _measure() -> list[Outcome]:
    simulation = Simulation(SPEC)
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    simulation.begin()
    while simulation.finish is None:
        before = simulation.now
        now = Counter(SPEC.stages[worker.group].name for worker in simulation.workers.values())
        simulation.step()
        seen[tuple(sorted(now.items()))] += round(1000 * (simulation.now - before))
    usual = dict(seen.most_common(1)[0][0])
    ratio = " : ".join(str(usual.get(name, 0)) for name in WANTED)
    return [
        Outcome("workers most of the time", "2 : 1 : 10", ratio, usual == WANTED),
        Outcome("makespan", "≤ 1050 s", f"{simulation.now:.0f} s", simulation.now <= 1.05 * ITEMS),
    ]


ROWS = (Row("B16", "V", "102 GB GPU; 1 GB/2 s, CPU 1 s, 10 GB/10 s; 1,000 items", _measure),)
