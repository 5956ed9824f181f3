"""`StoreDirectory`: a run directory on an object store. Whatever decides is there; the rest is a local scratch copy.

    header.json, start, report.json, measured.json, status.json   as in a directory on a disk
    ledger/00000001.jsonl   lines of the ledger, one object for each time some are committed
    lease/                  who writes here (store_lease.py)
    quarantine/             documents that could not be processed, written by the workers
    metrics.jsonl, events.log, tasks.jsonl   written when the driver ends

A store has no append and no lock, but it can create an object only if none of that name exists. So the ledger is a row
of objects, each created under the next number. A driver that is refused has lost: another has taken over, and what this
one wanted to commit is not committed. A driver that starts creates one without lines first. From then on it has read
everything there is, and an older driver that still lives cannot add to it.

All rules of resuming (which header fits, which lines hold, which files are done again) are those of a directory on a
disk, because they are applied to the scratch copy.
"""

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gristmill.errors import MachineError
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs.directory import LEFT_BY_A_RUN, RunDirectory
from gristmill.runs.ledger import CommitRecord, encode
from gristmill.runs.publication import OptionsOf, patiently
from gristmill.runs.sinks import Held, LockFile
from gristmill.runs.store_lease import lost
from gristmill.storage.remote_file_system import RemoteFileSystem

LEDGER = "ledger"
PULLED = ("header.json", "start", "report.json")
PUSHED_AT_END = ("metrics.jsonl", "events.log", "tasks.jsonl")
STATUS_S = 5.0  # a request each time, which costs money
ENDED = ("finished", "stopped", "failed")
READERS = 16
SCRATCH = "gristmill-store-"
SCRATCH_TRIES = 10


class StoreDirectory(RunDirectory):
    """One run directory on a store, held by one driver."""

    commit_s = 1.0  # each writes an object, and a resumed run reads them all

    def __init__(self, url: str, *, session: str, options_of: OptionsOf, durable: bool = False) -> None:
        scratch, self._scratch_lock = _scratch_directory()
        super().__init__(scratch, session=session, durable=durable, options_of=options_of, shown=url.rstrip("/"))
        self._url = url.rstrip("/")
        self._store = RemoteFileSystem(self._url, options_of(self._url))
        self._next = 1  # number of the ledger's next object
        self._last_status = 0.0

    # Opening

    def acquire(self) -> None:
        """Take the lease, or say who has it, and read what is there."""
        self.sinks.hold(self._url)
        self._pull()
        while not self._add_to_ledger(""):
            self._pull()  # a driver that is about to lose has added something meanwhile

    def _pull(self) -> None:
        """Make the scratch copy say what the store says."""
        for name in PULLED:
            content = patiently(lambda name=name: self._store.read(f"{self._url}/{name}"))  # type: ignore[misc]
            if content is None:
                (self.path / name).unlink(missing_ok=True)
            else:
                (self.path / name).write_bytes(content)
        numbers = self._numbers()
        self._next = numbers[-1] + 1 if numbers else 1
        with (self.path / "ledger.jsonl").open("wb") as file:
            file.writelines(ledger_lines(self._store, self._url, numbers))

    def _numbers(self) -> list[int]:
        return ledger_numbers(self._store, self._url)

    def _ledger_name(self, number: int) -> str:
        return _ledger_name(self._url, number)

    def _add_to_ledger(self, lines: str, *, fresh: bool = False) -> bool:
        """Create the ledger's next object; False if another driver has. The session tells whose content it is."""
        opening = json.dumps({"session": self.session, "number": self._next, "fresh": fresh})
        content = f"{opening}\n{lines}".encode()
        created = patiently(lambda: self._store.create(self._ledger_name(self._next), content))
        self._next += created
        return created

    def clear(self) -> list[str]:
        """Forget an earlier run. Its lines stay on the store until a new first object says that they do not count."""
        removed = super().clear()
        before = [self._ledger_name(number) for number in self._numbers()]
        self._must_hold(self._add_to_ledger("", fresh=True))
        gone = [f"{self._url}/{name}" for name in LEFT_BY_A_RUN if name != "ledger.jsonl"]
        own = [path for place in (self.quarantine_path, self.measures_path) for path in self._store.walk_all(place)]
        there = set(self._store.walk_all(self._url))
        gone = [path for path in gone if self._store.full(path) in there]
        patiently(lambda: self._store.remove_all([*before, *gone, *own]))
        return removed

    # Files

    def append(self, records: Sequence[CommitRecord]) -> None:
        """Put ledger lines on the store, all at once, or find that another driver has taken over."""
        if not self._has_begun:
            self._wait_for_beginning()
        self.sinks.check()
        self._must_hold(self._add_to_ledger("".join(encode(record) for record in records)))
        super().append(records)

    def _must_hold(self, created: bool) -> None:  # noqa: FBT001  # the answer of the call it wraps
        if not created:
            raise lost(self.shown, "another run")

    def write_status(self, snapshot: RunSnapshot) -> None:
        """Write the status here, and to the store now and then: a busy store has better things to do."""
        now = time.monotonic()
        if snapshot.state not in ENDED and now - self._last_status < STATUS_S:
            return
        self._last_status = now
        with contextlib.suppress(MachineError):
            super().write_status(snapshot)

    def remove_report(self) -> None:
        super().remove_report()
        patiently(lambda: self._store.remove(f"{self._url}/report.json"))

    def _write(self, name: str, texts: Iterable[str], *, forced: bool = False) -> None:
        text = "".join(texts)

        def write() -> None:
            self._store.write(f"{self._url}/{name}", text.encode())

        if name == "status.json":  # the next one is as good
            write()
        else:
            patiently(write)
        super()._write(name, [text], forced=False)

    def close(self) -> None:
        """Put the histories on the store, let the directory go and remove the scratch copy."""
        try:
            for name in PUSHED_AT_END:
                with contextlib.suppress(MachineError, FileNotFoundError):
                    self._store.write(f"{self._url}/{name}", (self.path / name).read_bytes())
        finally:
            super().close()
            shutil.rmtree(self.path, ignore_errors=True)
            self._scratch_lock.release()


def _scratch_directory() -> tuple[Path, LockFile]:
    """Make a directory for the copy. Those of drivers that were killed are removed: nothing holds their locks."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with contextlib.suppress(Held, OSError):
            lock = LockFile(left / "lock")
            shutil.rmtree(left, ignore_errors=True)
            lock.release()
    for _ in range(SCRATCH_TRIES - 1):
        with contextlib.suppress(Held, FileNotFoundError):  # another run mistook it for an abandoned one
            return _locked(Path(tempfile.mkdtemp(prefix=SCRATCH)))
    return _locked(Path(tempfile.mkdtemp(prefix=SCRATCH)))


def _locked(made: Path) -> tuple[Path, LockFile]:
    return made, LockFile(made / "lock")


def ledger_numbers(store: RemoteFileSystem, url: str) -> list[int]:
    """Return the numbers of the objects a ledger consists of."""
    names = patiently(lambda: store.list_names(f"{url}/{LEDGER}"))
    return sorted(int(name.partition(".")[0]) for name in names if name.partition(".")[0].isdecimal())


def ledger_lines(store: RemoteFileSystem, url: str, numbers: Sequence[int]) -> list[bytes]:
    """Return the lines of these objects, from the last one that starts the run over."""
    with ThreadPoolExecutor(READERS) as threads:
        objects = list(threads.map(lambda number: _read_lines(store, _ledger_name(url, number)), numbers))
    fresh = [place for place, (is_fresh, _) in enumerate(objects) if is_fresh]
    return [lines for _, lines in objects[fresh[-1] if fresh else 0 :]]


def _ledger_name(url: str, number: int) -> str:
    return f"{url}/{LEDGER}/{number:08d}.jsonl"


def _read_lines(store: RemoteFileSystem, name: str) -> tuple[bool, bytes]:
    """Whether the run starts over with this object, and its lines of the ledger."""
    content = patiently(lambda: store.read(name))
    if content is None:
        raise MachineError(f"{name}: it was there a moment ago and is gone; is another run here?")
    opening, _, lines = content.partition(b"\n")
    with contextlib.suppress(ValueError):
        found = json.loads(opening)
        return isinstance(found, dict) and found.get("fresh") is True, lines
    return False, lines
