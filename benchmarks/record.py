"""What every benchmark says first: machine, versions, commit. A number without them cannot be compared with anything.

`python benchmarks/record.py` prints the header alone.
"""

import compileall
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("gristmill", "pyarrow", "numpy", "msgspec")


def header() -> dict[str, object]:
    """Where and with what a benchmark runs. What is measured is compiled first, as it is wherever pip installed it."""
    compileall.compile_dir(ROOT / "src", quiet=2)
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _commit(),
        "load": round(os.getloadavg()[0], 2),
    }


def record(name: str, began: dict[str, object], result: dict[str, object]) -> None:
    """Print a result with the header made before it was measured; keep it in `results/` if told to (--record).

    Before, because the load afterwards is the benchmark's own, and the checkout may have moved on meanwhile.
    """
    whole = {"benchmark": name, **began, "result": result}
    print(json.dumps(whole, indent=1))
    if "--record" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def _commit() -> str:
    """The commit that was measured; changes count, except to the results themselves."""
    commit = _git("rev-parse", "--short", "HEAD")
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py", "benchmarks/engine")
    return (commit or "unknown") + "-dirty" * bool(changes)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    print(json.dumps(header(), indent=1))
