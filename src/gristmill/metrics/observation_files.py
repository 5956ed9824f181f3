"""`load_observations`: what a run has recorded about its documents, from the files in its directory.

    seen = load_observations("out/.gristmill")  # on disk
    seen = load_observations("s3://bucket/out/.gristmill", file_system("s3://bucket"))  # on a store

For a run that goes on there is `ObservationReader`, which reads what is new each time it is asked. A file that is
damaged, or of a later version, is left out and named in `damaged`; the numbers of its documents are missing then.

A file holds what one task of a source partition has given: eight bytes that name the format, eight of a checksum, eight
that say how long the rest is without compression, and the rest, msgpack in zstd. The reader may be given any source of
files with `list_names` and `open_read`: every file system of `gristmill.storage` has both.
"""

import struct
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import xxhash

from gristmill.metrics.observations import MeasureTally, Observations, Sample, Side, Slices

MEASURES_DIR = "measures"  # below a run directory, or that of a segment
SUFFIX = ".tally"
SEGMENT = "segment-"  # begins the names of directories of segments, in a run with exchanges
_MAGIC = b"grist-t1"
_HEADER = struct.Struct("<8s8sQ")
_MOST_BYTES = 1 << 30  # of one file: what claims to be longer is damaged
_CODEC = "zstd"


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


class _Side(msgspec.Struct, array_like=True):
    """A side as a file has it: slots as differences, and a sum that may be longer than msgpack has room for."""

    slots: list[int]  # in order, each the difference to the one before
    counts: list[int]
    fixed_sum: int | str
    least: float | None
    greatest: float | None


class _File(msgspec.Struct, array_like=True):
    tallies: list[tuple[MeasureTally, _Side, _Side]]  # the tally without its sides, which follow
    samples: list[Sample]
    slices: dict[str, Slices]


_decoder = msgspec.msgpack.Decoder(_File)


def encode_observations(observed: Observations) -> bytes:
    """Return the bytes of a file. What is equal has the same bytes."""
    found = observed.in_order()
    tallies = [
        (msgspec.structs.replace(t, kept=Side(), refused=Side()), _packed(t.kept), _packed(t.refused))
        for t in found.tallies
    ]
    plain = msgspec.msgpack.encode(_File(tallies, found.samples, found.slices))
    import pyarrow as pa  # whoever has measured something has it

    packed: bytes = pa.compress(plain, codec=_CODEC, asbytes=True)
    return _HEADER.pack(_MAGIC, xxhash.xxh3_64_digest(packed), len(plain)) + packed


def decode_observations(content: bytes) -> Observations:
    """The inverse of `encode_observations`; `Damaged` if it is not what that returned."""
    if len(content) < _HEADER.size:
        raise Damaged(f"expected at least {_HEADER.size} bytes; got {len(content)}")
    magic, checksum, size = _HEADER.unpack_from(content)
    packed = content[_HEADER.size :]
    if magic != _MAGIC:
        raise Damaged(f"expected a file that begins with {_MAGIC!r}; got {magic!r}")
    if checksum != xxhash.xxh3_64_digest(packed) or size > _MOST_BYTES:
        raise Damaged("the checksum differs")
    import pyarrow as pa

    try:
        found = _decoder.decode(pa.decompress(packed, size, codec=_CODEC, asbytes=True))
    except (msgspec.MsgspecError, OSError, ValueError) as error:  # of a later version that forgot to say so
        raise Damaged(str(error)) from error
    for tally, kept, refused in found.tallies:
        tally.kept, tally.refused = _unpacked(kept), _unpacked(refused)
    return Observations([tally for tally, _, _ in found.tallies], found.samples, found.slices)


def _packed(side: Side) -> _Side:
    slots = list(side.slots)
    differences = [after - before for before, after in pairwise(chain([0], slots))]
    fixed = side.fixed_sum if abs(side.fixed_sum) < 1 << 63 else str(side.fixed_sum)
    return _Side(differences, list(side.slots.values()), fixed, side.least, side.greatest)


def _unpacked(side: _Side) -> Side:
    if len(side.slots) != len(side.counts):
        raise Damaged(f"expected as many slots as counts; got {len(side.slots)} and {len(side.counts)}")
    slots = dict(zip(accumulate(side.slots), side.counts, strict=True))
    return Side(slots, int(side.fixed_sum), side.least, side.greatest)


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
