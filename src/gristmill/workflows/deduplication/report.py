"""The report of a deduplication: how large the clusters are, what each source lost, and what to look at.

It is made of `duplicates.parquet` and of a few documents read again; nothing is remembered for it during the run.
"""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gristmill.engine import ledger
from gristmill.workflows.deduplication.dedup_input import DedupInput
from gristmill.workflows.deduplication.duplicates_table import Duplicates

LARGEST_SHOWN = 20
EXAMPLES_SHOWN = 5
SHOWN_CHARS = 200
CONTEXT_WORDS = 4
DIFFERENCES_SHOWN = 3


def make_report(
    source: DedupInput,
    duplicates: Duplicates,
    table: pa.Table,
    *,
    text_field: str,
    ledger_path: Path,
    alarm_share: float,
    near_misses: Sequence[tuple[int, int, float]] = (),
) -> dict[str, object]:
    """Return the report as one JSON object."""
    read = _read_by_file(source, ledger_path)
    files = table.column("source").combine_chunks().value_counts() if len(duplicates) else ()
    lost = Counter({str(entry["values"]): int(entry["counts"].as_py()) for entry in files})
    sources = {
        file: {"documents": count, "removed": lost[file], "share": round(lost[file] / count, 4)}
        for file, count in sorted(read.items())
        if count
    }
    closest = np.argsort(duplicates.similarity, kind="stable")[:EXAMPLES_SHOWN].tolist()
    pairs = [(int(duplicates.doc[i]), int(duplicates.kept_doc[i]), float(duplicates.similarity[i])) for i in closest]
    return {
        "documents": sum(read.values()),
        "removed": len(duplicates),
        "cluster_sizes": _histogram(duplicates),
        "sources": sources,
        "alarms": [file for file, own in sources.items() if own["share"] > alarm_share],
        "largest_clusters": _largest(source, duplicates, table, text_field),
        "just_above": _examples(source, [p for p in pairs if p[2] < 1], text_field),
        "just_below": _examples(source, near_misses[:EXAMPLES_SHOWN], text_field),
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
    if ledger_path.exists():
        for root, entry in ledger.replay(ledger_path.read_text(encoding="utf-8").splitlines(keepends=True)).items():
            read[source.file_of(root)] += sum(counts.read for _, counts in entry.counts)
    return read


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


def _largest(source: DedupInput, duplicates: Duplicates, table: pa.Table, text_field: str) -> list[dict[str, object]]:
    kept_docs, counts = np.unique(duplicates.kept_doc, return_counts=True)
    order = np.lexsort((kept_docs, -counts))[:LARGEST_SHOWN]
    largest = [(int(kept_docs[i]), int(counts[i])) for i in order]
    examples: dict[int, int] = {}
    for kept, _ in largest:  # the least similar of each: the most interesting to compare
        members = np.flatnonzero(duplicates.kept_doc == np.uint64(kept))
        examples[kept] = int(members[np.argmin(duplicates.similarity[members])])
    wanted = [number for kept, _ in largest for number in (kept, int(duplicates.doc[examples[kept]]))]
    texts = source.texts(wanted, text_field)
    return [
        {
            "size": count + 1,
            "kept_id": table.column("kept_id")[examples[kept]].as_py(),
            "compared_id": table.column("id")[examples[kept]].as_py(),
            "text": texts.get(kept, "")[:SHOWN_CHARS],
            "differences": differences(texts.get(kept, ""), texts.get(int(duplicates.doc[examples[kept]]), "")),
        }
        for kept, count in largest
    ]


def _examples(source: DedupInput, pairs: Sequence[tuple[int, int, float]], text_field: str) -> list[dict[str, object]]:
    texts = source.texts([number for one, other, _ in pairs for number in (one, other)], text_field)
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
