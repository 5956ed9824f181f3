"""Resources are numbers that make sense together."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.resources import Resources


@pytest.mark.parametrize(
    ("resources", "needs_gpu"),
    [
        (Resources(), False),
        (Resources(cpus=0.5), False),
        (Resources(gpus=0.25), True),
        (Resources(gpus=2), True),
        (Resources(gpu_memory_gb=10), True),
    ],
)
def test_a_gpu_is_needed_if_any_of_it_is(resources, needs_gpu):
    assert resources.requires_gpu is needs_gpu


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cpus": -1}, "expected cpus to be a number ≥ 0; got -1"),
        ({"gpus": "1"}, "expected gpus to be a number ≥ 0; got '1'"),
        ({"gpus": 1.5}, "expected gpus to be a share of one GPU or a whole number; got 1.5"),
        ({"gpus": 1, "gpu_memory_gb": 8}, "expected gpus or gpu_memory_gb, not both; got gpus=1 and gpu_memory_gb=8"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        Resources(**given)
