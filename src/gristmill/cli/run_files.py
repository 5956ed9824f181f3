"""`RunFiles`: what a run has written about itself, on a disk or on a store. Reads only."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from gristmill.errors import ConfigError
from gristmill.runs.sinks import Holder, holder_of
from gristmill.runs.store_lease import last_holder
from gristmill.storage.file_system import is_url
from gristmill.storage.remote_file_system import RemoteFileSystem

ON_A_DISK_S = 15.0  # after which no news is bad news: a live run writes every second
ON_A_STORE_S = 45.0  # there every five
LEFT_BY_A_RUN = ("status.json", "report.json", "ledger.jsonl")  # one of these says that a directory is a run's
DEPTH = 4  # a workflow has a directory for each of its pipelines


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
        """Return what a file says, or None if it is not there."""
        if self._store is not None:
            return self._store.read(f"{self.place}/{name}")
        file = Path(self.place) / name
        return file.read_bytes() if file.is_file() else None

    def holder(self) -> tuple[Holder, bool] | None:
        """Return the process that runs here or ran here last, and whether it still holds the run; None if unknown."""
        if self._store is None:
            return holder_of(Path(self.place) / "lock")
        found = last_holder(self._store, self.place)
        if found is None:
            return None
        claim, holds = found
        return Holder(str(claim.pid), claim.host, claim.start, claim.is_gone() is False), holds

    def quarantine_files(self) -> list[str]:
        """Files of documents that could not be processed, of all segments."""
        if self._store is not None:
            found = sorted(status.path for status in self._store.walk(f"{self.place}/quarantine"))
            return [path for path in found if path.rpartition("/")[0].endswith("/quarantine")]  # without payloads
        home = Path(self.place)
        return [
            str(path) for pattern in ("", "segment-*/") for path in sorted(home.glob(f"{pattern}quarantine/*.jsonl"))
        ]

    def silence_s(self) -> float:
        """How long ago there was news."""
        if self._store is None:
            return time.time() - (Path(self.place) / "status.json").stat().st_mtime
        written = self._store.modified(f"{self.place}/status.json")
        return 0.0 if written is None else time.time() - written


def find_runs(path: str, *, who: str) -> list[RunFiles]:
    """Return the run directories at or below a path, in the order they were started.

    The path is a run directory, the output around it, or what a workflow of several pipelines has written.
    """
    for candidate in (RunFiles(path), RunFiles(f"{path.rstrip('/')}/.gristmill")):
        if any(candidate.read(name) is not None for name in ("status.json", "report.json")):
            return [candidate]
    found: list[Path] = []
    if not is_url(path):
        home = Path(path)
        places = (home, home / ".gristmill", home.resolve().parent / ".gristmill")
        found = next((runs for place in places if (runs := list(_runs_below(place, DEPTH)))), [])
    if not found:
        raise ConfigError(f"{who}: expected the directory of a run (with status.json in it); got {path!r}")
    return [RunFiles(str(place)) for place in sorted(found, key=_began)]


def _runs_below(place: Path, depth: int) -> Iterator[Path]:
    if any((place / name).is_file() for name in LEFT_BY_A_RUN):
        yield place
    elif depth and place.is_dir():
        for entry in os.scandir(place):
            if entry.is_dir(follow_symlinks=False):
                yield from _runs_below(Path(entry.path), depth - 1)


def _began(run: Path) -> float:
    times = [
        (run / name).stat().st_mtime for name in ("header.json", "segment-1/header.json") if (run / name).is_file()
    ]
    return min(times, default=run.stat().st_mtime)
