"""`SearchedDocuments`: the documents a deduplication searches, numbered, and read as often as needed."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from gristmill.deduplication.documents import (
    MAX_PIECES,
    NOTHING_TO_COMPARE,
    OF_INDEX,
    SOURCE_SHIFT,
    DocumentNumbers,
    TakeDocuments,
)
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError
from gristmill.runs.searches import Search
from gristmill.stages.exchange.barrier import SamePartitions
from gristmill.tasks import DocumentBatch


class SearchedDocuments:
    """The documents of a search, in the terms of deduplication."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.directory = search.directory
        self.file_of = search.ahead.file_of  # the file the documents of a source partition came from
        self.num_bytes = search.ahead.num_bytes

    @cached_property
    def numbers(self) -> DocumentNumbers:
        """Numbers for the documents, by source partition and position."""
        return DocumentNumbers(self.search.ahead.names)

    def reading(self, columns: Sequence[str]) -> list[AnyStage]:
        """Return the stages that read the documents when only these columns are needed."""
        return self.search.ahead.reading(columns)

    def num_read(self, step: str, stage: str) -> dict[str, int]:
        """How many documents of each file have come to a stage of a step."""
        read: dict[str, int] = {}
        for root, record in self.search.ledger(step).items():
            for name, counts in record.counts:
                if name == stage:
                    file = self.file_of(root)
                    read[file] = read.get(file, 0) + counts.documents_in
        return read

    def why_none_was_compared(self, column: str, counted_by: tuple[str, str]) -> list[str]:
        """Warn if no document had anything to compare: most likely the column is the wrong one."""
        step, stage = counted_by
        counts = [
            counts for record in self.search.ledger(step).values() for name, counts in record.counts if name == stage
        ]
        came = sum(each.documents_in for each in counts)
        without = sum(each.dropped_total + each.counted.get(NOTHING_TO_COMPARE, 0) for each in counts)
        if not came or without < came:
            return []
        return [f"none of the {came:,} documents has anything to compare: is {column!r} the right column?"]

    def texts(self, numbers: Iterable[int], text_field: str) -> dict[int, str]:
        """Return the texts of a few documents, empty where there is none; those of an index are left out."""
        wanted = sorted({number for number in numbers if number < OF_INDEX})
        places = sorted({number >> int(SOURCE_SHIFT) for number in wanted})
        partitions: list[AnyTask] = [self.search.ahead.sources[place] for place in places]
        if not partitions:
            return {}
        taking = TakeDocuments(self.numbers, wanted, text_field)
        found: dict[int, str] = {}
        for batch in self.search.make("look_at_documents", [*self.reading([text_field]), taking], partitions):
            assert isinstance(batch, DocumentBatch)  # noqa: S101  # what the last stage makes
            rows = zip(batch.column("doc").to_pylist(), batch.column("text").to_pylist(), strict=True)
            found |= {number: text or "" for number, text in rows}
        return found

    def check_pieces(self) -> None:
        """Refuse a source partition of more batches than there are numbers for."""
        sources = self.search.ahead.sources
        for task in sources if isinstance(sources, SamePartitions) else ():  # each file there is a batch
            if len(task.data) > MAX_PIECES:
                raise ConfigError(
                    f"{self.search.stage}: expected at most {MAX_PIECES:,} batches of a source partition; "
                    f"{task.partition_name!r} has {len(task.data):,}. Let stages ahead of it make larger batches"
                )
