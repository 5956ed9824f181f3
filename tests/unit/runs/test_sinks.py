"""Runs that come and go in one output directory: each has it, or is told who has."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gristmill.errors import ConfigError
from gristmill.runs.sinks import DiskSinks

ROUNDS = 200


def come_and_go(output):
    """Take the directory again and again, as one run after another; return how often, and what was said else."""
    taken, said = 0, set()
    for _ in range(ROUNDS):
        sinks = DiskSinks("session", output / ".gristmill", shared=False)
        try:
            sinks.hold_outputs([str(output)])
            taken += 1
        except ConfigError as refusal:
            said.add(str(refusal).partition("; process")[0])
        sinks.close()
    return taken, said


@pytest.mark.slow
def test_a_directory_that_another_run_leaves_at_this_moment_is_not_an_error(tmp_path):
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(come_and_go, [tmp_path / "out"] * 2))

    assert all(taken for taken, _ in found)
    assert set.union(*(said for _, said in found)) <= {
        f"{tmp_path}/out: expected no other run to write to this directory"
    }
