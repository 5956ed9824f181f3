"""`DiskBudget`: how much a directory of downloads may hold, whoever downloads into it.

Before a file is fetched, its size is claimed in a file in the directory, under a lock. What is on the disk counts, and
so does what has not arrived yet of each claim. A claim ends with the lock of its file (`download_notes.py`), even if
the process that held it is killed. Nothing here knows whether a file may be removed.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from gristmill.errors import MachineError
from gristmill.storage.download_notes import Note

CLAIMS = ".claims"
LOOK_S = 0.25  # while waiting for room
_ROUND_BYTES = 4096  # for the notes beside a file


class DiskBudget:
    """A bound on the bytes in a directory. `frees`: whether files leave it by themselves; if not, waiting is no use."""

    def __init__(self, directory: Path, most: int, *, frees: bool) -> None:
        self._directory = directory
        self._most = most
        self._frees = frees

    def claim(self, note: Note, size: int, waiting: Callable[[str], object] = lambda _: None) -> None:
        """Claim room for a file whose lock is held; wait for it if others have to leave first.

        `waiting` is called once, with what is being waited for.
        """
        told = False
        while (lacking := self._claimed(note, size)) > 0:
            self._refuse_hopeless(note, size)
            if not told:
                waiting(f"waiting for {lacking:,} bytes of room in {self._directory} (max_disk is {self._most:,})")
                told = True
            time.sleep(LOOK_S)

    def used(self) -> int:
        """Bytes of all files in the directory."""
        return sum(size for _, size in _files(self._directory))

    def _claimed(self, note: Note, size: int) -> int:
        """Claim, and return 0; or return how many bytes are lacking."""
        with self._claims() as claims:
            for name in [name for name in claims if name == note.path or not _is_held(name)]:
                del claims[name]
            promised = sum(max(0, claimed - _size(Note.part_of(name))) for name, claimed in claims.items())
            wanted = max(0, size - note.part_size()) + _ROUND_BYTES
            lacking = self.used() + promised + wanted - self._most
            if lacking <= 0:
                claims[note.path] = size
            return max(0, lacking)

    def _refuse_hopeless(self, note: Note, size: int) -> None:
        """Raise MachineError where waiting will not help: no process is at work that could make room."""
        if size + _ROUND_BYTES > self._most:
            raise self._too_little(f"{note.path} alone has {size:,}")
        with self._claims() as claims:
            others = any(_is_held(name) for name in claims)
        strange = sum(size for path, size in _files(self._directory) if not _is_of_a_download(path))
        if strange + size + _ROUND_BYTES > self._most:
            raise self._too_little(f"files that were not downloaded here have {strange:,}")
        if not self._frees and not others:
            raise self._too_little(f"{self.used():,} are there, and files are kept (keep_files=True)")

    def _too_little(self, why: str) -> MachineError:
        return MachineError(
            f"{self._directory}: expected room for the next download in {self._most:,} bytes (max_disk); {why}. "
            "Allow more, or remove files that are done with"
        )

    @contextlib.contextmanager
    def _claims(self) -> Iterator[dict[str, int]]:
        self._directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._directory / CLAIMS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            content = os.pread(descriptor, 1 << 24, 0)
            claims: dict[str, int] = {}
            # Nothing is lost if it is damaged: the files themselves say how large they are.
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                claims = msgspec.json.decode(content, type=dict[str, int])
            yield claims
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(claims), 0)
        finally:
            os.close(descriptor)


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    pending = [str(directory)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another process was done with it
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry.path, entry.stat(follow_symlinks=False).st_size


def _is_of_a_download(path: str) -> bool:
    name = Path(path).name
    return name.startswith(".") or Path(Note.note_of(path)).exists()


def _is_held(path: str) -> bool:
    """Whether a process is fetching this file."""
    try:
        descriptor = os.open(Note.lock_of(path), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0
