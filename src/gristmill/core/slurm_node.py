"""`python -m gristmill.core.slurm_node COMMAND …`: what a job script of `gristmill slurm` starts on every node.

The first node runs the command with RAY_ADDRESS set; the others lend it their cores until it is done.
"""

import subprocess
import sys

from gristmill.core.slurm_ray_client import SlurmRayClient


def main(command: list[str]) -> int:
    """Return what the command exited with."""
    with SlurmRayClient(include_dashboard=False):
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
