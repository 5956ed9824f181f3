"""`DocumentJoiner`: rows that are pieces of one document, one document again."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, NamedTuple, cast

import numpy as np

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.tasks import DocumentBatch, Task
from gristmill.tasks.text_columns import from_texts


@dataclass(eq=False)
class DocumentJoiner(CompositeStage[DocumentBatch, DocumentBatch]):
    """Join the texts of rows with the same id, in the order of their segment ids; other columns are the first row's.

    The rows may lie in any batch of any file: an exchange brings them together, so what stands behind starts when
    all before it is done. With `across_batches=False` only rows of one batch are joined, without waiting; that is
    enough where nothing but filters stands between `DocumentSplitter` and this stage.

    With `max_length`, pieces are joined only as long as their lengths in `length_field`, plus one for each separator,
    do not exceed it; what is left begins the next piece. A row without an id stays alone.
    """

    separator: str = "\n\n"
    text_field: str = "text"
    segment_id_field: str = "segment_id"
    document_id_field: str = "id"
    drop_segment_id_field: bool = True
    max_length: int | None = None
    length_field: str | None = None
    _: KW_ONLY
    across_batches: bool = True
    name: str = "document_joiner"

    def __post_init__(self) -> None:
        if (self.max_length is None) != (self.length_field is None):
            raise ConfigError(
                f"{self.name}: expected max_length and length_field together; "
                f"got {self.max_length!r} and {self.length_field!r}"
            )

    def inputs(self) -> tuple[list[str], list[str]]:
        lengths = [] if self.length_field is None else [self.length_field]
        return ["data"], [self.text_field, self.segment_id_field, self.document_id_field, *lengths]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        exchange = [Exchange(self.document_id_field)] if self.across_batches else []
        return [*exchange, self._joining()]  # type: ignore[list-item]  # stages are invariant

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Join the rows of one batch: outside of a pipeline, a batch is all there is."""
        return self._joining().process(task)

    def _joining(self) -> "JoinSegments":
        return JoinSegments(
            self.separator,
            self.text_field,
            self.segment_id_field,
            self.document_id_field,
            drop_segment_id_field=self.drop_segment_id_field,
            max_length=self.max_length,
            length_field=self.length_field,
            name=self.name,
        )


class _Joined(NamedTuple):
    """Consecutive pieces of one document."""

    rows: list[int]
    length: int
    number: int


@dataclass(eq=False)
class JoinSegments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Join the rows of one batch, documents in the order of their first rows."""

    adds_only_declared_columns: ClassVar[bool] = True
    rows_are_independent: ClassVar[bool] = False

    separator: str
    text_field: str
    segment_id_field: str
    document_id_field: str
    drop_segment_id_field: bool = field(kw_only=True)
    max_length: int | None = field(kw_only=True)
    length_field: str | None = field(kw_only=True)
    name: str = field(default="document_joiner", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        needed = [self.text_field, self.segment_id_field, self.document_id_field]
        return ["data"], needed if self.length_field is None else [*needed, self.length_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        joined = list(self._joined(task))
        texts = task.column(self.text_field).to_pylist()
        result = task.take(from_numbers(np.array([part.rows[0] for part in joined], np.int64)))
        if len(joined) < task.num_items:
            result = result.with_column(self.text_field, from_texts([self._join(part, texts) for part in joined]))
        if self.length_field is not None:
            lengths = from_numbers(np.array([part.length for part in joined], np.int64))
            result = result.with_column(self.length_field, lengths)
        if self.drop_segment_id_field:
            return result.drop_columns([self.segment_id_field])
        if self.max_length is not None:
            numbers = from_numbers(np.array([part.number for part in joined], np.int64))
            result = result.with_column(self.segment_id_field, numbers)
        return result

    def _join(self, part: _Joined, texts: list[str | None]) -> str | None:
        there = [text for row in part.rows if (text := texts[row]) is not None]
        return self.separator.join(there) if there else None

    def _joined(self, batch: DocumentBatch) -> Iterator[_Joined]:
        lengths = batch.column(self.length_field).to_pylist() if self.length_field is not None else []
        for rows in self._documents(batch):
            if self.max_length is None:
                yield _Joined(rows, 0, 0)
                continue
            number, taken, length = 0, rows[:1], lengths[rows[0]] or 0
            for row in rows[1:]:
                longer = length + (lengths[row] or 0) + 1
                if longer > self.max_length:
                    yield _Joined(taken, length, number)
                    number, taken, length = number + 1, [row], lengths[row] or 0
                else:
                    taken.append(row)
                    length = longer
            yield _Joined(taken, length, number)

    def _documents(self, batch: DocumentBatch) -> list[list[int]]:
        """Return the rows of each document, in the order of their segment ids."""
        ids = batch.column(self.document_id_field).to_pylist()
        segments = cast("list[int | None]", batch.column(self.segment_id_field).to_pylist())
        documents: dict[object, list[int]] = {}
        for row, document_id in enumerate(ids):
            documents.setdefault((row,) if document_id is None else document_id, []).append(row)
        for rows in documents.values():
            # Rows without a number come last, in the order they are in.
            rows.sort(key=lambda row: (segments[row] is None, segments[row] or 0))
        return list(documents.values())
