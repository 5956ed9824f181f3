"""`DeduplicationStage`: a stage that searches all documents ahead of it for duplicates, then lets the others pass.

It is what exact, fuzzy and semantic deduplication have in common. A subclass says in `_find` how duplicates are found.
The rest is here: the list and the report, the index, and `RemoveDuplicates`, which takes the stage's place.
"""

import time
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.dataset_index import CONSULTED, DatasetIndex
from gristmill.deduplication.documents import DocumentNumbers, lost_rows, write_removals
from gristmill.deduplication.findings import REPORT_NAME, Findings
from gristmill.deduplication.keep_policy import KeepPolicy, compared_columns
from gristmill.deduplication.report import FILE_NAME, ROWS_A_GROUP
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.storage.file_system import absolute, disk_path
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.runs.searches import Search

LOST_TO = "reject_lost_to"  # a column of rejected documents: the id of the one that stays
REMOVALS = "removals.npy"


@dataclass(eq=False)
class DeduplicationStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Base of the stages. Any field of a subclass counts as deciding what is removed, unless `TELLING` lists it."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True
    searches: ClassVar[bool] = True
    can_read_again: ClassVar[bool] = True  # as the stage that takes its place can
    TELLING: ClassVar[frozenset[str]] = frozenset({"alarm_share", "report_path"})

    reason: ClassVar[str]  # for which duplicates are dropped

    _: KW_ONLY
    alarm_share: float = 0.5
    report_path: str | None = None

    _consulted: DatasetIndex | None = field(default=None, init=False, repr=False)
    _dataset: str | None = field(default=None, init=False, repr=False)  # what an index knows the documents by

    def _find(self, documents: SearchedDocuments) -> Findings:
        """Search the documents, and return which lose to which. Each step continues from its ledger."""
        raise NotImplementedError

    def _compared(self) -> list[str]:
        """The columns a search reads."""
        raise NotImplementedError

    def _column(self) -> str:
        """The column that is compared."""
        return self._compared()[0]

    def _bound(self) -> str | None:
        """The bound on the similarity of documents that stay, as rejects state it."""
        return None

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self._compared()

    def get_config(self) -> dict[str, object]:
        return {name: value for name, value in super().get_config().items() if name not in self.TELLING}

    def plan_note(self) -> str:
        return "compares all documents ahead of it before the first one passes"

    def make_paths_absolute(self) -> None:
        self.report_path = None if self.report_path is None else absolute(self.report_path)

    def searched(self, search: "Search") -> AnyStage:
        """Find the duplicates, write their list and the report, and return a stage that drops them."""
        began = time.monotonic()
        documents = SearchedDocuments(search)
        documents.check_pieces()
        finder = cast("Self", self.with_())
        index = finder._consulted = self._open_index(search)
        found = finder._find(documents)
        found = replace(
            found, warnings=[*found.warnings, *documents.why_none_was_compared(self._column(), found.counted_by)]
        )
        home = search.directory if self.report_path is None else disk_path(self.report_path, who="report_path")
        search.found |= found.write(documents, home, alarm_share=self.alarm_share)
        search.found["identification_time"] = time.monotonic() - began
        search.messages += found.warnings
        search.kept |= {FILE_NAME, REPORT_NAME, CONSULTED}
        removing = RemoveDuplicates(self.reason, self._bound(), name=self.stage_name())
        write_removals(search.directory / REMOVALS, found.duplicates.doc)
        removing._numbers, removing._removals = documents.numbers, str(search.directory / REMOVALS)
        removing._list = str(home / FILE_NAME)
        if index is not None and index.own is not None:
            reducing = self._for_index(documents.numbers)
            staying = [*documents.reading(self._compared()), removing, reducing]
            search.at_end.append(lambda: index.add(search, staying))
        return removing.with_(resources=self.resources)

    def _open_index(self, search: "Search") -> DatasetIndex | None:
        """The index of earlier datasets, for the kinds that have one."""
        del search
        return None

    def _for_index(self, numbers: DocumentNumbers) -> AnyStage:
        """The stage that reduces documents that stay to what an index keeps of them."""
        raise NotImplementedError

    def process(self, task: DocumentBatch) -> DocumentBatch:
        raise StageError(
            f"{self.stage_name()}: expected to be a stage of a pipeline, which lets it search all documents before it "
            "removes some; got a call outside of one"
        )


class IndexedDeduplication(DeduplicationStage):
    """Base of the stages that can also compare with earlier datasets, by means of an index."""

    text_field: str
    id_field: str | None
    index: str | None
    consult: Sequence[str]
    _keep: KeepPolicy

    def _for_comparison(self) -> dict[str, object]:
        """The settings an index must have been made with."""
        raise NotImplementedError

    def _compared(self) -> list[str]:
        return compared_columns(self.text_field, self.id_field, self._keep)

    def make_paths_absolute(self) -> None:
        super().make_paths_absolute()
        self.index = None if self.index is None else absolute(self.index)
        self.consult = tuple(absolute(str(path)) for path in self.consult)

    def check_ready(self) -> None:
        """Refuse, before anything runs, an index made with other settings."""
        DatasetIndex(self._for_comparison(), self.index, self.consult, "")

    def _open_index(self, search: "Search") -> DatasetIndex:
        return DatasetIndex.of_search(search, self._for_comparison(), self.index, self.consult, self._dataset)


@dataclass(eq=False)
class RemoveDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop the documents a search has found, by number. A rejected document says which one it lost to."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True
    can_read_again: ClassVar[bool] = True

    reason: str
    bound: str | None = None
    name: str = field(default="remove_duplicates", kw_only=True)

    # These belong to the run directory, which may be moved; they do not decide about documents.
    _numbers: DocumentNumbers = field(default_factory=lambda: DocumentNumbers([]), init=False, repr=False)
    _removals: str = field(default="", init=False, repr=False)
    _list: str = field(default="", init=False, repr=False)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._removed: NDArray[np.uint64] = np.load(self._removals, mmap_mode="r")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        lost, (first, end) = lost_rows(self._removed, self._numbers.of_batch(task.task_id, task.num_items))
        if first == end:
            return task
        mask = from_bools(lost)
        if self.context.keep_rejects:
            kept_ids, similarity = self._told(first, end)
            told = task.with_column(LOST_TO, _spread(kept_ids, lost))
            values = None if self.bound is None else _spread(similarity, lost)
            self.context.drop(told, mask, reason=self.reason, values=values, threshold=self.bound)
        else:
            self.context.drop(task, mask, reason=self.reason)
        return task.filter(from_bools(~lost))

    def _told(self, first: int, end: int) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Which documents some removed ones lost to, and how similar they are, from those rows of the list."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._list) as file:
            groups = range(first // ROWS_A_GROUP, (end - 1) // ROWS_A_GROUP + 1)
            table = file.read_row_groups(list(groups), columns=["kept_id", "similarity"], use_threads=False)
        table = table.slice(first % ROWS_A_GROUP, end - first)
        return table.column("kept_id").cast(pa.string()), table.column("similarity")


def _spread(values: pa.ChunkedArray, lost: NDArray[np.bool_]) -> pa.ChunkedArray:
    """Values of the rows that are lost, in their places among all rows; nulls in the others."""
    places = np.full(len(lost), len(values))
    places[lost] = np.arange(len(values))
    return pa.chunked_array([*values.chunks, pa.nulls(1, values.type)]).take(from_numbers(places))
