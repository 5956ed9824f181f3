"""`Note`: what is known of a file that is being fetched, or was, in a small file beside it.

    warc-00410.warc.gz           the file, once all of it is there
    .warc-00410.warc.gz.part     what has come so far
    .warc-00410.warc.gz.json     whose it is, how large, and whether it is whole
    .warc-00410.warc.gz.lock     held by the process that fetches it; gone when none does

The note says "whole" just before the file gets its name, so a file under its name without such a note is not ours, or
is an earlier one. Nothing here knows how bytes are fetched.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from gristmill.errors import ConfigError, DownloadFailed
from gristmill.secrets import without_url_secrets
from gristmill.storage.atomic_write import force_file, write_file


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a note. `etag` is the server's name for this content, `version` what a list said about it."""

    url: str
    size: int | None = None
    etag: str = ""
    version: str = ""
    is_whole: bool = False


_decoder = msgspec.json.Decoder(Told)


class Note:
    """The note of one file. Change anything only while it is `held`."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = str(path)
        self.part_path = self.part_of(self.path)
        self._note_path = self.note_of(self.path)
        self._lock_path = self.lock_of(self.path)
        self.url = without_url_secrets(url)

    @staticmethod
    def part_of(path: str) -> str:
        """Where the part of a file is that has come so far."""
        return _beside(path, "part")

    @staticmethod
    def note_of(path: str) -> str:
        """Where the note of a file is."""
        return _beside(path, "json")

    @staticmethod
    def lock_of(path: str) -> str:
        """Where the lock of a file is, while a process holds it."""
        return _beside(path, "lock")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from fetching the same file; wait first if another is doing so."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = self._locked()
        try:
            yield
        finally:
            # Before the lock is released: a process that waits for this very lock finds it gone, and makes a new one.
            Path(self._lock_path).unlink(missing_ok=True)
            os.close(descriptor)

    def _locked(self) -> int:
        while True:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_lock(descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _is_lock(self, descriptor: int) -> bool:
        """Whether this is still the lock of the file: its previous holder may have removed it at any moment."""
        try:
            return os.path.samestat(os.fstat(descriptor), Path(self._lock_path).stat())
        except FileNotFoundError:
            return False

    def told(self) -> Told | None:
        """What the note says; None if there is none, or none that can be read."""
        try:
            return _decoder.decode(Path(self._note_path).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def tell(self, told: Told) -> None:
        """Write the note."""
        write_file(self._note_path, [msgspec.json.encode(told)])

    def size(self) -> int | None:
        """How large the file under its name is; None if there is none."""
        try:
            return Path(self.path).stat().st_size
        except FileNotFoundError:
            return None

    def has_content(self) -> bool:
        """Whether there is a file that is not empty, wherever it came from."""
        return bool(self.size())

    def is_complete(self) -> bool:
        """Whether the file is here, whole, from this URL. One from another URL is an error: it must not be replaced."""
        told, size = self.told(), self.size()
        if told is None or size is None or not told.is_whole or told.size != size:
            return False
        if told.url != self.url:
            taken = DownloadFailed(
                f"{self.url}: expected a file name that no other URL has; {self.path} is what {told.url} gave. "
                "Give them different names, or remove the file"
            )
            taken.is_final = True  # trying again gives the same result
            raise taken
        return True

    def part_size(self) -> int:
        """How much has come so far."""
        try:
            return Path(self.part_path).stat().st_size
        except FileNotFoundError:
            return 0

    def finish(self, etag: str = "", version: str = "") -> None:
        """Give the file its name: all of it has come and has been checked."""
        try:
            size = Path(self.part_path).stat().st_size
        except FileNotFoundError:
            raise DownloadFailed(f"{self.url}: expected a file at {self.part_path}; got none") from None
        force_file(self.part_path)
        Path(self.path).unlink(missing_ok=True)
        self.tell(Told(self.url, size, etag, version, is_whole=True))
        Path(self.part_path).replace(self.path)

    def forget(self) -> None:
        """Remove the file, the note and what has come so far."""
        for path in (self.path, self.part_path, self._note_path):
            Path(path).unlink(missing_ok=True)


def _beside(path: str, ending: str) -> str:
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}.{ending}"


def claimed_name(directory: Path, name: str, *, who: str) -> Path:
    """Return the path of a file below a directory, and nowhere else."""
    given: object = name  # by a user's method
    parts = PurePosixPath(name).parts if isinstance(given, str) else ()
    if not parts or "\0" in name or name.startswith("/") or ".." in parts or name.endswith("/"):
        raise ConfigError(f"{who}: expected the name of a file below {str(directory)!r}; got {given!r}")
    return directory / name
