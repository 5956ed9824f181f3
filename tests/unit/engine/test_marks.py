"""What the scheduler must reach in virtual time, each case against the best anybody could do."""

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec


def simulate(**document):
    return Simulation(SimulationSpec.parse(document)).run()


def best_with_setup(slots, items, fast_s, slow_s, setup_s):
    """The shortest run of two stages on so many slots, the second of which takes `setup_s` to start a worker."""
    return min(
        max(items * fast_s / (slots - slow), setup_s + items * slow_s / slow, (items * (fast_s + slow_s)) / slots)
        for slow in range(1, slots)
    )


def test_a_fast_stage_works_while_the_workers_of_a_slow_one_start():
    stages = [{"name": "fast", "service_s": 0.17}, {"name": "slow", "service_s": 0.21, "setup_s": 10}]
    result = simulate(items=12_600, nodes={"cpus": 126}, stages=stages, rescale_interval_s=1.0)

    assert best_with_setup(126, 12_600, 0.17, 0.21, 10) / result.makespan_s >= 0.95
