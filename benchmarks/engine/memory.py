"""Rows B5 and B6: data that grows on its way, and machines with little memory for their cores."""

import dataclasses

from benchmarks.engine.outcome import Outcome, Row, at_least

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec, as_bytes

LIMIT = "2GB"  # four decoders at work hold 0.8 GB of output when they are done
DECODE = SimulationSpec(
    items=1_000,
    source_bytes="20MB",
    nodes=(NodeSpec(cpus=16, gpus=4, memory=LIMIT),),
    stages=(
        StageSpec(name="decode", service_s=1, fan_out=20, item_bytes="10MB"),
        StageSpec(name="embed", cpus=0, gpus=1, service_s=0.05),
    ),
)
UNEQUAL = SimulationSpec(
    items=4_000,
    source_bytes="10MB",
    nodes=(NodeSpec(count=4, cpus=16, memory="4GB"), NodeSpec(count=4, cpus=16, memory="16GB")),
    stages=(
        StageSpec(name="decode", service_s=1, fan_out=10, item_bytes="10MB"),
        StageSpec(name="score", service_s=0.2),
    ),
)


def _decode() -> list[Outcome]:
    outcomes = []
    roomy = NodeSpec(cpus=16, gpus=4, memory="1000GB")
    for of, size in (("known size", "20MB"), ("unknown size", 0)):
        spec = dataclasses.replace(DECODE, source_bytes=size)
        bounded = Simulation(spec).run()
        free = Simulation(dataclasses.replace(spec, nodes=(roomy,))).run()
        peak, limit = bounded.peak_bytes[0], as_bytes(LIMIT)
        outcomes += [
            Outcome(f"{of}: peak", f"≤ {limit / 1e9:g} GB", f"{peak / 1e9:.2f} GB", peak <= limit),
            at_least(f"{of}: unbounded / bounded", free.makespan_s / bounded.makespan_s, 0.95),
        ]
    return outcomes


def _unequal() -> list[Outcome]:
    result = Simulation(UNEQUAL).run()
    limits = [as_bytes(kind.memory) for kind in UNEQUAL.nodes for _ in range(kind.count)]
    fullest = max(peak / limit for peak, limit in zip(result.peak_bytes, limits, strict=True))
    return [
        Outcome("fullest node", "≤ 1 of its limit", f"{fullest:.2f}", fullest <= 1),
        Outcome("LB / makespan", "(no mark)", f"{result.of_bound:.3f}", passed=True),
    ]


ROWS = (
    Row("B5", "V", f"1 item to 20 of 10 MB before a GPU stage, memory {LIMIT}", _decode),
    Row("B6", "V", "nodes of 4 and of 16 GB for 16 cores", _unequal),
)
