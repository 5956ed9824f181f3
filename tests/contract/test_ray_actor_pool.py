"""RayActorPoolExecutor keeps the contract of executors."""

import pytest

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.testing.contracts import ExecutorContract

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.cluster,
    pytest.mark.xdist_group("ray"),
]


class TestActors(ExecutorContract):
    @classmethod
    def make_executor(cls):
        return RayActorPoolExecutor()
