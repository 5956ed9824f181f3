"""`compare_ids`: on which documents two runs decide differently, by which rule, in memory that does not grow with them.

Every document is a record of eighteen bytes: a hash of its id, what became of it, and where it is. Records are sorted
in pieces on disk and merged, both runs side by side. What differs is counted in full; ids are read again from the
files, for those that are named. Ids that occur more than once are paired as far as they go: kept with kept first.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.storage.open_read import open_stream

DocumentKind = Literal["kept", "rejected", "quarantined"]
Records = NDArray[np.void]

RECORD = np.dtype([("hash", "<u8"), ("outcome", "<u2"), ("file", "<u4"), ("row", "<u4")])
PIECE = 1 << 20  # records sorted at a time: 18 MB
BLOCK = 1 << 12  # records of each piece that are in memory while pieces are merged
KEPT, QUARANTINED, ABSENT = 0, 1, 2  # outcomes; the others are reasons
MOST_REASONS = 60_000


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """One document, and what each run did with it."""

    id: str
    a: str
    b: str


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """How many documents came out in one way in one run, and in another way in the other."""

    a: str
    b: str
    documents: int


class IdDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Where two runs differ, document by document."""

    documents_a: int
    documents_b: int
    kept_by_a_only: int
    kept_by_b_only: int
    without_id: int  # they cannot be compared
    disagreements: tuple[Disagreement, ...]
    named: tuple[Named, ...]


Files = Iterable[tuple[DocumentKind, str]]


class _Line(msgspec.Struct):
    """The fields that say why a document was rejected, or which one is in quarantine."""

    reject_id: str = ""
    reject_stage: str = ""
    reject_reason: str = ""
    document_id: str = ""


_why = msgspec.json.Decoder(_Line)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Outcomes:
    """Numbers for what became of documents, the same for both runs."""

    def __init__(self) -> None:
        self.names = ["kept", "quarantined", "not there"]
        self._numbers: dict[tuple[str, str], int] = {}

    def of(self, stage: str, reason: str) -> int:
        """The number of a reason; all reasons beyond what a record has room for share one."""
        number = self._numbers.get((stage, reason))
        if number is None:
            number = min(len(self.names), MOST_REASONS)
            if number < MOST_REASONS or len(self.names) == MOST_REASONS:
                self.names.append(f"dropped by {stage}: {reason}" if stage != reason else f"dropped by {stage}")
            self._numbers[stage, reason] = number
        return number


class _Collected:
    """The records of one run, in sorted pieces on disk."""

    def __init__(self, place: Path, outcomes: _Outcomes, id_field: str) -> None:
        self._place = place
        self._outcomes = outcomes
        self._id_field = id_field
        self.files: list[tuple[DocumentKind, str]] = []
        self._pieces: list[Path] = []
        self._waiting: list[Records] = []
        self.documents = 0
        self.without_id = 0

    def collect(self, files: Files) -> None:
        """Read the ids of all documents in the files."""
        for kind, path in files:
            number = len(self.files)
            self.files.append((kind, path))
            row = 0
            for ids, outcomes in _ids(kind, path, self._id_field, self._outcomes):
                self._add(ids, outcomes, number, row)
                row += len(ids)
        self._sort()

    def _add(self, ids: Sequence[str | None], outcomes: Sequence[int], number: int, row: int) -> None:
        known = [at for at, name in enumerate(ids) if name is not None]
        records = np.zeros(len(known), RECORD)
        records["hash"] = [xxhash.xxh3_64_intdigest((ids[at] or "").encode("utf-8", "surrogatepass")) for at in known]
        records["outcome"] = [outcomes[at] for at in known]
        records["file"] = number
        records["row"] = [row + at for at in known]
        self.documents += len(ids)
        self.without_id += len(ids) - len(known)
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= PIECE:
            self._sort()

    def _sort(self) -> None:
        if not any(map(len, self._waiting)):
            return
        piece = np.concatenate(self._waiting)
        self._waiting = []
        path = self._place / f"{len(self._pieces)}.npy"
        np.save(path, np.sort(piece, order=["hash", "outcome", "file", "row"]))
        self._pieces.append(path)

    def blocks(self) -> "_Merged":
        return _Merged([np.load(path, mmap_mode="r") for path in self._pieces])

    def id_at(self, chosen: Records) -> list[str]:
        """Read the ids of some documents again."""
        found = [""] * len(chosen)
        order = np.lexsort((chosen["row"], chosen["file"])).tolist()
        by_file: dict[int, list[int]] = {}
        for at in order:
            by_file.setdefault(int(chosen["file"][at]), []).append(at)
        for number, places in by_file.items():
            wanted = {int(chosen["row"][at]): at for at in places}
            row = 0
            for ids, _ in _ids(*self.files[number], self._id_field, self._outcomes):
                for own in [own for own in wanted if row <= own < row + len(ids)]:
                    found[wanted.pop(own)] = ids[own - row] or ""
                row += len(ids)
                if not wanted:
                    break
        return found


class _Merged:
    """Sorted pieces as one sorted run, read a block at a time."""

    def __init__(self, pieces: Sequence[Records]) -> None:
        self._pieces = pieces
        self._places = [0] * len(pieces)

    def next_end(self) -> int | None:
        """The hash up to which one more block of every piece reaches; None if nothing is left."""
        ends = [
            int(piece["hash"][min(place + BLOCK, len(piece)) - 1])
            for piece, place in zip(self._pieces, self._places, strict=True)
            if place < len(piece)
        ]
        return min(ends, default=None)

    def up_to(self, end: int) -> Records:
        """Take everything up to a hash, this one included, in order."""
        taken = []
        for number, piece in enumerate(self._pieces):
            start = self._places[number]
            stop = start + int(np.searchsorted(piece["hash"][start:], np.uint64(end), side="right"))
            taken.append(np.asarray(piece[start:stop]))
            self._places[number] = stop
        joined = np.concatenate(taken) if taken else np.zeros(0, RECORD)
        return joined if len(taken) < 2 else np.sort(joined, order=["hash", "outcome", "file", "row"])


def compare_ids(a: Files, b: Files, *, id_field: str = "id", most_named: int = 1_000) -> IdDifference:
    """Compare what became of the documents of two runs, each given by the files its documents are in."""
    outcomes = _Outcomes()
    with tempfile.TemporaryDirectory(prefix="gristmill-ids-") as scratch:
        sides = []
        for name, files in (("a", a), ("b", b)):
            place = Path(scratch) / name
            place.mkdir()
            side = _Collected(place, outcomes, id_field)
            side.collect(files)
            sides.append(side)
        return _compared(sides[0], sides[1], outcomes, most_named)


def _compared(a: _Collected, b: _Collected, outcomes: _Outcomes, most_named: int) -> IdDifference:
    counts: dict[tuple[int, int], int] = {}
    chosen: list[tuple[Records, NDArray[np.int64], NDArray[np.int64], bool]] = []
    num_chosen = 0
    for ours, theirs in _side_by_side(a.blocks(), b.blocks()):
        for records, one, other, is_a in _differing(ours, theirs):
            pairs, numbers = np.unique(np.stack([one, other], axis=1), axis=0, return_counts=True)
            for (left, right), number in zip(pairs.tolist(), numbers.tolist(), strict=True):
                counts[left, right] = counts.get((left, right), 0) + number
            few = max(0, most_named - num_chosen)
            chosen.append((records[:few], one[:few], other[:few], is_a))
            num_chosen += len(records[:few])
    named = [
        Named(id=name, a=outcomes.names[left], b=outcomes.names[right])
        for records, one, other, is_a in chosen
        for name, left, right in zip((a if is_a else b).id_at(records), one.tolist(), other.tolist(), strict=True)
    ]
    said = [
        Disagreement(a=outcomes.names[left], b=outcomes.names[right], documents=number)
        for (left, right), number in counts.items()
    ]
    return IdDifference(
        documents_a=a.documents,
        documents_b=b.documents,
        kept_by_a_only=sum(number for (left, _), number in counts.items() if left == KEPT),
        kept_by_b_only=sum(number for (_, right), number in counts.items() if right == KEPT),
        without_id=a.without_id + b.without_id,
        disagreements=tuple(sorted(said, key=lambda d: (-d.documents, d.a, d.b))),
        named=tuple(sorted(named, key=lambda document: (document.a, document.b, document.id))),
    )


def _side_by_side(a: _Merged, b: _Merged) -> Iterator[tuple[Records, Records]]:
    """Blocks of both runs that hold the same span of hashes."""
    while True:
        ends = [end for end in (a.next_end(), b.next_end()) if end is not None]
        if not ends:
            return
        yield a.up_to(min(ends)), b.up_to(min(ends))


def _differing(a: Records, b: Records) -> Iterator[tuple[Records, NDArray[np.int64], NDArray[np.int64], bool]]:
    """Documents treated differently: their records, what A did, what B did, and whose records they are."""
    partner = _partners(a, b)
    ours = a["outcome"].astype(np.int64)
    theirs = np.full(len(a), ABSENT, np.int64)
    theirs[partner >= 0] = b["outcome"][partner[partner >= 0]]
    unlike = _unlike(ours, theirs)
    yield a[unlike], ours[unlike], theirs[unlike], True
    alone = np.ones(len(b), np.bool_)
    alone[partner[partner >= 0]] = False
    outcome = b["outcome"].astype(np.int64)
    unlike = alone & _unlike(np.full(len(b), ABSENT, np.int64), outcome)
    yield b[unlike], np.full(int(unlike.sum()), ABSENT, np.int64), outcome[unlike], False


def _unlike(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where runs differ. What one dropped and the other never saw, or kept no record of, does not count."""
    nothing = (one == ABSENT) & (other != KEPT) | (other == ABSENT) & (one != KEPT)
    unlike: NDArray[np.bool_] = (one != other) & ~nothing
    return unlike


def _partners(a: Records, b: Records) -> NDArray[np.int64]:
    """For each document of A the place of the same one in B, or -1; the second with an id is paired with the second."""
    rank = np.arange(len(a)) - np.searchsorted(a["hash"], a["hash"], side="left")
    place = np.searchsorted(b["hash"], a["hash"], side="left") + rank
    partner: NDArray[np.int64] = np.where(place < np.searchsorted(b["hash"], a["hash"], side="right"), place, -1)
    return partner


# Reading ids


def _ids(
    kind: DocumentKind, path: str, id_field: str, outcomes: _Outcomes
) -> Iterator[tuple[list[str | None], list[int]]]:
    """The ids of a file, some at a time, and what became of the documents."""
    if kind == "kept":
        for ids in _kept_ids(path, id_field):
            yield ids, [KEPT] * len(ids)
        return
    for lines in _lines(path):
        said = [_why.decode(line) for line in lines]
        if kind == "quarantined":
            yield [one.document_id or None for one in said], [QUARANTINED] * len(said)
            continue
        # What was rejected is the document with more fields, whose own id is in `reject_id`.
        ids = [one.reject_id or None for one in said] if id_field == "id" else _field(lines, id_field)
        yield ids, [outcomes.of(one.reject_stage, one.reject_reason) for one in said]


def _kept_ids(path: str, id_field: str) -> Iterator[list[str | None]]:
    name = path.rpartition("/")[2]
    if name.endswith(".parquet"):
        yield from _column(path, id_field, _parquet_batches)
    elif name.endswith((".arrow", ".feather", ".arrows")):
        yield from _column(path, id_field, _arrow_batches)
    else:
        for lines in _lines(path):
            yield _field(lines, id_field)


def _field(lines: Sequence[bytes], name: str) -> list[str | None]:
    found = (_fields.decode(line).get(name) for line in lines)
    return [None if raw is None else _text(msgspec.json.decode(raw)) for raw in found]


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)


def _lines(path: str, most: int = 4_096) -> Iterator[list[bytes]]:
    """Lines of a file that may be compressed."""
    rest, ready = b"", []
    with open_stream(path) as stream:
        while piece := stream.read(1 << 20):
            *whole, rest = (rest + piece).split(b"\n")
            ready += [line for line in whole if line.strip()]
            while len(ready) >= most:
                yield ready[:most]
                ready = ready[most:]
    ready += [rest] if rest.strip() else []
    if ready:
        yield ready


Batches = Callable[[str, str], Iterator["Sequence[object]"]]


def _column(path: str, id_field: str, batches: Batches) -> Iterator[list[str | None]]:
    try:
        for values in batches(path, id_field):
            yield [_text(value) for value in values]
    except KeyError:
        raise ConfigError(f"diff: expected the column {id_field!r} in {path}; name another with --id-field") from None


def _parquet_batches(path: str, id_field: str) -> Iterator[Sequence[object]]:
    import pyarrow.parquet as pq

    with open_stream(path) as source:
        file = pq.ParquetFile(source)
        if id_field not in file.schema_arrow.names:
            raise KeyError(id_field)
        for batch in file.iter_batches(65_536, columns=[id_field]):
            yield batch.column(0).to_pylist()


def _arrow_batches(path: str, id_field: str) -> Iterator[Sequence[object]]:
    import pyarrow as pa

    with open_stream(path) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number).column(id_field).to_pylist()
