"""Two datasets compared by the id of their rows: which are in one only, which differ, in memory that does not grow.

Of every row a hash of its id, a hash of its content and its place go into one of some temporary files, by the hash of
the id. Then the files are compared one after another. Hashes have 64 bits: among a billion ids the chance that two of
them are taken for one is 3 %. Rows that are in a dataset several times under an id are compared as a whole.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from gristmill.inspection.columns import of_row
from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.labels import as_json
from gristmill.inspection.rows import Place
from gristmill.inspection.wanted import Wanted

_ENTRY = np.dtype([("id", "<u8"), ("content", "<u8"), ("file", "<u4"), ("offset", "<u8")])
_BUFFERED = 4_096  # entries of a bucket in memory
_BUCKET_ROWS = 250_000


@dataclass
class Difference:
    """How many ids are in one dataset or in both, and the first places of those that differ."""

    only_here: int = 0
    only_there: int = 0
    same: int = 0
    changed: int = 0
    repeated: int = 0  # ids that one of the datasets has several times
    without_id: int = 0
    damaged: int = 0
    here_examples: list[Place] = field(default_factory=list)
    there_examples: list[Place] = field(default_factory=list)
    changed_examples: list[tuple[Place, Place]] = field(default_factory=list)


def compare(
    here: Dataset, there: Dataset, *, id_field: str, columns: Sequence[str] = (), examples: int = 10
) -> Difference:
    """Compare two datasets by id. `columns` are the only ones whose content counts; without them, all of both."""
    found = Difference()
    for dataset in (here, there):
        dataset.check_columns([id_field, *columns])
    rows = here.num_rows().rows + there.num_rows().rows
    num_buckets = int(np.clip(rows // _BUCKET_ROWS, 1, 256))
    with tempfile.TemporaryDirectory(prefix="gristmill-inspect-") as scratch:
        sides = [Path(scratch, side) for side in ("here", "there")]
        for dataset, side in zip((here, there), sides, strict=True):
            side.mkdir()
            _spread(dataset, side, num_buckets, id_field, columns, found)
        for number in range(num_buckets):
            one, other = (_entries(side / str(number)) for side in sides)
            _compare_bucket(one, other, found, examples)
    return found


def _spread(
    dataset: Dataset, side: Path, num_buckets: int, id_field: str, columns: Sequence[str], found: Difference
) -> None:
    held: list[list[tuple[int, int, int, int]]] = [[] for _ in range(num_buckets)]
    for located in _rows(dataset, found):
        value = of_row(located.row.values, id_field)
        if value is None:
            found.without_id += 1
            continue
        hashed = xxhash.xxh3_64_intdigest(str(value).encode("utf-8", "surrogatepass"))
        bucket = held[hashed % num_buckets]
        bucket.append((hashed, _content(located, columns), *located.place))
        if len(bucket) >= _BUFFERED:
            _append(side / str(hashed % num_buckets), bucket)
    for number, bucket in enumerate(held):
        _append(side / str(number), bucket)


def _rows(dataset: Dataset, found: Difference) -> Iterator[Located]:
    for looked in dataset.look(dataset.start, Wanted()):
        found.damaged += looked.found.num_damaged
        yield from looked.rows


def _content(located: Located, columns: Sequence[str]) -> int:
    """A hash of the content, the same for JSON and Parquet: null is not there, and columns have no order."""
    values = located.row.values
    content = {name: of_row(values, name) for name in columns} if columns else values
    encoded = msgspec.json.encode(as_json({k: v for k, v in content.items() if v is not None}), order="deterministic")
    return xxhash.xxh3_64_intdigest(encoded)


def _append(path: Path, bucket: list[tuple[int, int, int, int]]) -> None:
    with path.open("ab") as file:
        file.write(np.array(bucket, _ENTRY).tobytes())
    bucket.clear()


def _entries(path: Path) -> NDArray[np.void]:
    entries = np.fromfile(path, _ENTRY)
    return entries[np.lexsort((entries["content"], entries["id"]))]


def _compare_bucket(here: NDArray[np.void], there: NDArray[np.void], found: Difference, examples: int) -> None:
    ids_here, start_here, count_here = np.unique(here["id"], return_index=True, return_counts=True)
    ids_there, start_there, count_there = np.unique(there["id"], return_index=True, return_counts=True)
    both, at_here, at_there = np.intersect1d(ids_here, ids_there, assume_unique=True, return_indices=True)
    alone_here, alone_there = np.ones(len(ids_here), np.bool_), np.ones(len(ids_there), np.bool_)
    alone_here[at_here] = alone_there[at_there] = False
    found.only_here += int(alone_here.sum())
    found.only_there += int(alone_there.sum())
    found.repeated += int((count_here > 1).sum() + (count_there > 1).sum())
    found.here_examples += _places(here[start_here[alone_here]], examples - len(found.here_examples))
    found.there_examples += _places(there[start_there[alone_there]], examples - len(found.there_examples))
    is_same = (count_here[at_here] == count_there[at_there]) & (
        here["content"][start_here[at_here]] == there["content"][start_there[at_there]]
    )
    for index in np.flatnonzero(is_same & (count_here[at_here] > 1)):  # few ids are repeated
        i, j, count = start_here[at_here[index]], start_there[at_there[index]], count_here[at_here[index]]
        is_same[index] = bool((here["content"][i : i + count] == there["content"][j : j + count]).all())
    found.same += int(is_same.sum())
    found.changed += len(both) - int(is_same.sum())
    left = examples - len(found.changed_examples)
    first_here = _places(here[start_here[at_here[~is_same]]], left)
    first_there = _places(there[start_there[at_there[~is_same]]], left)
    found.changed_examples += zip(first_here, first_there, strict=True)


def _places(entries: NDArray[np.void], most: int) -> list[Place]:
    return [Place(int(entry["file"]), int(entry["offset"])) for entry in entries[: max(0, most)]]
