"""Workers in proportion to load, one at least, no more than can be used."""

import pytest

from gristmill.engine.policies.autoscale import MEASURED, GroupLoad, targets


def load(group, **changes):
    known = {"cpus": 1.0, "fixed": None, "finished": False, "useful": 100, "completions": MEASURED, "load": 1.0}
    return GroupLoad(group=group, **{**known, "needs_gpu": False, **changes})


@pytest.mark.parametrize(
    ("loads", "cpus", "expected"),
    [
        pytest.param([load(0)], 8, {0: 8}, id="one group gets all"),
        pytest.param([load(0, completions=0)], 8, {0: 8}, id="even unmeasured, for nobody else wants them"),
        pytest.param([load(0), load(1)], 8, {0: 4, 1: 4}, id="equal loads share"),
        pytest.param([load(0), load(1, load=3.0)], 8, {0: 2, 1: 6}, id="in proportion to load"),
        pytest.param([load(0), load(1, completions=7)], 8, {0: 1, 1: 1}, id="one each until all are measured"),
        pytest.param([load(0), load(1), load(2)], 2, {0: 1, 1: 1, 2: 1}, id="cpus are compressible"),
        pytest.param([load(0, finished=True), load(1)], 4, {0: 0, 1: 4}, id="what is finished gives way"),
        pytest.param([load(0, useful=2), load(1)], 8, {0: 2, 1: 6}, id="no more than can be used"),
        pytest.param([load(0, fixed=3), load(1)], 8, {0: 3, 1: 5}, id="the user's number stands"),
        pytest.param([load(0, cpus=3.0), load(1)], 6, {0: 1, 1: 3}, id="a worker that does not fit is not started"),
        pytest.param([load(0, needs_gpu=True, useful=9), load(1)], 4, {0: 9, 1: 3}, id="gpus are cut by placement"),
    ],
)
def test_targets(loads, cpus, expected):
    assert targets(loads, cpus) == expected
