"""`FuzzySearch`: the steps between reading documents and knowing which of them are fuzzy duplicates.

Each step leaves files in the run directory. Pipelines resume from their ledgers; what is computed between them appears
whole or not at all, and is the same when it is computed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gristmill.deduplication.candidates import (
    CROWDED,
    LOST,
    MAX_KEPT,
    NEAR,
    NEAR_MISSES,
    ShingleCandidates,
    VerifyCandidates,
    write_index_rows,
)
from gristmill.deduplication.clusters import Clusters, ClusterSketches
from gristmill.deduplication.files_between import read_rows, take_texts
from gristmill.deduplication.job import DedupJob
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.deduplication.report import Duplicates
from gristmill.deduplication.sketches import Shingling, SketchDocuments
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.tasks import FileGroupTask
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gristmill.engine.plan import AnyTask

PARTITION_BYTES = 32 * 1024**2  # of shingle sets and keys
SHOWN_BUCKETS = 5


@dataclass(frozen=True)
class FuzzySettings:
    """What fuzzy duplicates are."""

    shingling: Shingling
    banding: Banding
    threshold: float = 0.8
    keep: KeepPolicy = field(default_factory=lambda: KeepPolicy("longest"))
    text_field: str = "text"
    id_field: str | None = None
    seed: int = 42
    verify: bool = True
    containment: bool = False

    def for_index(self) -> dict[str, object]:
        """What has to agree for documents to be comparable."""
        return {
            "kind": "fuzzy",
            "shingle": str(self.shingling),
            "num_bands": self.banding.num_bands,
            "minhashes_per_band": self.banding.rows,
            "seed": self.seed,
        }

    def sketching(self, source: DedupInput, *, for_index: bool = False) -> SketchDocuments:
        """Return the stage that reduces documents to what they are compared by."""
        chosen = self.shingling, self.banding, self.text_field, self.id_field, self.keep, self.seed
        return SketchDocuments(source.numbers, *chosen, for_index=for_index)


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    duplicates: Duplicates
    largest_bucket: int
    warnings: list[str]
    near_misses: list[tuple[int, int, float]]  # documents that stay, what they are similar to, how similar


class FuzzySearch:
    """One search below one directory."""

    def __init__(self, job: DedupJob, settings: FuzzySettings, index_files: Sequence[str] = ()) -> None:
        self.job = job
        self.source = job.source
        self.settings = settings
        self.index_files = list(index_files)

    def run(self) -> Found:
        """Sketch, cluster, verify; return who loses to whom."""
        s = self.settings
        sketching = s.sketching(self.source)
        sketched = self._pipeline("sketch", [self.source.reader(sketching.inputs()[1]), sketching])
        files = sketched.output_files
        clusters = self._cluster(files)
        lost = self._verify(clusters) if s.verify else self._believe(clusters)
        duplicates = self._with_followers(clusters, lost)
        if s.id_field is not None:
            wanted = np.concatenate([duplicates.doc, duplicates.kept_doc])
            texts = take_texts([*self.index_files, *files], "id", clusters.at(wanted))
            duplicates.ids = from_texts(texts[: len(duplicates)])
            duplicates.kept_ids = from_texts(texts[len(duplicates) :])
        elif self.index_files:
            duplicates.kept_ids = self._index_ids(clusters, duplicates)
        return Found(duplicates, clusters.largest_bucket, self._warnings(lost), _near_misses(lost))

    def _pipeline(self, name: str, stages: Sequence[object]) -> RunResult:
        """Run stages into Arrow files below the run directory."""
        writer = ArrowWriter(str(self.job.run_dir / name))
        return self.job.run(f"fuzzy_{name}", [*stages, writer], ledger=f"{name}-run")

    def _cluster(self, files: Sequence[str]) -> Clusters:
        directory = self.job.run_dir / "clusters"
        if not Clusters.are_in(directory):
            s = self.settings
            stage = ClusterSketches(str(directory), s.banding, len(self.index_files), by_order=s.keep.kind == "first")
            pipeline = Pipeline("fuzzy_cluster", stages=[stage])
            tasks: list[AnyTask] = [FileGroupTask("sketches", [*self.index_files, *files])]
            pipeline.run(self.job.executor, tasks, observer=self.job.observer, quiet=True)
        return Clusters.load(directory)

    def _verify(self, clusters: Clusters) -> pa.Table:
        """Compare the candidates; return rows of the documents that lost, and of buckets that were crowded."""
        s = self.settings
        if not len(clusters.positions):
            return _no_losers()
        index_rows = write_index_rows(clusters, self.index_files, s.banding, self.job.run_dir / "index-rows.arrow")
        size = int(clusters.sizes.sum()) * 4 + len(clusters.sizes) * 8 * s.banding.num_bands
        shingling = s.shingling, s.banding, str(self.job.run_dir / "clusters"), s.text_field, s.seed
        stages = [
            self.source.reader([s.text_field]),
            ShingleCandidates(self.source.numbers, *shingling),
            Exchange("component", min(4096, size // PARTITION_BYTES + 1)),
            VerifyCandidates(s.threshold, s.containment, index_rows),
        ]
        verified = self._pipeline("verify", stages)
        rows = read_rows(verified.output_files, _no_losers().column_names)
        return rows if rows.num_rows else _no_losers()

    def _believe(self, clusters: Clusters) -> pa.Table:
        """Without verification, everybody in a component loses to the best of it."""
        best = clusters.best()
        lose = (best != clusters.positions) & (clusters.positions >= clusters.num_indexed)
        unknown = np.full(int(lose.sum()), np.nan)
        arrays: list[NDArray[np.number]] = [
            clusters.doc[clusters.positions[lose]],
            clusters.doc[best[lose]],
            unknown,
            np.zeros(len(unknown), np.int32),
            np.full(len(unknown), LOST),
        ]
        return pa.Table.from_arrays([from_numbers(array) for array in arrays], names=_no_losers().column_names)

    def _with_followers(self, clusters: Clusters, lost: pa.Table) -> Duplicates:
        """Add the documents that are the same as others: they lose to their leader, or to what that lost to."""
        lost = _of_kind(lost, LOST)
        doc, kept_doc = (to_numbers(lost.column(name), np.uint64) for name in ("doc", "kept_doc"))
        order = np.argsort(doc)  # as the positions of the input's documents, which alone can lose
        losers, winners = clusters.at(doc[order]), clusters.at(kept_doc[order])
        followers = np.flatnonzero(clusters.leader != np.arange(len(clusters.leader), dtype=np.int32))
        removed = np.union1d(losers, followers[followers >= clusters.num_indexed])
        leader = clusters.leader[removed]
        place = np.searchsorted(losers, leader)
        lost_too = np.isin(leader, losers)
        of = place[lost_too]
        kept, similarity = leader.astype(np.int64), np.ones(len(removed))
        shared = np.full(len(removed), self.settings.banding.num_bands, np.int32)
        kept[lost_too] = winners[of]
        similarity[lost_too] = to_numbers(lost.column("similarity"), np.float64)[order[of]]
        shared[lost_too] = to_numbers(lost.column("bands_shared"), np.int32)[order[of]]
        return Duplicates(clusters.doc[removed], clusters.doc[kept], similarity, shared)

    def _index_ids(self, clusters: Clusters, duplicates: Duplicates) -> pa.Array:
        """Labels for documents of the input, ids for those of an index."""
        positions = clusters.at(duplicates.kept_doc)
        labels = [self.source.numbers.label(int(n)) if n < 1 << 63 else "" for n in duplicates.kept_doc.tolist()]
        indexed = np.flatnonzero(positions < clusters.num_indexed)
        for place, text in zip(indexed, take_texts(self.index_files, "id", positions[indexed]), strict=True):
            labels[place] = text
        return from_texts(labels)

    def _warnings(self, lost: pa.Table) -> list[str]:
        crowded = _of_kind(lost, CROWDED).to_pylist()
        if not crowded:
            return []
        crowded.sort(key=lambda row: (-row["bands_shared"], row["doc"]))
        named = ", ".join(
            f"{self.source.numbers.label(row['doc']) if row['doc'] < 1 << 63 else 'index'} (+{row['bands_shared']})"
            for row in crowded[:SHOWN_BUCKETS]
        )
        text = (
            f"{len(crowded)} groups of documents share so much text that not all pairs were compared (more than "
            f"{MAX_KEPT} different documents in one bucket): look at those of {named}"
        )
        return [text]


def _near_misses(rows: pa.Table) -> list[tuple[int, int, float]]:
    found = [(row["doc"], row["kept_doc"], row["similarity"]) for row in _of_kind(rows, NEAR).to_pylist()]
    return sorted(found, key=lambda pair: (-pair[2], pair[0]))[:NEAR_MISSES]


def _of_kind(rows: pa.Table, kind: np.int32) -> pa.Table:
    return rows.take(from_numbers(np.flatnonzero(to_numbers(rows.column("kind"), np.int32) == kind)))


def _no_losers() -> pa.Table:
    names = {"doc": pa.uint64(), "kept_doc": pa.uint64(), "similarity": pa.float64(), "bands_shared": pa.int32()}
    names["kind"] = pa.int32()
    return pa.Table.from_arrays([pa.nulls(0, kind) for kind in names.values()], names=list(names))
