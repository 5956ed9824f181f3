"""`RunFiles`: what a run has written about itself, on a disk or on a store. Reads only."""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.errors import ConfigError
from gristmill.runs.sinks import Holder, holder_of
from gristmill.runs.store_lease import last_holder
from gristmill.storage.file_system import is_url
from gristmill.storage.remote_file_system import RemoteFileSystem

if TYPE_CHECKING:
    from gristmill.dashboard.document_ids import DocumentKind
    from gristmill.dashboard.run_data import Life, Segment
    from gristmill.metrics.snapshot import ErrorCount, StageCounts

ON_A_DISK_S = 15.0  # after which no news is bad news: a live run writes every second
ON_A_STORE_S = 45.0  # there every five
DEPTH = 4  # a workflow has a directory for each of its pipelines


class RunFiles:
    """The run directory at a path or URL; a `RunSource` of the dashboard."""

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

    def searches(self) -> list[str]:
        """The stages that have searched for something before they began, in the order of the plan."""
        found = [path.name for path in sorted(Path(self.place).glob("search/*"))] if self._store is None else []
        stages = [
            str(name) for header in self.headers() for name, _ in cast("list[list[object]]", header.get("stages") or [])
        ]
        return sorted(found, key=lambda name: stages.index(name) if name in stages else len(stages))

    # What a report is made of

    def segments(self) -> "list[Segment]":
        """Return what is committed, added up in the order of the source partitions, by stages in that of the plan."""
        from gristmill.dashboard.run_data import Segment
        from gristmill.runs.run import joined_counts

        places = self._segment_places()
        headers = [_header(self.read(f"{place}header.json")) for place in places]
        found = [self._added_up(place, header) for place, header in zip(places, headers, strict=True)]
        joined = joined_counts([counts for counts, _, _ in found], is_whole=False)
        return [
            Segment(header, {name: joined[name] for name in counts}, partitions, damaged)
            for header, (counts, partitions, damaged) in zip(headers, found, strict=True)
        ]

    def headers(self) -> list[dict[str, object]]:
        """Return the header of each segment; an empty one if it is missing or damaged."""
        return [dict(_header(self.read(f"{place}header.json"))) for place in self._segment_places()]

    def document_files(self) -> "Iterator[tuple[DocumentKind, str]]":
        """Return the committed files that hold documents, in order: those kept, rejected, and in quarantine."""
        from gristmill.runs.ledger import read_ledger

        places = self._segment_places()
        for place, header in zip(places, self.headers(), strict=True):
            rejects = str(header.get("rejects_path") or "").rstrip("/")
            with self._ledger(place) as path:
                for record in read_ledger(path).records.values():
                    if place == places[-1]:  # files of the others are rows on their way through an exchange
                        yield from (("kept", file.final) for file in record.files)
                    for final in (file.final for file in record.side_files if not file.is_payload):
                        directory = final.rpartition("/")[0]
                        if rejects and directory == rejects:
                            yield "rejected", final
                        elif directory.endswith("/quarantine"):
                            yield "quarantined", final

    def errors(self) -> "Sequence[ErrorCount]":
        """Return what is in quarantine, by stage and kind."""
        from gristmill.runs.books import read_errors

        return read_errors(self.quarantine_files())

    def life(self) -> "Life":
        """Return who runs here."""
        from gristmill.dashboard.run_data import Life

        found = self.holder()
        return Life() if found is None else Life(str(found[0]), found[1])

    def _segment_places(self) -> list[str]:
        """Where headers and ledgers are, seen from the run directory. On a store no run has several segments."""
        home = Path(self.place)
        found = [] if self._store is not None else [path.name for path in home.glob("segment-*") if path.is_dir()]
        numbers = sorted(int(name.partition("-")[2]) for name in found if name.partition("-")[2].isdecimal())
        return [f"segment-{number}/" for number in numbers] or [""]

    def _added_up(self, place: str, header: Mapping[str, object]) -> "tuple[dict[str, StageCounts], int, int]":
        from gristmill.metrics.snapshot import StageCounts
        from gristmill.runs.ledger import read_ledger

        stages = header.get("stages")
        counts = {str(pair[0]): StageCounts() for pair in (stages if isinstance(stages, list) else [])}
        with self._ledger(place) as path:
            records, damaged = read_ledger(path)
            for record in records.values():
                for name, own in record.counts:
                    counts.setdefault(name, StageCounts()).add(own)
        return counts, len(records), damaged

    @contextlib.contextmanager
    def _ledger(self, place: str) -> Iterator[Path]:
        """The ledger as a file of this machine."""
        if self._store is None:
            yield Path(self.place) / place / "ledger.jsonl"
            return
        from gristmill.runs.store_directory import ledger_lines, ledger_numbers

        with tempfile.TemporaryDirectory(prefix="gristmill-ledger-") as scratch:
            path = Path(scratch) / "ledger.jsonl"
            with path.open("wb") as file:
                file.writelines(ledger_lines(self._store, self.place, ledger_numbers(self._store, self.place)))
            yield path

    def silence_s(self) -> float:
        """How long ago there was news."""
        if self._store is None:
            return time.time() - (Path(self.place) / "status.json").stat().st_mtime
        written = self._store.modified(f"{self.place}/status.json")
        return 0.0 if written is None else time.time() - written


def _header(content: bytes | None) -> Mapping[str, object]:
    """What a header says; nothing if it is missing or damaged. One of an older version is read as far as it goes."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(content or b"{}")
        if isinstance(found, dict):
            return found
    return {}


def find_runs(path: str, *, who: str) -> list[RunFiles]:
    """Return the run directories at or below a path, in the order they were started.

    The path is a run directory, the output around it, or what a workflow of several pipelines has written.
    """
    for candidate in (RunFiles(path), RunFiles(f"{path.rstrip('/')}/.gristmill")):
        if _is_run(candidate):
            return [candidate]
    found: list[Path] = []
    if not is_url(path):
        home = Path(path)
        places = (home, home / ".gristmill", home.resolve().parent / ".gristmill")
        found = next((runs for place in places if (runs := list(_runs_below(place, DEPTH)))), [])
    if not found:
        raise ConfigError(f"{who}: expected the directory of a run (with status.json in it); got {path!r}")
    return [RunFiles(str(place)) for place in sorted(found, key=_began)]


def _is_run(candidate: RunFiles) -> bool:
    """Deduplication leaves a report of its own beside its output, which is not a run's."""
    return candidate.read("status.json") is not None or b'"balanced"' in (candidate.read("report.json") or b"")


def _runs_below(place: Path, depth: int) -> Iterator[Path]:
    if _is_run(RunFiles(str(place))) or (place / "ledger.jsonl").is_file():
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
