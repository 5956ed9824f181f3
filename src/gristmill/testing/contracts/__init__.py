"""Contracts as classes of tests: subclass one in your own tests, say what is to be tested, and run pytest."""

import pytest

pytest.register_assert_rewrite("gristmill.testing.contracts.executor")  # so that a failure shows both sides

from gristmill.testing.contracts.executor import ExecutorContract  # noqa: E402

__all__ = ["ExecutorContract"]
