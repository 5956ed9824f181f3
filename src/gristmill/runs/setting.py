"""Where and when a run was: for `report.json`, so that a report read a year later says what it is a report of."""

import os
import platform
import sys
import time

from gristmill import __version__
from gristmill.worker.node_sampler import memory

LIBRARIES = ("msgspec", "numpy", "pyarrow", "ray", "torch")  # of which the version may matter


def setting(wall_s: float, peak_memory_bytes: int) -> dict[str, object]:
    """Versions, host, times and the most memory of the session that has ended now."""
    ended_at = time.time()
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in LIBRARIES}
    return {
        "versions": {
            "gristmill": __version__,
            "python": platform.python_version(),
            **{name: str(version) for name, version in loaded.items() if version},
        },
        "host": {
            "name": platform.node(),
            "system": f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "memory_bytes": memory()[1],
        },
        "started_at": round(ended_at - wall_s, 3),
        "ended_at": round(ended_at, 3),
        "peak_memory_bytes": peak_memory_bytes,
    }
