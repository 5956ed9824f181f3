"""LocalExecutor keeps the contract of executors, with worker processes and without."""

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.testing.contracts import ExecutorContract

pytestmark = pytest.mark.slow


class TestProcesses(ExecutorContract):
    outlives_machines = False

    @classmethod
    def make_executor(cls):
        return LocalExecutor(num_workers=2)


class TestOneProcess(ExecutorContract):
    outlives_machines = False

    @classmethod
    def make_executor(cls):
        return LocalExecutor(num_workers=0)
