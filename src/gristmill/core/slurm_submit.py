"""`submit`: hand a batch script to Slurm's `sbatch` and return the number of the job."""

import shutil
import subprocess

from gristmill.errors import ConfigError, RunFailed

WAIT_S = 60  # sbatch answers at once, or the controller of the cluster is not there


def submit(script: str, *, after: str | None = None) -> str:
    """Submit a script, to begin when job `after` has ended, however it ends."""
    program = shutil.which("sbatch")
    if program is None:
        raise ConfigError(
            "slurm: expected the program sbatch on PATH, as on a login node of the cluster; there is none. "
            "Without --submit the script is printed, to be copied there"
        )
    dependency = [] if after is None else [f"--dependency=afterany:{after}"]
    try:
        done = subprocess.run(
            [program, "--parsable", *dependency],
            input=script,
            text=True,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunFailed(f"sbatch: expected an answer within {WAIT_S} s; there was none") from None
    if done.returncode:
        raise RunFailed(f"sbatch: expected the job to be accepted; got {(done.stderr or done.stdout).strip()!r}")
    # "--parsable" prints "number" or "number;cluster".
    return done.stdout.strip().partition(";")[0]
