"""`SlurmJob`: the text of a batch script for Slurm. Nothing is started here; `slurm_submit.py` hands it to `sbatch`.

On several nodes `srun` starts one process a node: the first becomes the head of a Ray cluster and runs the command, the
others lend it their cores (`slurm_node.py`). On one node no Ray is needed. An array is asked for, never guessed: its
tasks are runs of their own, with output directories of their own.
"""

import re
import shlex
from dataclasses import dataclass

from gristmill.errors import ConfigError

# Slurm takes "days-hours:minutes:seconds" and leaves out parts of it.
TIME_LIMIT = re.compile(r"\d+(-\d+(:\d+){0,2})?|\d+(:\d+){1,2}")
MEMORY = re.compile(r"\d+[KMGT]?")
STOP_BEFORE_S = 120  # enough to commit what is good; the same script continues the run
SHARD = "$SLURM_ARRAY_TASK_ID"  # filled in by the shell of each task


@dataclass(frozen=True)
class SlurmJob:
    """One job. `setup` lines run before the command, `options` are passed to `sbatch` as they are.

    `array` splits the input into this many shards, one task of the array for each.
    """

    name: str
    command: tuple[str, ...]
    nodes: int = 1
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    cpus: int | None = None
    gpus: int | None = None
    memory: str | None = None
    array: int | None = None
    setup: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    log_dir: str = "."

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("cpus", 1), ("gpus", 0), ("array", 1)):
            number: int | None = getattr(self, name)
            if number is not None and number < least:
                raise ConfigError(f"slurm: expected {name} ≥ {least}; got {number!r}")
        if self.time is not None and not TIME_LIMIT.fullmatch(self.time):
            raise ConfigError(
                f"slurm: expected time as minutes, hours:minutes:seconds or days-hours; got {self.time!r}"
            )
        if self.memory is not None and not MEMORY.fullmatch(self.memory):
            raise ConfigError(f"slurm: expected memory for a node such as 64G; got {self.memory!r}")
        for option in self.options:
            if not option.startswith("-") or "\n" in option:
                raise ConfigError(f"slurm: expected an option of sbatch such as --qos=high; got {option!r}")

    def script(self) -> str:
        """Return the batch script."""
        lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in self._options()), "set -euo pipefail", *self.setup]
        return "\n".join([*lines, self._step()]) + "\n"

    def _options(self) -> list[str]:
        log = "%x-%A_%a.log" if self.array else "%x-%j.log"
        given = {
            "job-name": self.name,
            "nodes": self.nodes,
            "ntasks-per-node": 1,
            "cpus-per-task": self.cpus,
            "gpus-per-node": self.gpus or None,
            "mem": self.memory,
            "time": self.time,
            "partition": self.partition,
            "account": self.account,
            "array": None if self.array is None else f"0-{self.array - 1}",
            "output": f"{self.log_dir.rstrip('/') or '/'}/{log}",
            "signal": f"TERM@{STOP_BEFORE_S}" if self.time else None,
        }
        # A job that lost its node starts again and continues from its ledger.
        return [f"--{key}={value}" for key, value in given.items() if value is not None] + ["--requeue", *self.options]

    def _step(self) -> str:
        words = [shlex.quote(word) for word in self.command]
        if self.array is not None:
            words += ["--shard", f'"{SHARD}/{self.array}"']
        if self.nodes > 1:
            words = ["python", "-m", "gristmill.core.slurm_node", *words]
        return " ".join(["srun", "--kill-on-bad-exit=1", *words])
