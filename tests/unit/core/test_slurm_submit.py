"""Submitting says what `sbatch` said. The `sbatch` here is a program on PATH, started as the real one would be."""

import pytest

from gristmill.core.slurm_submit import submit
from gristmill.errors import ConfigError, RunFailed


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """Put a program named sbatch on PATH; what it was given is in `given`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def install(body):
        program = tmp_path / "sbatch"
        program.write_text(f'#!/bin/bash\n{{ echo "$@"; cat; }} > {tmp_path}/given\n{body}\n')
        program.chmod(0o755)
        return tmp_path / "given"

    return install


@pytest.mark.parametrize("answer", ["1234", "1234;cluster"])
def test_the_number_of_the_job_is_returned(sbatch, answer):
    given = sbatch(f'echo "{answer}"')

    assert submit("#!/bin/bash\ntrue\n") == "1234"
    assert given.read_text() == "--parsable\n#!/bin/bash\ntrue\n"


def test_a_job_can_wait_for_another(sbatch):
    given = sbatch("echo 2")

    submit("script", after="1")

    assert given.read_text().startswith("--parsable --dependency=afterany:1")


def test_what_sbatch_refuses_is_passed_on(sbatch):
    sbatch('echo "invalid partition specified: gpu" >&2; exit 1')

    with pytest.raises(RunFailed, match="expected the job to be accepted; got 'invalid partition specified: gpu'"):
        submit("script")


def test_away_from_a_cluster_the_way_out_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        ConfigError, match=r"expected the program sbatch on PATH.*Without --submit the script is printed"
    ):
        submit("script")
