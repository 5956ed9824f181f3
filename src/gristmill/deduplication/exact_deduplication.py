"""`ExactDeduplication`: of documents with the same text, or the same value of a column, one stays.

hash ─▶ exchange by hash ─▶ which document loses to which
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.deduplication.deduplication_stage import IndexedDeduplication
from gristmill.deduplication.documents import OF_INDEX, DocumentNumbers
from gristmill.deduplication.exact_stages import FindDuplicates, HashDocuments, is_index, write_index
from gristmill.deduplication.files_between import in_order_of, read_column, read_rows, take_texts
from gristmill.deduplication.findings import Findings
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.deduplication.report import Duplicates, no_duplicates
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.kernels.arrow_arrays import to_numbers
from gristmill.stages.exchange import Exchange
from gristmill.tasks.text_columns import from_texts

STEP = "identify"
PARTITION_ROWS = 2_000_000


@dataclass(eq=False)
class ExactDeduplication(IndexedDeduplication):
    """Of documents with the same `text_field`, keep one and drop the others as `exact_duplicate`.

    `text_field` may be any column, a URL for instance. With `normalize`, texts that differ only in case, accents,
    punctuation or white space are the same. Documents without text are kept. `keep` says which of several stays.
    With `index`, documents in that index are dropped, and those that stay are added; `consult` names further indexes.

    `duplicates.parquet`, where a document is named by its `id_field` or its place, and `report.json` are left in the
    run directory, or below `report_path`. The report names files that lose more than `alarm_share` of their documents.
    """

    reason: ClassVar[str] = "exact_duplicate"

    text_field: str = "text"
    keep: str = "first"
    normalize: bool = False
    id_field: str | None = None
    _: KW_ONLY
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    num_partitions: int | None = None
    name: str = "exact_deduplication"

    def __post_init__(self) -> None:
        self._keep = KeepPolicy.parse(self.keep, who=self.name)

    def _find(self, documents: SearchedDocuments) -> Findings:
        """Return which documents lose to which: each step continues from its ledger."""
        index_files = () if self._consulted is None else self._consulted.files(documents.directory)
        index = documents.directory / "index"
        if index_files and not is_index(index):
            write_index(index, *(read_column(index_files, name, np.uint64) for name in ("low", "high")))
        # Assumes 1 KB a document on average: the input's size decides, never the machine.
        partitions = self.num_partitions or max(1, documents.num_bytes // (PARTITION_ROWS * 1024) + 1)
        finding = FindDuplicates()
        finding._index = str(index) if index_files else None
        hashing = self._hashing(documents.numbers)
        stages = [*documents.reading(self._compared()), hashing, Exchange(["low", "high"], partitions), finding]
        duplicates = self._found(documents, documents.search.run(STEP, stages).files, index_files)
        counted_by = STEP, hashing.stage_name()
        return Findings(duplicates, self.text_field, counted_by, texts_are_equal=not self.normalize)

    def _hashing(self, numbers: DocumentNumbers, *, for_index: bool = False) -> HashDocuments:
        return HashDocuments(numbers, self.text_field, self.id_field, self._keep, self.normalize, for_index=for_index)

    def _found(self, documents: SearchedDocuments, files: Sequence[str], index_files: Sequence[str]) -> Duplicates:
        has_ids = self.id_field is not None
        rows = read_rows(files, ["doc", "kept_doc", *(["id", "kept_id"] if has_ids else [])])
        if not rows.num_rows:
            return no_duplicates()
        rows = in_order_of(rows, "doc")
        doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
        found = Duplicates(doc, kept, np.ones(len(doc)), np.zeros(len(doc), np.int32))
        if has_ids:
            found.ids, found.kept_ids = rows.column("id").combine_chunks(), rows.column("kept_id").combine_chunks()
        if index_files:
            found.kept_ids = _with_index_ids(documents.numbers, found, index_files)
        return found

    # The index

    def _for_comparison(self) -> dict[str, object]:
        return {"kind": "exact", "normalize": self.normalize, "text_field": self.text_field}

    def _for_index(self, numbers: DocumentNumbers) -> HashDocuments:
        return self._hashing(numbers, for_index=True)


def _with_index_ids(numbers: DocumentNumbers, found: Duplicates, index_files: Sequence[str]) -> pa.Array:
    """The ids of the documents that stay; for those in an index, read from its files."""
    if found.kept_ids is None:
        texts = [numbers.label(number) if number < OF_INDEX else "" for number in found.kept_doc.tolist()]
    else:
        texts = found.kept_ids.to_pylist()
    of_index = np.flatnonzero(found.kept_doc >= np.uint64(OF_INDEX))
    positions = (found.kept_doc[of_index] & ~np.uint64(OF_INDEX)).astype(np.int64)
    for place, text in zip(of_index.tolist(), take_texts(index_files, "id", positions), strict=True):
        texts[place] = text
    return from_texts(texts)
