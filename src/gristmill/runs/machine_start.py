"""Which start of which machine this is: what was written before the last one may not have reached the disk."""

import contextlib
import socket
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine_start() -> str:
    """Return a name that is another after every restart, and on every machine."""
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text().strip()
    import psutil

    # To the second, and moved when the clock is set: then files are looked at once more than they need be.
    return f"{socket.gethostname()} {psutil.boot_time():.0f}"
