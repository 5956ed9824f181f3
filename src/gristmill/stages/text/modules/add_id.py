"""`AddId`: an id for every document, the same in every run over the same input."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import xxhash

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

Source = Literal["position", "content"]
_SOURCES = ("position", "content")


@dataclass
class AddId(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Add a column of ids: `prefix_partition_number`.

    By "position" an id is made of the source partition and the document's number in it, so it is unique, and the same
    whatever the number of workers and whatever was killed on the way; put the stage right behind the reader, since a
    filter before it changes the numbers. By "content" it is a hash of 128 bits of `text_field`, so it stays with the
    text when files are moved, split or put in another order; equal texts have equal ids.
    """

    adds_only_declared_columns: ClassVar[bool] = True
    rows_are_independent: ClassVar[bool] = False  # a number counts the documents before it

    id_field: str
    id_prefix: str | None = None
    overwrite: bool = False
    _: KW_ONLY
    by: Source = "position"
    text_field: str = "text"
    name: str = "add_id"

    def __post_init__(self) -> None:
        if self.by not in _SOURCES:
            hint = nearest(self.by, _SOURCES)
            raise ConfigError(f"{self.name}: expected by to be one of {_SOURCES}; got {self.by!r}{hint}")

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field] if self.by == "content" else []

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.id_field]

    def new_columns(self) -> list[str]:
        return [] if self.overwrite else [self.id_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if not self.overwrite and task.has_column(self.id_field):
            raise StageError(f"{self.name}: expected no column {self.id_field!r} yet, or overwrite=True; it is there")
        prefix = f"{self.id_prefix}_" if self.id_prefix else ""
        return task.with_column(self.id_field, from_texts([prefix + own for own in self._ids(task)]))

    def _ids(self, task: DocumentBatch) -> Iterator[str]:
        if self.by == "position":
            partition = task.task_id or task.dataset_name  # outside of a run a batch has no id
            yield from (f"{partition}_{number}" for number in range(task.num_items))
            return
        for text in task.column(self.text_field).to_pylist():
            # A missing text is not an empty one: their ids differ.
            yield "null" if text is None else xxhash.xxh3_128_hexdigest(str(text).encode("utf-8", "surrogatepass"))
