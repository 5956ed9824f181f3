"""Runs the scheduler suite on real processes: `make bench-engine`. Options are passed on (`--record`)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = ("accelerator",)


def main() -> None:
    """Run each row in a process of its own."""
    for row in ROWS:
        subprocess.run([sys.executable, "-m", f"benchmarks.engine.{row}", *sys.argv[1:]], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
