"""`SlurmStep`: what Slurm has told this process about the job it belongs to, through environment variables."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gristmill.errors import ConfigError


@dataclass(frozen=True)
class SlurmStep:
    """One process of a job step, as started by `srun` with one process a node."""

    job: str
    node: int  # 0 is the head
    num_nodes: int
    node_list: str
    cpus: int | None
    gpus: int | None
    shared: Path  # a directory all nodes of the job see

    @classmethod
    def from_environment(cls) -> "SlurmStep | None":
        """Read the environment; None outside of a Slurm job."""
        job = os.environ.get("SLURM_JOB_ID")
        if not job:
            return None
        # Steps of one job must not find each other's head.
        name = f"{job}-{os.environ.get('SLURM_STEP_ID', '0')}"
        shared = os.environ.get("RAY_PORT_BROADCAST_DIR") or os.environ.get("SLURM_SUBMIT_DIR") or "."
        return cls(
            job=name,
            node=_number("SLURM_NODEID") or 0,
            num_nodes=_number("SLURM_STEP_NUM_NODES") or _number("SLURM_JOB_NUM_NODES") or 1,
            node_list=os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST") or "",
            cpus=_number("SLURM_CPUS_ON_NODE"),
            gpus=_number("SLURM_GPUS_ON_NODE"),
            shared=Path(shared),
        )

    @property
    def address_file(self) -> Path:
        """Where the head writes how it is reached, and which it removes when it is done."""
        return self.shared / f".gristmill-ray-head-{self.job}"

    def host_names(self) -> list[str]:
        """The nodes by name, for messages; `scontrol` knows how to read Slurm's short form."""
        program = shutil.which("scontrol")
        if program is None or not self.node_list:
            return [self.node_list] if self.node_list else []
        done = subprocess.run(
            [program, "show", "hostnames", self.node_list], capture_output=True, text=True, check=False
        )
        return done.stdout.split() if done.returncode == 0 else [self.node_list]


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    if not text.isdecimal():
        raise ConfigError(f"{name}: expected a whole number from Slurm; got {text!r}")
    return int(text)
