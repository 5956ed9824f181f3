"""`load_observations`: what a run has recorded about its documents, from the files in its directory.

    seen = load_observations("out/.gristmill")  # on disk
    seen = load_observations("s3://bucket/out/.gristmill", file_system("s3://bucket"))  # on a store

For a run that goes on there is `ObservationReader`, which reads what is new each time it is asked. A file that is
damaged, or of a later version, is left out and named in `damaged`; the numbers of its documents are missing then.

A file holds what one task of a source partition has given: eight bytes that name the format, eight of a checksum, and
msgpack: a `Part` for every call. It is not compressed: it is small, and for a small file that takes longer than writing
it. The reader may be given any source of files with `list_names` and `open_read`: every file system of
`gristmill.storage` has both.
"""

from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import xxhash

from gristmill.metrics.observation_parts import Part, packed
from gristmill.metrics.observations import Observations

__all__ = ["ObservationReader", "load_observations"]  # what is promised; writing is the workers' business

MEASURES_DIR = "measures"  # below a run directory, or that of a segment
SUFFIX = ".tally"
SEGMENT = "segment-"  # begins the names of directories of segments, in a run with exchanges
_MAGIC = b"grist-t2"


class Damaged(ValueError):
    """A file does not hold what was written to it."""


class Files(Protocol):
    """Where files are; every file system of `gristmill.storage` is one."""

    def list_names(self, directory: str) -> list[str]:
        """Return the names in a directory."""
        ...

    def open_read(self, path: str) -> BinaryIO:
        """Open a file."""
        ...


class _Disk:
    def list_names(self, directory: str) -> list[str]:
        return [path.name for path in Path(directory).iterdir()]

    def open_read(self, path: str) -> BinaryIO:
        return Path(path).open("rb")


def encode_observations(observed: Observations) -> bytes:
    """Return the bytes of a file. What is equal has the same bytes."""
    return encode_parts([packed(observed)])


def encode_parts(parts: list[Part]) -> bytes:
    """Return the bytes of a file; readers add up what its parts say."""
    content = msgspec.msgpack.encode(parts)
    return b"".join((_MAGIC, xxhash.xxh3_64_digest(content), content))


def decode_observations(content: bytes) -> Observations:
    """The inverse of `encode_observations`; `Damaged` if it is not what that returned."""
    magic, checksum, plain = content[:8], content[8:16], content[16:]
    if magic != _MAGIC:
        raise Damaged(f"expected a file that begins with {_MAGIC!r}; got {magic!r}")
    if checksum != xxhash.xxh3_64_digest(plain):
        raise Damaged("the checksum differs")
    total = Observations()
    try:
        for part in _parts.decode(plain):
            total.add(part.unpacked())
    except (msgspec.MsgspecError, TypeError, ValueError, LookupError) as error:  # a later version that forgot to say so
        raise Damaged(str(error)) from error
    return total


_parts = msgspec.msgpack.Decoder(list[Part])


class ObservationReader:
    """Reads what a run records, again and again while it goes on; `files` is where the directory is, if not on disk."""

    def __init__(self, run_dir: str | Path, files: Files | None = None) -> None:
        self._run_dir = str(run_dir).rstrip("/")
        self._files = _Disk() if files is None else files
        self.observations = Observations()
        self.damaged: list[str] = []  # files that could not be used
        self._read: set[str] = set()

    def refresh(self) -> Observations:
        """Add what is there now and was not before; return everything."""
        found = sorted(self._found())
        if not self._read.issubset(found):  # of a run that was started over, or does some partitions again
            self.observations, self.damaged, self._read = Observations(), [], set()
        new = [path for path in found if path not in self._read]
        self._read.update(new)
        for path in new:
            try:
                with self._files.open_read(path) as file:
                    self.observations.add(decode_observations(file.read()))
            except FileNotFoundError:
                self._read.discard(path)  # removed meanwhile
            except Damaged:
                self.damaged.append(path)
        return self.observations

    def _found(self) -> list[str]:
        segments = [name for name in self._names(self._run_dir) if name.startswith(SEGMENT)]
        places = [self._run_dir, *(f"{self._run_dir}/{name}" for name in segments)]
        directories = [f"{place}/{MEASURES_DIR}" for place in places]
        return [f"{place}/{name}" for place in directories for name in self._names(place) if name.endswith(SUFFIX)]

    def _names(self, directory: str) -> list[str]:
        try:
            return self._files.list_names(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []


def load_observations(run_dir: str | Path, files: Files | None = None) -> Observations:
    """Return what a run has recorded about the documents it has committed so far; nothing if it records nothing."""
    return ObservationReader(run_dir, files).refresh()
