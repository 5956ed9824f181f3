"""RayDataExecutor keeps the contract of executors."""

import pytest

from gristmill.backends.ray_data import RayDataExecutor
from gristmill.testing.contracts import ExecutorContract

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.cluster,
    pytest.mark.xdist_group("ray"),
]


class TestRayData(ExecutorContract):
    @classmethod
    def make_executor(cls):
        return RayDataExecutor({"cpus": 2})
