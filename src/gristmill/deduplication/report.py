"""The findings of a deduplication: `duplicates.parquet` for programs, the report for people."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.documents import OF_INDEX, SOURCE_SHIFT, source_of
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.storage.atomic_write import whole_file
from gristmill.tasks.text_columns import from_texts

# `duplicates.parquet`: each removed document, the one it lost to, how similar they are, where both come from.

FILE_NAME = "duplicates.parquet"
CHUNK_ROWS = 100_000
ROWS_A_GROUP = 65_536  # of the file: to learn about a few documents, only their groups are read
INDEX_SOURCE = OF_INDEX >> int(SOURCE_SHIFT)


@dataclass
class Duplicates:
    """Removed documents, ordered by number. `ids` and `kept_ids` are None where numbers are the ids."""

    doc: NDArray[np.uint64]
    kept_doc: NDArray[np.uint64]
    similarity: NDArray[np.float64]
    bands_shared: NDArray[np.int32]
    ids: pa.Array | None = None
    kept_ids: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.doc)

    def to_table(self, documents: SearchedDocuments) -> pa.Table:
        """Return the table for a person."""
        columns = {
            "id": self._labels(documents, self.doc) if self.ids is None else self.ids,
            "kept_id": self._labels(documents, self.kept_doc) if self.kept_ids is None else self.kept_ids,
            "similarity": from_numbers(self.similarity),
            "bands_shared": from_numbers(self.bands_shared),
            "source": _files(documents, self.doc),
            "kept_source": _files(documents, self.kept_doc),
        }
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    @staticmethod
    def _labels(documents: SearchedDocuments, numbers: NDArray[np.uint64]) -> pa.ChunkedArray:
        """Made in chunks: as Python strings, all of them at once would take ten times their size."""
        parts = np.split(numbers, range(CHUNK_ROWS, len(numbers), CHUNK_ROWS))
        return pa.chunked_array([from_texts([documents.numbers.label(n) for n in part.tolist()]) for part in parts])


def no_duplicates() -> Duplicates:
    """Return an empty list."""
    return Duplicates(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0), np.zeros(0, np.int32))


def _files(documents: SearchedDocuments, numbers: NDArray[np.uint64]) -> pa.Array:
    """The files documents are in: each name once, and a number for each document."""
    places, numbered = np.unique(source_of(numbers), return_inverse=True)
    names = [documents.file_of(int(place)) if place < INDEX_SOURCE else "index" for place in places]
    return pa.DictionaryArray.from_arrays(from_numbers(numbered.astype(np.int32)), from_texts(names))


def write_duplicates(table: pa.Table, directory: str | Path) -> str:
    """Write `duplicates.parquet`, which appears whole or not at all; return its path."""
    import pyarrow.parquet as pq

    path = Path(directory) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, forced=True) as temporary:
        pq.write_table(table, temporary, row_group_size=ROWS_A_GROUP)
    return str(path)


LARGEST_SHOWN = 20
EXAMPLES_SHOWN = 5
SHOWN_CHARS = 200
CONTEXT_WORDS = 4
DIFFERENCES_SHOWN = 3


def make_report(
    documents: SearchedDocuments,
    duplicates: Duplicates,
    table: pa.Table,
    *,
    text_field: str,
    read: Mapping[str, int],
    alarm_share: float,
    near_misses: Sequence[tuple[int, int, float]] = (),
    texts_are_equal: bool = False,
) -> dict[str, object]:
    """Return the report as one JSON object, given how many documents of each file there were.

    Where duplicates have equal texts, only one document of each cluster is read.
    """
    lost = _lost_by_file(documents, duplicates)
    sources = {
        file: {"documents": count, "removed": lost[file], "share": round(lost[file] / count, 4)}
        for file, count in sorted(read.items())
        if count
    }
    closest = np.argsort(duplicates.similarity, kind="stable")[:EXAMPLES_SHOWN].tolist()
    pairs = [(int(duplicates.doc[i]), int(duplicates.kept_doc[i]), float(duplicates.similarity[i])) for i in closest]
    above, below = [pair for pair in pairs if pair[2] < 1], near_misses[:EXAMPLES_SHOWN]
    largest = _largest(duplicates)
    if texts_are_equal:
        seen = _representatives(duplicates, largest)
        found = documents.texts(seen.values(), text_field)
        texts = {kept: found.get(number, "") for kept, number in seen.items()}
    else:
        wanted = {int(n) for cluster in largest for n in (cluster.kept, duplicates.doc[cluster.compared])}
        wanted |= {number for one, other, _ in (*above, *below) for number in (one, other)}
        texts = documents.texts(wanted, text_field)
    return {
        "documents": sum(read.values()),
        "removed": len(duplicates),
        "cluster_sizes": _histogram(duplicates),
        "sources": sources,
        "alarms": [file for file, own in sources.items() if own["share"] > alarm_share],
        "largest_clusters": [
            _shown(cluster, duplicates, table, texts, differ=not texts_are_equal) for cluster in largest
        ],
        "just_above": _examples(above, texts),
        "just_below": _examples(below, texts),
    }


def describe(report: Mapping[str, object], *, alarm_share: float) -> str:
    """Return the report in lines for a person."""
    documents, removed = _number(report["documents"]), _number(report["removed"])
    share = removed / documents if documents else 0
    lines = [f"{documents:,} documents, {removed:,} duplicates ({share:.1%})", "", "documents in a cluster, clusters:"]
    sizes = report["cluster_sizes"]
    assert isinstance(sizes, dict)  # noqa: S101  # made above
    lines += [f"  {size:>10}  {count:>10,}" for size, count in sizes.items()]
    alarms = report["alarms"]
    assert isinstance(alarms, list)  # noqa: S101  # made above
    lines += [f"ALARM: {file} lost more than {alarm_share:.0%} of its documents" for file in alarms[:LARGEST_SHOWN]]
    clusters = report["largest_clusters"]
    assert isinstance(clusters, list)  # noqa: S101  # made above
    if clusters:
        lines += ["", "largest clusters:"]
    for cluster in clusters[:EXAMPLES_SHOWN]:
        lines.append(f"  {cluster['size']:,} documents like {cluster['kept_id']}: {cluster['text'][:80]!r}")
        lines += [f"      {difference}" for difference in cluster["differences"]]
    return "\n".join(lines)


def _number(value: object) -> int:
    assert isinstance(value, int)  # noqa: S101  # made above
    return value


def _lost_by_file(documents: SearchedDocuments, duplicates: Duplicates) -> Counter[str]:
    lost: Counter[str] = Counter()
    for place, count in zip(*np.unique(source_of(duplicates.doc), return_counts=True), strict=True):
        lost[documents.file_of(int(place))] += int(count)
    return lost


def _histogram(duplicates: Duplicates) -> dict[str, int]:
    """Cluster sizes in powers of two: "2", "3-4", "5-8", …"""
    removed_of_each = np.unique(duplicates.kept_doc, return_counts=True)[1]
    sizes = Counter(removed_of_each.tolist())
    bins: dict[int, int] = {}
    for removed, count in sizes.items():
        exponent = removed.bit_length()  # a cluster has one more document than were removed
        bins[exponent] = bins.get(exponent, 0) + count
    return {_bin(exponent): count for exponent, count in sorted(bins.items())}


def _bin(exponent: int) -> str:
    low, high = 2 ** (exponent - 1) + 1, 2**exponent
    return str(high) if low == high else f"{low}-{high}"


class _Cluster(NamedTuple):
    kept: int
    size: int
    compared: int  # the least similar of the removed ones, by its place in the list: the most interesting to look at


def _largest(duplicates: Duplicates) -> list[_Cluster]:
    kept_docs, counts = np.unique(duplicates.kept_doc, return_counts=True)
    found = []
    for i in np.lexsort((kept_docs, -counts))[:LARGEST_SHOWN]:
        members = np.flatnonzero(duplicates.kept_doc == kept_docs[i])
        compared = members[np.argmin(duplicates.similarity[members])]
        found.append(_Cluster(int(kept_docs[i]), int(counts[i]) + 1, int(compared)))
    return found


def _representatives(duplicates: Duplicates, clusters: Sequence[_Cluster]) -> dict[int, int]:
    """Return, by kept document, one of its cluster, chosen so that they lie in few source partitions."""
    left: dict[int, dict[int, int]] = {}
    for cluster in clusters:
        members = [cluster.kept, *duplicates.doc[duplicates.kept_doc == np.uint64(cluster.kept)].tolist()]
        own = {number >> int(SOURCE_SHIFT): number for number in reversed(members) if number < OF_INDEX}
        left[cluster.kept] = own
    chosen: dict[int, int] = {}
    while left:
        often = Counter(place for own in left.values() for place in own)
        place = min(often, key=lambda place: (-often[place], place))
        chosen |= {kept: own[place] for kept, own in left.items() if place in own}
        left = {kept: own for kept, own in left.items() if place not in own}
    return chosen


def _shown(
    cluster: _Cluster, duplicates: Duplicates, table: pa.Table, texts: Mapping[int, str], *, differ: bool
) -> dict[str, object]:
    kept, compared = texts.get(cluster.kept, ""), texts.get(int(duplicates.doc[cluster.compared]), "")
    return {
        "size": cluster.size,
        "kept_id": table.column("kept_id")[cluster.compared].as_py(),
        "compared_id": table.column("id")[cluster.compared].as_py(),
        "text": kept[:SHOWN_CHARS],
        "differences": differences(kept, compared) if differ else [],
    }


def _examples(pairs: Sequence[tuple[int, int, float]], texts: Mapping[int, str]) -> list[dict[str, object]]:
    return [
        {
            "similarity": round(similarity, 4),
            "text": texts.get(one, "")[:SHOWN_CHARS],
            "other": texts.get(other, "")[:SHOWN_CHARS],
            "differences": differences(texts.get(other, ""), texts.get(one, "")),
        }
        for one, other, similarity in pairs
    ]


def differences(kept: str, removed: str) -> list[str]:
    """Return the first places where two texts differ, with some words around them."""
    a, b = kept[:5000].split(), removed[:5000].split()
    found: list[str] = []
    for kind, start, end, other_start, other_end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal" and len(found) < DIFFERENCES_SHOWN:
            before = " ".join(a[max(0, start - CONTEXT_WORDS) : start])
            gone, new = " ".join(a[start:end])[:80], " ".join(b[other_start:other_end])[:80]
            found.append(f"{before} [-{gone}-] [+{new}+]".strip())
    return found
