"""A batch script asks Slurm for what was asked for, and for nothing else."""

import subprocess

import pytest

from gristmill.core.slurm_script import SlurmJob
from gristmill.errors import ConfigError

COMMAND = ("gristmill", "run", "my recipe.yaml", "--set=text=it's")


def options(job):
    return [line.removeprefix("#SBATCH ") for line in job.script().splitlines() if line.startswith("#SBATCH")]


def test_what_was_not_asked_for_is_left_to_the_cluster():
    assert options(SlurmJob("mill", COMMAND)) == [
        "--job-name=mill",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--output=./%x-%j.log",
        "--requeue",
    ]


def test_every_wish_becomes_an_option():
    job = SlurmJob(
        "mill", COMMAND, 4, "1-12:00:00", "cpu", "lab", 32, 2, "64G", options=("--qos=high",), log_dir="logs"
    )

    assert set(options(job)) >= {
        "--nodes=4",
        "--time=1-12:00:00",
        "--partition=cpu",
        "--account=lab",
        "--cpus-per-task=32",
        "--gpus-per-node=2",
        "--mem=64G",
        "--qos=high",
        "--output=logs/%x-%j.log",
        "--signal=TERM@120",
    }


def test_one_node_needs_no_ray():
    assert "slurm_node" not in SlurmJob("mill", COMMAND).script()
    assert "python -m gristmill.core.slurm_node gristmill run" in SlurmJob("mill", COMMAND, nodes=2).script()


def test_only_an_array_that_was_asked_for_shards_the_input():
    assert "--shard" not in SlurmJob("mill", COMMAND, nodes=8).script()
    assert '--shard "$SLURM_ARRAY_TASK_ID/16"' in SlurmJob("mill", COMMAND, array=16).script()
    assert "--array=0-15" in options(SlurmJob("mill", COMMAND, array=16))


def test_bash_understands_the_script_and_keeps_words_whole(tmp_path):
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/bash\nprintf "%s\\n" "${@:2}"\n')
    srun.chmod(0o755)
    done = subprocess.run(
        ["bash"],
        input=SlurmJob("mill", COMMAND, setup=("export PATH=$FAKES:$PATH",)).script(),
        env={"FAKES": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == list(COMMAND)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"nodes": 0}, "expected nodes ≥ 1; got 0"),
        ({"array": 0}, "expected array ≥ 1; got 0"),
        ({"time": "4h"}, "expected time as minutes, hours:minutes:seconds or days-hours; got '4h'"),
        ({"memory": "64 GB"}, "expected memory for a node such as 64G; got '64 GB'"),
        ({"options": ("qos",)}, "expected an option of sbatch such as --qos=high; got 'qos'"),
    ],
)
def test_a_wish_slurm_would_not_understand_is_refused_here(wish, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        SlurmJob("mill", COMMAND, **wish)
