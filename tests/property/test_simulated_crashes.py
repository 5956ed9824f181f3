"""A simulated run that is struck by losses, cut off after any event and started again leaves the same manifest (I4)."""

import random

import pytest
from tests.property.budget import SEEDS

from gristmill.backends.simulated.result import Manifest
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import FaultSpec, NodeSpec, SimulationSpec, StageSpec

BLOCKS = 4


def spec_of(seed):
    """A small job on two machines; workers are killed, machines lost with their data, documents bad."""
    chance = random.Random(seed)
    stages = [
        StageSpec(
            name=f"stage_{index}",
            service_s=chance.uniform(0.5, 3),
            sigma=chance.choice((0.0, 1.0)),
            fan_out=chance.choice((1, 2.5)),
            batch_size=chance.choice((1, 3)),
            item_bytes=chance.choice(("1MB", "300MB")),
            setup_s=chance.choice((0.0, 2.0)),
        )
        for index in range(chance.randint(1, 3))
    ]
    faults = FaultSpec(
        kill_worker_every_s=chance.choice((None, 5)),
        lose_node_every_s=chance.choice((None, 30)),
        node_back_s=chance.choice((0.5, 5)),
        poison_share=chance.choice((0.0, 0.1)),
        fatal_share=chance.choice((0.0, 0.05)),
    )
    nodes = (NodeSpec(count=2, cpus=chance.choice((2, 4)), memory="1GB"),)
    return SimulationSpec(
        items=chance.randint(2, 8), documents=4, seed=seed, nodes=nodes, stages=tuple(stages), faults=faults
    )


def manifests(simulation):
    """What is committed after every event, each different one once; the last is the whole."""
    simulation.begin()
    found = [{}]
    while simulation.finish is None:
        simulation.step()
        if len(simulation.manifest.roots) != len(found[-1]):
            found.append(dict(simulation.manifest.roots))
    return found


def check_crashes(seed):
    """Raise AssertionError unless every crash leads to the same manifest; return how many there were."""
    spec = spec_of(seed)
    *partial, whole = manifests(Simulation(spec))
    assert sorted(whole) == list(range(spec.items)), f"seed {seed}"
    for roots in partial:
        resumed = Simulation(spec, done=roots)
        resumed.run()
        both = Manifest()
        both.roots = roots | resumed.manifest.roots
        assert both.roots == whole, f"seed {seed}: crash after {len(roots)} commits"
    return len(partial)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_crash_of_a_struck_run_changes_nothing_in_the_end(block):
    crashes = sum(check_crashes(seed) for seed in range(block, SEEDS, BLOCKS))

    assert crashes > SEEDS / BLOCKS


def test_some_of_the_runs_lose_machines_with_data_on_them():
    assert sum(Simulation(spec_of(seed)).run().started_over for seed in range(20)) > 0
