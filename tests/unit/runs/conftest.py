"""The run directory as a driver opens it."""

import pytest
from tests.unit.runs.records import plan

from gristmill.runs.directory import RunDirectory


@pytest.fixture
def opened(tmp_path):
    """Open the directory as a driver does; all that were opened are closed at the end."""
    directories = []

    def open_directory(the_plan=None, session="one", *, durable=False):
        for earlier in directories:
            earlier.close()
        directory = RunDirectory(tmp_path / "run", session=session, durable=durable)
        directories.append(directory)
        directory.acquire()
        return directory, directory.resume(the_plan or plan(), rejects_path=None)

    yield open_directory
    for directory in directories:
        directory.close()
