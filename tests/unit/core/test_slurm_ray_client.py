"""A cluster over the nodes of a Slurm job. Two processes play two nodes; Ray is real, srun's environment is given."""

import os
import subprocess
import sys

import pytest

from gristmill.core.slurm_environment import SlurmStep
from gristmill.core.slurm_ray_client import SlurmRayClient
from gristmill.errors import ConfigError, RunFailed

COUNT_NODES = (
    "import ray; ray.init(log_to_driver=False); print('nodes', len(ray.nodes()), ray.cluster_resources()['CPU'])"
)


def slurm(monkeypatch, **variables):
    for name in [name for name in os.environ if name.startswith(("SLURM_", "RAY_"))]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


def test_the_environment_says_which_node_this_is(monkeypatch, tmp_path):
    slurm(monkeypatch, SLURM_JOB_ID=7, SLURM_NODEID=2, SLURM_JOB_NUM_NODES=4, SLURM_CPUS_ON_NODE=16)
    monkeypatch.setenv("RAY_PORT_BROADCAST_DIR", str(tmp_path))
    step = SlurmStep.from_environment()

    assert (step.node, step.num_nodes, step.cpus, step.gpus) == (2, 4, 16, None)
    assert step.address_file == tmp_path / ".gristmill-ray-head-7-0"


def test_names_of_nodes_are_asked_of_scontrol(monkeypatch, tmp_path):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/bash\n[ "$*" = "show hostnames n[1-2]" ] && printf "n1\\nn2\\n"\n')
    scontrol.chmod(0o755)
    slurm(monkeypatch, SLURM_JOB_ID=7, SLURM_JOB_NODELIST="n[1-2]", PATH=f"{tmp_path}:/usr/bin:/bin")

    assert SlurmStep.from_environment().host_names() == ["n1", "n2"]


def test_outside_of_a_job_the_cluster_is_this_machine_and_that_is_said(monkeypatch):
    slurm(monkeypatch)

    with (
        pytest.warns(UserWarning, match=r"there is no Slurm job here .* this machine alone; `gristmill slurm` prints"),
        # It starts what a RayClient starts, which refuses this before Ray is started.
        pytest.raises(ConfigError, match="RayClient: expected a ray_temp_dir of at most"),
    ):
        SlurmRayClient(ray_temp_dir=f"/tmp/{'long' * 50}").start()


def test_somebody_elses_cluster_is_used_and_left_alone(monkeypatch):
    slurm(monkeypatch, RAY_ADDRESS="10.0.0.1:6379")
    with SlurmRayClient():
        pass

    assert os.environ["RAY_ADDRESS"] == "10.0.0.1:6379"


def test_a_node_that_never_hears_of_the_head_says_where_it_looked(monkeypatch, tmp_path):
    slurm(monkeypatch, SLURM_JOB_ID=7, SLURM_NODEID=1, SLURM_JOB_NUM_NODES=2, RAY_PORT_BROADCAST_DIR=tmp_path)

    with pytest.raises(
        RunFailed, match=f"expected the head's address in {tmp_path}/.gristmill-ray-head-7-0 within 0 s"
    ):
        SlurmRayClient(worker_connect_timeout_s=0).start()


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.heavy
@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("no_cluster")
def test_the_first_node_runs_the_command_on_all_nodes_and_the_others_end_with_it(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "RAY_"))}
    environment |= {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "RAY_PORT_BROADCAST_DIR": str(tmp_path)}
    environment |= {"SLURM_CPUS_ON_NODE": "3", "RAY_TMPDIR": "/tmp"}
    command = [sys.executable, "-m", "gristmill.core.slurm_node", sys.executable, "-c", COUNT_NODES]
    other = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**environment, "SLURM_NODEID": "1"})
    head = subprocess.run(
        command, env={**environment, "SLURM_NODEID": "0"}, capture_output=True, text=True, timeout=240, check=False
    )

    assert head.returncode == 0, head.stderr
    assert "nodes 2 6.0" in head.stdout
    assert other.wait(120) == 0
    assert not (tmp_path / ".gristmill-ray-head-7-0").exists()
