"""`ChunkMergeStage`: rows that are chunks of one document, one document again, wherever they lie in the dataset."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, cast

import numpy as np

from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.tasks import DocumentBatch, Task
from gristmill.tasks.text_columns import from_texts

NO_CONTENT, REPEATED, TOO_LONG = "no_content", "repeated_chunk", "too_long"
REASONS = {
    NO_CONTENT: "The chunk is empty, or says that it has no content.",
    REPEATED: "A chunk of the same document with the same number came before it.",
    TOO_LONG: "The document that was put together has more than `max_text_length` characters.",
}


@dataclass(eq=False)
class ChunkMergeStage(CompositeStage[DocumentBatch, DocumentBatch]):
    """Join the texts of rows that agree in `groupby_columns`, in the order of `chunk_id_field`.

    The rows may lie in any batch: an exchange brings them together, so later stages start when everything before is
    done. Chunks without content (missing, empty, or one of `no_content_markers`, which a model was told to say) are
    dropped, as is a chunk whose number came before, and a document of more than `max_text_length` characters, each with
    its reason. `raw_text_field` is joined as well, `sum_columns` are added up, and other columns are the first row's. A
    row without a value in `groupby_columns` stays alone.
    """

    text_field: str = "cleaned_text"
    raw_text_field: str | None = "text"
    chunk_id_field: str = "chunk_id"
    groupby_columns: list[str] = field(default_factory=lambda: ["url"])
    no_content_markers: list[str] = field(default_factory=lambda: ["NO USEFUL CONTENT", '"NO USEFUL CONTENT"'])
    sum_columns: list[str] = field(default_factory=lambda: ["num_generated_tokens", "num_input_tokens"])
    max_text_length: int = 900_000
    separator: str = "\n"
    _: KW_ONLY
    name: str = "chunk_merge"

    def inputs(self) -> tuple[list[str], list[str]]:
        return self._merging().inputs()

    def outputs(self) -> tuple[list[str], list[str]]:
        return self._merging().outputs()

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        return [Exchange(list(self.groupby_columns)), self._merging()]  # type: ignore[list-item]  # stages are invariant

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Join the rows of one batch: outside of a pipeline, a batch is all there is."""
        return self._merging().process(task)

    def _merging(self) -> "MergeChunks":
        merging = MergeChunks(
            self.text_field,
            self.raw_text_field,
            self.chunk_id_field,
            list(self.groupby_columns),
            frozenset(self.no_content_markers),
            list(self.sum_columns),
            self.max_text_length,
            self.separator,
            name=self.name,
        )
        merging.context = self.context
        return merging


@dataclass(eq=False)
class MergeChunks(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Join the rows of one batch, documents in the order of their first rows."""

    adds_only_declared_columns: ClassVar[bool] = True
    rows_are_independent: ClassVar[bool] = False

    text_field: str
    raw_text_field: str | None
    chunk_id_field: str
    groupby_columns: list[str]
    no_content_markers: frozenset[str]
    sum_columns: list[str]
    max_text_length: int
    separator: str
    name: str = field(default="chunk_merge", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        raw = [] if self.raw_text_field is None else [self.raw_text_field]
        return ["data"], [self.text_field, self.chunk_id_field, *self.groupby_columns, *raw]

    def outputs(self) -> tuple[list[str], list[str]]:
        raw = [] if self.raw_text_field is None else [self.raw_text_field]
        return ["data"], [self.text_field, *raw, *self.groupby_columns]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        task = self._dropped(task, self._repeated(task), REPEATED)
        texts = task.column(self.text_field).to_pylist()
        empty = [text is None or text in ("", "\n") or text in self.no_content_markers for text in texts]
        task = self._dropped(task, empty, NO_CONTENT)
        joined = self._joined(task)
        too_long = [len(text or "") > self.max_text_length for text in joined.column(self.text_field).to_pylist()]
        return self._dropped(joined, too_long, TOO_LONG)

    def _dropped(self, batch: DocumentBatch, mask: Sequence[bool], reason: str) -> DocumentBatch:
        if not any(mask):
            return batch
        gone = np.array(mask, np.bool_)
        self.context.drop(batch, from_bools(gone), reason=reason)
        return batch.filter(from_bools(~gone))

    def _keys(self, batch: DocumentBatch) -> list[tuple[object, ...]]:
        """What each row is grouped by; a row without it has a key that no other has."""
        columns = [batch.column(name).to_pylist() for name in self.groupby_columns]
        return [(row,) if None in key else ("", *key) for row, key in enumerate(zip(*columns, strict=True))]

    def _repeated(self, batch: DocumentBatch) -> list[bool]:
        seen: set[object] = set()
        numbers = batch.column(self.chunk_id_field).to_pylist()
        chunks = list(zip(self._keys(batch), numbers, strict=True))
        return [chunk in seen or bool(seen.add(chunk)) for chunk in chunks]  # type: ignore[func-returns-value]

    def _joined(self, batch: DocumentBatch) -> DocumentBatch:
        documents: dict[object, list[int]] = {}
        for row, key in enumerate(self._keys(batch)):
            documents.setdefault(key, []).append(row)
        numbers = cast("list[int | None]", batch.column(self.chunk_id_field).to_pylist())
        for rows in documents.values():
            rows.sort(key=lambda row: (numbers[row] is None, numbers[row] or 0))
        groups = list(documents.values())
        result = batch.take(from_numbers(np.array([rows[0] for rows in groups], np.int64)))
        if len(groups) == batch.num_items:
            return result
        there = batch.get_columns()
        for name in (self.text_field, self.raw_text_field):
            if name is not None and name in there:
                result = result.with_column(name, from_texts(self._texts(batch.column(name).to_pylist(), groups)))
        for name in (name for name in self.sum_columns if name in there):
            values = batch.column(name).to_pylist()
            sums = [sum(value for row in rows if (value := values[row]) is not None) for rows in groups]
            result = result.with_column(name, from_numbers(np.array(sums)))
        return result

    def _texts(self, texts: list[str | None], groups: list[list[int]]) -> list[str | None]:
        found = [[text for row in rows if (text := texts[row]) is not None] for rows in groups]
        return [self.separator.join(one) if one else None for one in found]
