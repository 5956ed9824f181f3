"""What thresholds would do to documents that were measured: counts by rule, and where two sets of rules differ.

Only the columns of scores are read, a part of a file at a time: a million documents take a second, and no text is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, nearest
from gristmill.stages.text.judging.document_filter import read_scores, score_fields
from gristmill.stages.text.judging.judge import NULL_TEXT
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import open_stream
from gristmill.storage.paths import list_files
from gristmill.workflows.thresholds.rule import FilterRule

EXAMPLES = 5
BATCH_ROWS = 1 << 17

Mask = NDArray[np.bool_]


@dataclass
class RuleOutcome:
    """What one rule does: documents it refuses, those no rule before it refused, those no other rule refuses.

    `without_text` are those of `refused_first` that have no text: in a run their reason is null_text.
    """

    name: str
    threshold: str
    stage: str = ""
    reason: str = ""
    refused: int = 0
    refused_first: int = 0
    refused_alone: int = 0
    without_text: int = 0


@dataclass
class Difference:
    """Documents one set of rules keeps and the other refuses, by the rule that refuses them first."""

    kept_here_only: int = 0
    kept_there_only: int = 0
    refused_there_by: dict[str, int] = field(default_factory=dict)
    refused_here_by: dict[str, int] = field(default_factory=dict)
    examples_here: list[str] = field(default_factory=list)
    examples_there: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What a set of rules does to scored documents."""

    rules: list[RuleOutcome]
    documents: int = 0
    kept: int = 0
    difference: Difference | None = None

    def dropped(self) -> dict[str, dict[str, int]]:
        """Return what a run with these thresholds has in its books: stage -> reason -> documents dropped."""
        books: dict[str, dict[str, int]] = {}
        for rule in self.rules:
            for reason, number in (
                (rule.reason, rule.refused_first - rule.without_text),
                (NULL_TEXT, rule.without_text),
            ):
                if number:
                    reasons = books.setdefault(rule.stage, {})
                    reasons[reason] = reasons.get(reason, 0) + number
        return books


def apply_rules(
    scored: str | Sequence[str],
    rules: Sequence[FilterRule],
    *,
    against: Sequence[FilterRule] | None = None,
    storage_options: StorageOptions | None = None,
) -> Outcome:
    """Apply rules to the scores below `scored` (what `score_pipeline` wrote), and those of `against` for comparison."""
    outcome = Outcome([RuleOutcome(rule.name, rule.threshold, rule.stage, rule.judge.name) for rule in rules])
    if against is not None:
        outcome.difference = Difference()
    for table in _scores(scored, [*rules, *(against or ())], storage_options):
        refused = _refused(table, rules)
        _count(outcome, refused, [_is_noted(table, rule.null_column) for rule in rules])
        if against is not None and outcome.difference is not None:
            _compare(outcome.difference, table, (rules, refused), (against, _refused(table, against)))
    return outcome


def _scores(
    scored: str | Sequence[str], rules: Sequence[FilterRule], storage_options: StorageOptions | None
) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    wanted = list(dict.fromkeys(name for rule in rules for name in score_fields(rule.judge, rule.column)))
    for status in list_files(scored, extensions=["parquet"], storage_options=storage_options, who="scores"):
        with open_stream(status.path, storage_options=storage_options) as source:
            file = pq.ParquetFile(source)
            there = file.schema_arrow.names
            for column in wanted:
                if column not in there:
                    raise ConfigError(
                        f"{status.path}: expected the column {column!r}, which `gristmill score` writes for a recipe "
                        f"with that rule; got none{nearest(column, there)}"
                    )
            beside = {"id", *(rule.null_column for rule in rules)} & set(there)
            for batch in file.iter_batches(BATCH_ROWS, columns=[*beside, *wanted]):
                yield pa.Table.from_batches([batch])


def _refused(table: pa.Table, rules: Sequence[FilterRule]) -> list[Mask]:
    return [~rule.keep(read_scores(table.column, rule.judge, rule.column)) for rule in rules]


def _first(refused: Sequence[Mask], rows: int) -> NDArray[np.int64]:
    """The first rule that refuses each document; the number of rules where none does."""
    first = np.full(rows, len(refused), np.int64)
    for number in reversed(range(len(refused))):
        first[refused[number]] = number
    return first


def _is_noted(table: pa.Table, column: str) -> Mask:
    """The rows where a column of truth values is true; none if there is no such column."""
    if column not in table.column_names:
        return np.zeros(len(table), np.bool_)
    noted: Mask = table.column(column).to_numpy().astype(np.bool_)
    return noted


def _count(outcome: Outcome, refused: Sequence[Mask], without_text: Sequence[Mask]) -> None:
    rows = len(refused[0])
    times = np.zeros(rows, np.int64)
    for mask in refused:
        times += mask
    first = _first(refused, rows)
    outcome.documents += rows
    outcome.kept += int((first == len(refused)).sum())
    for number, (rule, mask) in enumerate(zip(outcome.rules, refused, strict=True)):
        rule.refused += int(mask.sum())
        rule.refused_first += int((first == number).sum())
        rule.refused_alone += int((mask & (times == 1)).sum())
        rule.without_text += int(((first == number) & without_text[number]).sum())


def _compare(
    difference: Difference,
    table: pa.Table,
    here: tuple[Sequence[FilterRule], Sequence[Mask]],
    there: tuple[Sequence[FilterRule], Sequence[Mask]],
) -> None:
    first_here, first_there = _first(here[1], len(table)), _first(there[1], len(table))
    kept_here, kept_there = first_here == len(here[0]), first_there == len(there[0])
    here_only, there_only = kept_here & ~kept_there, kept_there & ~kept_here
    difference.kept_here_only += int(here_only.sum())
    difference.kept_there_only += int(there_only.sum())
    _add_reasons(difference.refused_there_by, there[0], first_there[here_only])
    _add_reasons(difference.refused_here_by, here[0], first_here[there_only])
    _add_examples(difference.examples_here, table, here_only)
    _add_examples(difference.examples_there, table, there_only)


def _add_reasons(reasons: dict[str, int], rules: Sequence[FilterRule], first: NDArray[np.int64]) -> None:
    for rule, count in zip(rules, np.bincount(first, minlength=len(rules)), strict=True):
        if count:
            reasons[rule.name] = reasons.get(rule.name, 0) + int(count)


def _add_examples(examples: list[str], table: pa.Table, rows: Mask) -> None:
    if "id" in table.column_names and len(examples) < EXAMPLES:
        some = np.flatnonzero(rows)[: EXAMPLES - len(examples)]
        examples += [str(table.column("id")[int(row)].as_py()) for row in some]
