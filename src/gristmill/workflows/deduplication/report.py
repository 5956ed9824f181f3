"""The report of a deduplication: how large the clusters are, what each source lost, and what to look at.

It is made of `duplicates.parquet` and of a few documents read again; nothing is remembered for it during the run.
"""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gristmill.runs.ledger_file import read_ledger
from gristmill.stages.deduplication.document_numbers import OF_INDEX, SOURCE_SHIFT, source_of
from gristmill.workflows.deduplication.dedup_input import DedupInput
from gristmill.workflows.deduplication.dedup_job import DedupJob
from gristmill.workflows.deduplication.duplicates_table import Duplicates

LARGEST_SHOWN = 20
EXAMPLES_SHOWN = 5
SHOWN_CHARS = 200
CONTEXT_WORDS = 4
DIFFERENCES_SHOWN = 3


def make_report(
    job: DedupJob,
    duplicates: Duplicates,
    table: pa.Table,
    *,
    text_field: str,
    ledger_path: Path,
    alarm_share: float,
    near_misses: Sequence[tuple[int, int, float]] = (),
    texts_are_equal: bool = False,
) -> dict[str, object]:
    """Return the report as one JSON object. Where duplicates have equal texts, one of each cluster is looked at."""
    read = _read_by_file(job.source, ledger_path)
    lost = _lost_by_file(job.source, duplicates)
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
        found = job.texts(seen.values(), text_field)
        texts = {kept: found.get(number, "") for kept, number in seen.items()}
    else:
        wanted = {int(n) for cluster in largest for n in (cluster.kept, duplicates.doc[cluster.compared])}
        wanted |= {number for one, other, _ in (*above, *below) for number in (one, other)}
        texts = job.texts(wanted, text_field)
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


def _read_by_file(source: DedupInput, ledger_path: Path) -> Counter[str]:
    """How many documents each file had, from the ledger of the first pipeline."""
    read: Counter[str] = Counter()
    for root, entry in read_ledger(ledger_path).records.items():
        read[source.file_of(root)] += sum(counts.read for _, counts in entry.counts)
    return read


def _lost_by_file(source: DedupInput, duplicates: Duplicates) -> Counter[str]:
    lost: Counter[str] = Counter()
    for place, count in zip(*np.unique(source_of(duplicates.doc), return_counts=True), strict=True):
        lost[source.file_of(int(place))] += int(count)
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
    """Return by kept document one of its cluster, such that all are in as few source partitions as can easily be."""
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
