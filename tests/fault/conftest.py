"""Fixtures of the fault tests."""

import pytest
from tests.fault.processes import Scene


@pytest.fixture
def scene(tmp_path):
    """A place for programs that are killed; whatever a failed test leaves running is ended."""
    made = Scene(tmp_path)
    yield made
    made.close()
