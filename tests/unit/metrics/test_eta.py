"""In simulated runs the interval of the estimate holds the truth most of the time, and is of use."""

import bisect

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.metrics.pace import SAMPLES, Eta


class Watched(Simulation):
    """A simulated run that notes when each of its items was committed."""

    def __init__(self, spec):
        super().__init__(spec)
        self.noted = []

    def write_down(self, commit):
        self.noted.append((self.now, self.scheduler.account.longest_path_s))
        return super().write_down(commit)


def looks(document, seed):
    """Look at a run every second: the truth, and what the estimate said."""
    run = Watched(SimulationSpec.parse({"seed": seed, **document}))
    run.run()
    times, eta, found = [now for now, _ in run.noted], Eta(), []
    end = times[-1]
    for second in range(1, int(end)):
        done = bisect.bisect_right(times, second)
        eta.add(float(second), done)
        longest_s = max((longest_s for _, longest_s in run.noted[:done]), default=0.0)
        said = eta.estimate(float(second), len(times) - done, longest_s)
        if said is not None:
            found.append((end - second, said))
    return found


RUNS = {
    "even": {"items": 200, "nodes": {"cpus": 4}, "stages": [{"name": "a", "service_s": 2, "sigma": 0.2}]},
    "ragged": {"items": 300, "nodes": {"cpus": 8}, "stages": [{"name": "a", "service_s": 3, "sigma": 1.0}]},
    "two stages": {
        "items": 200,
        "nodes": {"cpus": 6},
        "stages": [{"name": "a", "setup_s": 5}, {"name": "b", "service_s": 3, "sigma": 0.7, "setup_s": 10}],
    },
    "workers die": {
        "items": 200,
        "nodes": {"cpus": 4},
        "stages": [{"name": "a", "service_s": 2, "sigma": 0.5}],
        "faults": {"kill_worker_every_s": 15},
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_nine_in_ten_is_at_least_eight_in_ten(name):
    found = [look for seed in range(3) for look in looks(RUNS[name], seed)]
    held = [said.low_s <= truth <= said.high_s for truth, said in found]

    assert len(found) > 100
    assert sum(held) / len(held) >= 0.8


def test_the_interval_is_narrower_than_the_estimate_when_much_is_left():
    found = [(truth, said) for truth, said in looks(RUNS["even"], 0) if truth > 30]

    assert sum(said.high_s - said.low_s < said.left_s for _, said in found) / len(found) > 0.8


def test_nothing_is_said_before_anything_is_known():
    eta = Eta()
    assert eta.estimate(0.0, 100) is None
    for second in range(30):  # workers start
        eta.add(float(second), 0)
    assert eta.estimate(30.0, 100) is None
    eta.add(31.0, 5)
    assert eta.estimate(31.0, 95) is None
    for second in range(32, 36):
        eta.add(float(second), 5 * (second - 30))
    said = eta.estimate(35.0, 75)
    assert said.left_s == pytest.approx(15.0)
    assert said.low_s < 15.0 < said.high_s
    assert eta.estimate(37.0, 75).left_s == pytest.approx(13.0)  # it counts down


def test_only_the_latest_speed_counts():
    eta = Eta()
    for second in range(1, 40):
        eta.add(float(second), 100 * second)
    for second in range(40, 40 + 4 * SAMPLES):
        eta.add(float(second), 4000 + second - 40)

    assert eta.estimate(159.0, 30).left_s == pytest.approx(30.0, abs=3.0)


def test_at_the_end_nothing_is_left():
    eta = Eta()
    for second in range(1, 10):
        eta.add(float(second), second)

    assert eta.estimate(9.0, 0) == (0.0, 0.0, 0.0)
