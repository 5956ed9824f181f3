"""`ExactSearch`: the steps between reading documents and knowing which of them are exact duplicates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gristmill.deduplication.documents import OF_INDEX
from gristmill.deduplication.exact_stages import FindDuplicates, HashDocuments, is_index, write_index
from gristmill.deduplication.files_between import in_order_of, read_column, read_rows, take_texts
from gristmill.deduplication.job import DedupJob
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.deduplication.report import Duplicates, no_duplicates
from gristmill.kernels.arrow_arrays import to_numbers
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.tasks.text_columns import from_texts

PARTITION_ROWS = 2_000_000


@dataclass(frozen=True)
class ExactSettings:
    """What exact duplicates are."""

    keep: KeepPolicy
    text_field: str = "text"
    id_field: str | None = None
    normalize: bool = False
    num_partitions: int | None = None  # of the exchange

    def for_index(self) -> dict[str, object]:
        """What an index must have been made with."""
        return {"kind": "exact", "normalize": self.normalize, "text_field": self.text_field}

    def hashing(self, source: DedupInput, *, for_index: bool = False) -> HashDocuments:
        """The stage that reduces documents to hashes."""
        chosen = self.text_field, self.id_field, self.keep, self.normalize
        return HashDocuments(source.numbers, *chosen, for_index=for_index)


@dataclass(frozen=True)
class ExactSearch:
    """One search. Its pipeline resumes from its ledger."""

    job: DedupJob
    settings: ExactSettings
    index_files: Sequence[str]

    def run(self) -> Duplicates:
        """Return who loses to whom."""
        job, source = self.job, self.job.source
        hashing = self.settings.hashing(source)
        index = job.run_dir / "index"
        if self.index_files and not is_index(index):
            write_index(index, *(read_column(self.index_files, name, np.uint64) for name in ("low", "high")))
        # A document of 1 KB on average: the input's size decides, never the machine.
        partitions = self.settings.num_partitions or max(1, source.num_bytes // (PARTITION_ROWS * 1024) + 1)
        stages = [
            source.reader(hashing.inputs()[1]),
            hashing,
            Exchange(["low", "high"], partitions),
            FindDuplicates(index=str(index) if self.index_files else None),
            ArrowWriter(str(job.run_dir / "duplicates")),
        ]
        done = job.run("find_exact_duplicates", stages, ledger="identify")
        return self._found(done.output_files)

    def _found(self, files: Sequence[str]) -> Duplicates:
        has_ids = self.settings.id_field is not None
        rows = read_rows(files, ["doc", "kept_doc", *(["id", "kept_id"] if has_ids else [])])
        if not rows.num_rows:
            return no_duplicates()
        rows = in_order_of(rows, "doc")
        doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
        found = Duplicates(doc, kept, np.ones(len(doc)), np.zeros(len(doc), np.int32))
        if has_ids:
            found.ids, found.kept_ids = rows.column("id").combine_chunks(), rows.column("kept_id").combine_chunks()
        if self.index_files:
            found.kept_ids = _with_index_ids(self.job.source, found, self.index_files)
        return found


def _with_index_ids(source: DedupInput, found: Duplicates, index_files: Sequence[str]) -> pa.Array:
    """The ids of the documents that stay, those of an index from its files."""
    numbers = found.kept_doc.tolist()
    if found.kept_ids is None:
        texts = [source.numbers.label(number) if number < OF_INDEX else "" for number in numbers]
    else:
        texts = found.kept_ids.to_pylist()
    of_index = np.flatnonzero(found.kept_doc >= np.uint64(OF_INDEX))
    positions = (found.kept_doc[of_index] & ~np.uint64(OF_INDEX)).astype(np.int64)
    for place, text in zip(of_index.tolist(), take_texts(index_files, "id", positions), strict=True):
        texts[place] = text
    return from_texts(texts)
