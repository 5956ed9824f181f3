"""The two stages of a mixture: one counts what there is of each group of documents, one makes the copies.

A group is the documents that share what decides their weight: their source, and their values in the columns that
have weights, such as a level and a language.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.mixing.sample_by_bucket import Copies, names_in, needs_id
from gristmill.stages.text.quality.scores import scores_of
from gristmill.tasks import DocumentBatch, TableBatch
from gristmill.tasks.text_columns import from_texts

Values = tuple[str | None, ...]  # of a document in the columns that have weights

DOCUMENTS, TOKENS = "documents", "tokens"


def value_column(number: int) -> str:
    """The name of the column for the values of the grouping column that has this number."""
    return f"value_{number}"


def values_in(task: TableBatch, columns: Sequence[str]) -> list[Values]:
    """Return the values of each document in these columns."""
    if not columns:
        return [()] * task.num_items
    return list(zip(*(names_in(task.column(name)) for name in columns), strict=True))


def tokens_in(task: TableBatch, column: str | None, *, who: str) -> NDArray[np.int64]:
    """Return how many tokens each document has, as a column says; 0 where it says nothing."""
    if column is None:
        return np.zeros(task.num_items, np.int64)
    numbers = np.nan_to_num(scores_of(task, column, who=who), nan=0.0)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 2.0**62:
        raise StageError(f"{who}: expected numbers of tokens in column {column!r}; got {numbers.min()}")
    return np.rint(numbers).astype(np.int64)


@dataclass(eq=False)
class CountGroups(ProcessingStage[TableBatch, DocumentBatch]):
    """Make a row for each group in a batch: its values, its documents, its tokens."""

    rows_are_independent: ClassVar[bool] = True
    makes_new_documents: ClassVar[bool] = True

    group_by: list[str]
    token_field: str | None = None
    _: KW_ONLY
    name: str = "count_groups"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [*self.group_by, *([self.token_field] if self.token_field else [])]

    def process(self, task: TableBatch) -> DocumentBatch:
        values = values_in(task, self.group_by)
        tokens = tokens_in(task, self.token_field, who=self.stage_name())
        documents, of_group = Counter(values), dict.fromkeys(values, 0)
        for own, number in zip(values, tokens.tolist(), strict=True):
            of_group[own] += number
        columns = {value_column(n): from_texts([own[n] for own in documents]) for n in range(len(self.group_by))}
        columns[DOCUMENTS] = from_numbers(np.fromiter(documents.values(), np.int64, len(documents)))
        columns[TOKENS] = from_numbers(np.fromiter(of_group.values(), np.int64, len(of_group)))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


@dataclass(eq=False)
class MixDocuments(ProcessingStage[TableBatch, TableBatch]):
    """Make as many copies of a document as the weight of its group says.

    `groups` are the values of each group, `weights` its weight, and `labels` the name its documents are counted under.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    group_by: list[str]
    groups: list[Values]
    weights: list[float]
    labels: list[str]
    seed: int
    id_field: str
    token_field: str | None = None
    _: KW_ONLY
    name: str = "mix_documents"

    def inputs(self) -> tuple[list[str], list[str]]:
        needed = [self.id_field] if any(map(needs_id, self.weights)) else []
        return ["data"], [*self.group_by, *needed, *([self.token_field] if self.token_field else [])]

    def process(self, task: TableBatch) -> TableBatch:
        place = {tuple(values): number for number, values in enumerate(self.groups)}
        try:
            own = [place[values] for values in values_in(task, self.group_by)]
        except KeyError as error:
            raise StageError(f"{self.stage_name()}: expected documents that were counted; got {error}") from None
        weights = np.array([self.weights[number] for number in own], np.float64)
        labels = [self.labels[number] for number in own]
        made = Copies(self.stage_name(), self.id_field, self.seed).make(task, weights, labels, self.context)
        self._count(made)
        return made

    def _count(self, made: TableBatch) -> None:
        place = {tuple(values): label for values, label in zip(self.groups, self.labels, strict=True)}
        labels = [place[values] for values in values_in(made, self.group_by)]
        tokens = tokens_in(made, self.token_field, who=self.stage_name())
        of_label: Counter[str] = Counter()
        for label, number in zip(labels, tokens.tolist(), strict=True):
            of_label[label] += number
        for label, number in Counter(labels).items():
            self.context.count(f"{label} {DOCUMENTS}", number)
        for label, number in of_label.items() if self.token_field else ():
            self.context.count(f"{label} {TOKENS}", number)
