"""Runs the benchmarks of the package one after another: `make bench`. Options are passed on (`--record`).

The large-file benchmark takes minutes and 10 GB of disk at its full sizes; here it runs small. `--full` runs it whole.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = ("--sizes", "100MB,400MB")


def main() -> None:
    """Run each benchmark in a process of its own, so that none warms up another."""
    options = [option for option in sys.argv[1:] if option != "--full"]
    sizes = () if "--full" in sys.argv else SMALL
    for module, own in (("hello", ()), ("noop_tasks", ()), ("large_file", sizes)):
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *own, *options], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
