"""XennaExecutor keeps the contract of executors."""

import pytest

from gristmill.backends.xenna import XennaExecutor
from gristmill.testing.contracts import ExecutorContract

pytest.importorskip("cosmos_xenna", reason="cosmos-xenna is an extra")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
]


class TestXenna(ExecutorContract):
    @classmethod
    def make_executor(cls):
        return XennaExecutor()
