"""Shares of GPUs add up exactly, go to the fullest GPU they fit on, and whole GPUs stay whole."""

import pytest

from gristmill.engine.policies.packing import UNITS, choose_gpus, share_of_gpu
from gristmill.stages.resources import Resources


@pytest.mark.parametrize(
    ("resources", "memory_gb", "units"),
    [
        (Resources(gpus=0.1), 80, 1000),
        (Resources(gpus=1), 80, UNITS),
        (Resources(gpus=0.00001), 80, 1),
        (Resources(gpu_memory_gb=20), 80, 2500),
        (Resources(gpu_memory_gb=1), 1.5, 6666),
        (Resources(gpu_memory_gb=0.4), 0.4, UNITS),
        (Resources(gpu_memory_gb=81), 80, None),
        (Resources(gpu_memory_gb=1), 0, None),
    ],
)
def test_a_request_is_a_share_of_the_gpu_it_lands_on(resources, memory_gb, units):
    assert share_of_gpu(resources, memory_gb) == units


@pytest.mark.parametrize(
    ("requests", "gpu_gb"), [([10] * 3, 30), ([10] * 10 + [1] * 2, 102), ([0.1] * 10, 1), ([7] * 7, 49)]
)
def test_requests_that_add_up_to_the_gpu_fit_on_it(requests, gpu_gb):
    free = [UNITS]
    for gigabytes in requests:
        placed = choose_gpus(Resources(gpu_memory_gb=gigabytes), free, [gpu_gb])
        assert placed is not None
        free[0] -= placed[0][1]

    assert choose_gpus(Resources(gpu_memory_gb=gpu_gb / 100), free, [gpu_gb]) is None


def test_a_worker_without_gpu_fits_anywhere():
    assert choose_gpus(Resources(), [], []) == ()


@pytest.mark.parametrize(("free", "gpu"), [([UNITS, 4000, 2000], 1), ([4000, 5000, UNITS], 0), ([2000, 4000, 4000], 1)])
def test_a_share_goes_to_the_fullest_gpu_it_fits_on_and_of_equals_to_the_first(free, gpu):
    assert choose_gpus(Resources(gpus=0.3), free, [80] * 3) == ((gpu, 3000),)


def test_a_share_that_fits_nowhere_waits():
    assert choose_gpus(Resources(gpus=0.6), [4000, 5000], [80] * 2) is None


def test_several_gpus_must_be_whole():
    assert choose_gpus(Resources(gpus=2), [UNITS, 9999, UNITS], [80] * 3) == ((0, UNITS), (2, UNITS))
    assert choose_gpus(Resources(gpus=2), [UNITS, 9999], [80] * 2) is None
