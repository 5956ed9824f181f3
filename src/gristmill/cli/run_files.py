"""`RunFiles`: what a run has written about itself, on a disk or on a store. Reads only."""

import time
from pathlib import Path

from gristmill.errors import ConfigError
from gristmill.storage.file_system import is_url
from gristmill.storage.remote_file_system import RemoteFileSystem

ON_A_DISK_S = 15.0  # after which no news are bad news: a live run writes every second
ON_A_STORE_S = 45.0  # there every five


class RunFiles:
    """The run directory at a path or URL."""

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/") or "/"
        self._store = RemoteFileSystem(self.place, {}) if is_url(place) else None

    def __str__(self) -> str:
        return self.place

    @property
    def silent_after_s(self) -> float:
        """How long a live run may be without news."""
        return ON_A_DISK_S if self._store is None else ON_A_STORE_S

    def read(self, name: str) -> bytes | None:
        """What a file says, or None if it is not there."""
        if self._store is not None:
            return self._store.read(f"{self.place}/{name}")
        file = Path(self.place) / name
        return file.read_bytes() if file.is_file() else None

    def silence_s(self) -> float:
        """How long ago there were news."""
        if self._store is None:
            return time.time() - (Path(self.place) / "status.json").stat().st_mtime
        written = self._store.modified(f"{self.place}/status.json")
        return 0.0 if written is None else time.time() - written


def find_run(path: str, *, who: str) -> RunFiles:
    """Return the run directory itself, also when the output directory around it was named."""
    for candidate in (RunFiles(path), RunFiles(f"{path.rstrip('/')}/.gristmill")):
        if any(candidate.read(f"{name}.json") is not None for name in ("status", "report")):
            return candidate
    raise ConfigError(f"{who}: expected the directory of a run (with status.json in it); got {path!r}")
