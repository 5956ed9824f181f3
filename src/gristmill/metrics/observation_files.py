"""`load_observations`: what a run has recorded about its documents, from the files in its directory.

    seen = load_observations("out/.gristmill")  # on disk
    seen = load_observations("s3://bucket/out/.gristmill", file_system("s3://bucket"))  # on a store

For a run that goes on there is `ObservationReader`, which reads what is new each time it is asked. A file that is
damaged, or of a later version, is left out and named in `damaged`; the numbers of its documents are missing then.

A file holds what one task of a source partition has given: eight bytes that name the format, eight of a checksum, eight
that say how long the rest is without compression, and the rest, msgpack in zstd: a `Part` for every call. The reader
may be given any source of files with `list_names` and `open_read`: every file system of `gristmill.storage` has both.
"""

import struct
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import xxhash

from gristmill.metrics.observations import Example, MeasureTally, Nearest, Observations, Sample, Side, Slices

__all__ = ["ObservationReader", "load_observations"]  # what is promised; writing is the workers' business

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


class PartSide(msgspec.Struct, array_like=True):
    """A side as a file has it: slots as differences, and a sum that may be longer than msgpack has room for."""

    slots: list[int]  # in order, each the difference to the one before
    counts: list[int]
    fixed_sum: int | str
    least: float | None
    greatest: float | None


class PartExamples(msgspec.Struct, array_like=True):
    """Examples: their values, and which of the part's documents they are."""

    values: list[float | None] = msgspec.field(default_factory=list)
    documents: list[int] = msgspec.field(default_factory=list)


class PartTally(msgspec.Struct, array_like=True):
    """A tally, whose examples are told by number; the fields in front are those of `MeasureTally`."""

    stage: str
    stage_number: int
    position: int
    name: str
    measure: str
    low: float | None
    high: float | None
    condition: str | None
    decides: bool
    amount: str | None
    refused: PartSide
    kept: PartSide
    nearest: list[PartExamples]  # low refused, low kept, high refused, high kept


PartDocument = tuple[int, str, str, str, str]  # the fields of `Example` behind its value


class Part(msgspec.Struct, array_like=True):
    """What was recorded in one call. A document that is an example several times is there once."""

    tallies: list[PartTally] = msgspec.field(default_factory=list)
    samples: list[tuple[str, int, str, PartExamples]] = msgspec.field(default_factory=list)  # stage, number, reason
    documents: list[PartDocument] = msgspec.field(default_factory=list)
    slices: dict[str, Slices] = msgspec.field(default_factory=dict)

    def unpacked(self) -> Observations:
        """The same as others see it."""
        tallies = [self._tally(found) for found in self.tallies]
        samples = [Sample(stage, number, why, self._examples(found)) for stage, number, why, found in self.samples]
        fresh = Observations()
        fresh.add(Observations(tallies, samples, self.slices))
        return fresh

    def _examples(self, found: PartExamples) -> list[Example]:
        pairs = zip(found.values, found.documents, strict=True)
        return [Example(value, *self.documents[number]) for value, number in pairs]

    def _tally(self, found: PartTally) -> MeasureTally:
        examples = [self._examples(some) for some in found.nearest]
        near = [("low", found.low, *examples[:2]), ("high", found.high, *examples[2:])] if examples else []
        return MeasureTally(
            *(found.stage, found.stage_number, found.position, found.name, found.measure, found.low, found.high),
            *(found.condition, found.decides, found.amount, _side(found.kept), _side(found.refused)),
            [Nearest(bound, at, kept, refused) for bound, at, refused, kept in near if at is not None],  # type: ignore[arg-type]
        )


_decoder = msgspec.msgpack.Decoder(list[Part])


def packed(observed: Observations) -> Part:
    """Return observations as a file has them. What is equal has the same bytes."""
    found = observed.in_order()
    documents: dict[PartDocument, int] = {}

    def examples(given: list[Example]) -> PartExamples:
        shown = [(e.key, e.id, e.source, e.place, e.text) for e in given]
        return PartExamples([e.value for e in given], [documents.setdefault(one, len(documents)) for one in shown])

    def nearest(tally: MeasureTally) -> list[PartExamples]:
        windows = {window.bound: window for window in tally.nearest}
        nothing = Nearest("low", 0.0)
        both = [windows.get(bound, nothing) for bound in ("low", "high")] if windows else []
        return [examples(side) for window in both for side in (window.refused, window.kept)]

    tallies = [
        PartTally(
            *(t.stage, t.stage_number, t.position, t.name, t.measure, t.low, t.high, t.condition, t.decides, t.amount),
            *(_part_side(t.refused), _part_side(t.kept), nearest(t)),
        )
        for t in found.tallies
    ]
    samples = [(s.stage, s.stage_number, s.reason, examples(s.examples)) for s in found.samples]
    return Part(tallies, samples, list(documents), found.slices)


def encode_observations(observed: Observations) -> bytes:
    """Return the bytes of a file. What is equal has the same bytes."""
    return encode_parts([packed(observed)])


def encode_parts(parts: list[Part]) -> bytes:
    """Return the bytes of a file; what its parts say is added up by whoever reads it."""
    plain = msgspec.msgpack.encode(parts)
    import pyarrow as pa  # whoever has measured something has it

    compressed: bytes = pa.compress(plain, codec=_CODEC, asbytes=True)
    return _HEADER.pack(_MAGIC, xxhash.xxh3_64_digest(compressed), len(plain)) + compressed


def decode_observations(content: bytes) -> Observations:
    """The inverse of `encode_observations`; `Damaged` if it is not what that returned."""
    if len(content) < _HEADER.size:
        raise Damaged(f"expected at least {_HEADER.size} bytes; got {len(content)}")
    magic, checksum, size = _HEADER.unpack_from(content)
    compressed = content[_HEADER.size :]
    if magic != _MAGIC:
        raise Damaged(f"expected a file that begins with {_MAGIC!r}; got {magic!r}")
    if checksum != xxhash.xxh3_64_digest(compressed) or size > _MOST_BYTES:
        raise Damaged("the checksum differs")
    import pyarrow as pa

    total = Observations()
    try:
        for part in _decoder.decode(pa.decompress(compressed, size, codec=_CODEC, asbytes=True)):
            total.add(part.unpacked())
    except (msgspec.MsgspecError, OSError, ValueError, LookupError) as error:  # a later version that forgot to say so
        raise Damaged(str(error)) from error
    return total


def _part_side(side: Side) -> PartSide:
    slots = list(side.slots)
    differences = [after - before for before, after in pairwise(chain([0], slots))]
    fixed = side.fixed_sum if abs(side.fixed_sum) < 1 << 63 else str(side.fixed_sum)
    return PartSide(differences, list(side.slots.values()), fixed, side.least, side.greatest)


def _side(side: PartSide) -> Side:
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
