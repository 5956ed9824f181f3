"""Jobs submitted to a cluster of one machine: `sbatch` and `srun` here are programs that run what they are given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "gristmill")
PROSE = "The miller went to the river with a sack of grain, and that was all he had to do. " * 5

# Runs an array task by task, each with the environment Slurm would give it; prints the number of the job.
SBATCH = """#!/bin/bash
script=$(cat)
job=$(( $(cat jobs 2>/dev/null || echo 100) + 1 )); echo $job > jobs
last=$(sed -n 's/^#SBATCH --array=0-//p' <<< "$script")
for task in $(seq 0 "${last:-0}"); do
  if [ -n "$last" ] && [ "$task" = "${LOST_TASK:-}" ]; then continue; fi
  SLURM_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task bash -c "$script" >> job-$job.log 2>&1
  echo "$job $task $?" >> exits
done
echo $job
"""
SRUN = '#!/bin/bash\nshift\nexec "$@"\n'

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path):
    """A directory with input in it, and how to run a command there as on a login node."""
    fakes = tmp_path / "bin"
    fakes.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN)):
        (fakes / name).write_text(text)
        (fakes / name).chmod(0o755)
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(4):
        documents = [{"id": f"{number}-{i}", "text": PROSE if i else "short"} for i in range(3)]
        (raw / f"{number}.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    path = f"{fakes}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(*arguments, **environment):
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    run.directory = tmp_path
    return run


def outputs(directory):
    return {path.name: path.read_bytes() for path in directory.rglob("*.jsonl") if ".gristmill" not in path.parts}


ARRAY = ("slurm", "basic-english", "--input=raw", "--output=clean", "--array=3", "--submit")


def test_an_array_writes_what_one_run_writes_and_accounts_for_every_shard(cluster):
    done = cluster(*ARRAY)
    alone = cluster("run", "basic-english", "--input=raw", "--output=alone", "--quiet")
    exits = (cluster.directory / "exits").read_text().splitlines()

    assert done.returncode == alone.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "submitted job 101",
        "submitted job 102, which accounts for all 3 shards",
    ]
    assert exits == ["101 0 0", "101 1 0", "101 2 0", "102 0 0"]
    assert "12 read, 0 created, 8 written" in (cluster.directory / "job-102.log").read_text()
    assert outputs(cluster.directory / "clean") == outputs(cluster.directory / "alone")


def test_a_lost_task_of_an_array_fails_the_accounting_and_can_be_run_again(cluster):
    cluster(*ARRAY, LOST_TASK="1")
    log = (cluster.directory / "job-102.log").read_text()
    again = cluster("run", "basic-english", "--input=raw", "--output=clean", "--shard=1/3", "--quiet")

    assert (cluster.directory / "exits").read_text().splitlines()[-1] == "102 0 1"
    assert "shard 1 of 3: not started" in log
    assert "start again with: --array=1" in log
    assert again.returncode == 0, again.stderr
    assert cluster("shards", "clean").returncode == 0


def test_a_mistake_in_the_recipe_is_found_before_anything_is_submitted(cluster):
    done = cluster("slurm", "basic-englsh", "--input=raw", "--output=clean", "--submit")

    assert done.returncode == 2
    assert "did you mean 'basic-english'" in done.stderr
    assert not (cluster.directory / "jobs").exists()


def test_without_submit_the_script_is_only_printed(cluster):
    options = ("--nodes=2", "--time=60", "--allow-module", "json", "--allow-module=csv")
    done = cluster("slurm", "basic-english", "--input=raw", "--output=clean", *options)

    assert done.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=gristmill\n#SBATCH --nodes=2\n")
    assert " --allow-module=json --allow-module=csv " in done.stdout
    assert not (cluster.directory / "jobs").exists()
