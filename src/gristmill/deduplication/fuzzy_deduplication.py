"""`FuzzyDeduplication`: of documents that are nearly the same one stays, and each removal is verified.

sketch ─▶ candidates by shared bands ─▶ read again, shingle ─▶ exchange by component ─▶ verify

Each step leaves files in the run directory. Pipelines resume from their ledgers; what is computed between them appears
whole or not at all, and is the same when it is computed again.
"""

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, ClassVar

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
from gristmill.deduplication.deduplication_stage import IndexedDeduplication
from gristmill.deduplication.documents import OF_INDEX, DocumentNumbers
from gristmill.deduplication.files_between import read_rows, take_texts
from gristmill.deduplication.findings import Findings
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.deduplication.report import Duplicates
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.deduplication.sketches import Shingling, SketchDocuments
from gristmill.errors import ConfigError, nearest
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.dedup.banding import DEFAULT_ROWS, Banding, choose_bands
from gristmill.stages.exchange import Exchange
from gristmill.tasks import FileGroupTask
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIMILARITIES = ("jaccard", "containment")
PARTITION_BYTES = 32 * 1024**2  # of shingle sets and keys
SHOWN_BUCKETS = 5
STEP = "sketch"

log = logging.getLogger(__name__)


@dataclass(eq=False)
class FuzzyDeduplication(IndexedDeduplication):
    """Drop documents whose shingles are at least `jaccard_threshold` similar to those of one that stays.

    They go as `fuzzy_duplicate`. Bands are chosen so that a pair at the threshold is compared with a probability of
    more than 0.999, unless `num_bands` and `minhashes_per_band` are given. Removals are verified unless `verify` is
    False. Texts of fewer words than a shingle are duplicates only of equal texts; documents without words are kept.
    `keep` says which of several stays. With `similarity="containment"` a document is dropped when that share of its
    shingles is in the one that stays; candidates are still those with enough Jaccard similarity for the bands. With
    `index`, documents in that index are dropped, and those that stay are added; `consult` names further indexes.

    `duplicates.parquet`, where a document is named by its `id_field` or its place, and `report.json` are left in the
    run directory, or below `report_path`. The report names files that lose more than `alarm_share` of their documents.
    """

    reason: ClassVar[str] = "fuzzy_duplicate"

    text_field: str = "text"
    jaccard_threshold: float = 0.8
    shingle: str = "word:5"
    keep: str = "longest"
    id_field: str | None = None
    _: KW_ONLY
    verify: bool = True
    similarity: str = "jaccard"
    num_bands: int | None = None
    minhashes_per_band: int | None = None
    seed: int = 42
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    name: str = "fuzzy_deduplication"

    def __post_init__(self) -> None:
        if not 0 < self.jaccard_threshold <= 1:
            raise ConfigError(f"{self.name}: expected jaccard_threshold in (0, 1]; got {self.jaccard_threshold!r}")
        if self.similarity not in SIMILARITIES:
            raise ConfigError(
                f"{self.name}: expected similarity to be one of {SIMILARITIES}; "
                f"got {self.similarity!r}{nearest(self.similarity, SIMILARITIES)}"
            )
        self._keep = KeepPolicy.parse(self.keep, who=self.name)
        self._shingling = Shingling.parse(self.shingle, who=self.name)
        self._banding = self._bands()

    def _bands(self) -> Banding:
        for name in ("num_bands", "minhashes_per_band"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{self.name}: expected {name} ≥ 1; got {value!r}")
        if self.num_bands is None:
            return choose_bands(self.jaccard_threshold, rows=self.minhashes_per_band or DEFAULT_ROWS)
        return Banding(self.num_bands, self.minhashes_per_band or DEFAULT_ROWS)

    def curve(self) -> str:
        """Return, as lines for a person, how likely a pair is to be compared, by its similarity."""
        return self._banding.curve()

    def _bound(self) -> str:
        return f"{self.similarity} < {self.jaccard_threshold:g}"

    def _find(self, documents: SearchedDocuments) -> Findings:
        """Sketch, cluster, verify; return which documents lose to which."""
        log.info(self.curve())
        index_files = [] if self._consulted is None else self._consulted.files(documents.directory)
        return _Search(self, documents, index_files).run()

    def _sketching(self, numbers: DocumentNumbers, *, for_index: bool = False) -> SketchDocuments:
        """Return the stage that reduces documents to what they are compared by."""
        chosen = self._shingling, self._banding, self.text_field, self.id_field, self._keep, self.seed
        return SketchDocuments(numbers, *chosen, for_index=for_index)

    # The index

    def _for_comparison(self) -> dict[str, object]:
        return {
            "kind": "fuzzy",
            "shingle": str(self._shingling),
            "num_bands": self._banding.num_bands,
            "minhashes_per_band": self._banding.rows,
            "seed": self.seed,
        }

    def _for_index(self, numbers: DocumentNumbers) -> SketchDocuments:
        return self._sketching(numbers, for_index=True)


class _Search:
    """One search below one directory."""

    def __init__(self, stage: FuzzyDeduplication, documents: SearchedDocuments, index_files: Sequence[str]) -> None:
        self.stage = stage
        self.documents = documents
        self.index_files = list(index_files)
        self.banding, self.shingling = stage._banding, stage._shingling

    def run(self) -> Findings:
        """Return which documents lose to which."""
        stage, documents = self.stage, self.documents
        sketching = stage._sketching(documents.numbers)
        files = documents.search.run(STEP, [*documents.reading(stage._compared()), sketching]).files
        clusters = self._cluster(files)
        lost = self._verify(clusters) if stage.verify else self._believe(clusters)
        duplicates = self._with_followers(clusters, lost)
        if stage.id_field is not None:
            wanted = np.concatenate([duplicates.doc, duplicates.kept_doc])
            texts = take_texts([*self.index_files, *files], "id", clusters.at(wanted))
            duplicates.ids = from_texts(texts[: len(duplicates)])
            duplicates.kept_ids = from_texts(texts[len(duplicates) :])
        elif self.index_files:
            duplicates.kept_ids = self._index_ids(clusters, duplicates)
        about = {
            "num_bands": self.banding.num_bands,
            "minhashes_per_band": self.banding.rows,
            "largest_bucket": clusters.largest_bucket,
        }
        counted_by, warnings = (STEP, sketching.stage_name()), self._warnings(lost)
        return Findings(duplicates, stage.text_field, counted_by, _near_misses(lost), warnings=warnings, about=about)

    def _cluster(self, files: Sequence[str]) -> Clusters:
        directory = self.documents.directory / "clusters"
        if not Clusters.are_in(directory):
            by_order = self.stage._keep.kind == "first"
            clustering = ClusterSketches(str(directory), self.banding, len(self.index_files), by_order=by_order)
            self.documents.search.make(
                "cluster", [clustering], [FileGroupTask("sketches", [*self.index_files, *files])]
            )
        return Clusters.load(directory)

    def _verify(self, clusters: Clusters) -> pa.Table:
        """Compare the candidates; return rows of the documents that lost, and of buckets that were crowded."""
        stage, documents = self.stage, self.documents
        if not len(clusters.positions):
            return _no_losers()
        size = int(clusters.sizes.sum()) * 4 + len(clusters.sizes) * 8 * self.banding.num_bands
        shingling = ShingleCandidates(documents.numbers, self.shingling, self.banding, stage.text_field, stage.seed)
        shingling._clusters_path = str(documents.directory / "clusters")
        verifying = VerifyCandidates(stage.jaccard_threshold, stage.similarity == "containment")
        rows_path = documents.directory / "index-rows.arrow"
        verifying._index_rows = write_index_rows(clusters, self.index_files, self.banding, rows_path)
        stages = [
            *documents.reading([stage.text_field]),
            shingling,
            Exchange("component", min(4096, size // PARTITION_BYTES + 1)),
            verifying,
        ]
        rows = read_rows(documents.search.run("verify", stages).files, _no_losers().column_names)
        return rows if rows.num_rows else _no_losers()

    def _believe(self, clusters: Clusters) -> pa.Table:
        """Without verification, every document in a component loses to its best one."""
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
        """Add the documents that are the same as others: they lose to their leader, or to the one it lost to."""
        lost = _of_kind(lost, LOST)
        doc, kept_doc = (to_numbers(lost.column(name), np.uint64) for name in ("doc", "kept_doc"))
        order = np.argsort(doc)  # in the order of positions: only documents of the input can lose
        losers, winners = clusters.at(doc[order]), clusters.at(kept_doc[order])
        followers = np.flatnonzero(clusters.leader != np.arange(len(clusters.leader), dtype=np.int32))
        removed = np.union1d(losers, followers[followers >= clusters.num_indexed])
        leader = clusters.leader[removed]
        place = np.searchsorted(losers, leader)
        lost_too = np.isin(leader, losers)
        of = place[lost_too]
        kept, similarity = leader.astype(np.int64), np.ones(len(removed))
        shared = np.full(len(removed), self.banding.num_bands, np.int32)
        kept[lost_too] = winners[of]
        similarity[lost_too] = to_numbers(lost.column("similarity"), np.float64)[order[of]]
        shared[lost_too] = to_numbers(lost.column("bands_shared"), np.int32)[order[of]]
        return Duplicates(clusters.doc[removed], clusters.doc[kept], similarity, shared)

    def _index_ids(self, clusters: Clusters, duplicates: Duplicates) -> pa.Array:
        """Labels for documents of the input, ids for those of an index."""
        positions = clusters.at(duplicates.kept_doc)
        labels = [self.documents.numbers.label(int(n)) if n < OF_INDEX else "" for n in duplicates.kept_doc.tolist()]
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
            f"{self.documents.numbers.label(row['doc']) if row['doc'] < OF_INDEX else 'index'} (+{row['bands_shared']})"
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
