"""`PartDeduplication`: lines or paragraphs that occur in many documents are taken out of all but the first.

hash each part ─▶ exchange by hash ─▶ which parts repeat
"""

import time
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gristmill.deduplication.exact_stages import FindDuplicates
from gristmill.deduplication.files_between import read_column
from gristmill.deduplication.part_stages import SEPARATORS, HashParts, RemoveParts, Unit, are_parts, write_parts
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.errors import ConfigError, StageError
from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.runs.searches import Search

PARTITION_BYTES = 64 * 1024**2


@dataclass(eq=False)
class PartDeduplication(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Take out every line (or paragraph) that has occurred before, if it occurs at least `min_count` times.

    Blank lines and lines of fewer than `min_chars` characters are not counted and stay. White space around a line is
    ignored. A document with fewer than `min_left_chars` characters left is dropped, as `too_little_left`.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True
    searches: ClassVar[bool] = True

    unit: Unit = "line"
    text_field: str = "text"
    min_count: int = 2
    _: KW_ONLY
    min_chars: int = 1
    min_left_chars: int = 1
    name: str = "part_deduplication"

    def __post_init__(self) -> None:
        if self.unit not in SEPARATORS:
            raise ConfigError(f"{self.name}: expected unit to be one of {[*SEPARATORS]}; got {self.unit!r}")
        if self.min_count < 2:
            raise ConfigError(f"{self.name}: expected min_count ≥ 2; got {self.min_count!r}")

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def plan_note(self) -> str:
        return f"looks for {self.unit}s that repeat in all documents ahead of it before the first one passes"

    def searched(self, search: "Search") -> AnyStage:
        """Find what repeats; return a stage that takes it out."""
        began = time.monotonic()
        documents = SearchedDocuments(search)
        documents.check_pieces()
        stages = [
            *documents.reading([self.text_field]),
            HashParts(documents.numbers, self.unit, self.text_field, self.min_chars),
            Exchange(["low", "high"], documents.num_bytes // PARTITION_BYTES + 1),
            FindDuplicates(self.min_count),
        ]
        files = search.run("identify", stages).files
        doc = read_column(files, "doc", np.uint64)
        parts = search.directory / "parts"
        if not are_parts(parts):
            write_parts(parts, doc, read_column(files, "part", np.int32))
        search.found |= {"num_parts_removed": len(doc), "identification_time": time.monotonic() - began}
        search.found["summary"] = f"{len(doc):,} {self.unit}s to be taken out"
        removing = RemoveParts(self.unit, self.text_field, self.min_left_chars, name=self.stage_name())
        removing._numbers, removing._removals = documents.numbers, str(parts)
        return removing

    def process(self, task: DocumentBatch) -> DocumentBatch:
        raise StageError(
            f"{self.stage_name()}: expected to be a stage of a pipeline, which lets it search all documents before it "
            "changes some; got a call outside of one"
        )
