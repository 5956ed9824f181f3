"""`RuleSet`: a published list of rules on one document, in an order, with the reasons their authors gave them.

A rule is a measure and the bounds a kept document stays in. A set defines its measures for one text in plain Python
(`measure_document`); most also have them for a column, compiled (`measure`), and a test holds both equal. A set may
change the text of the documents it keeps. What becomes of dropped documents is the stage's business.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.names import snake_case
from gristmill.stages.text.rules.texts import Texts
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.tasks.text_columns import from_texts

Measures = Mapping[str, float]
Column = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Keep a document whose measure is at least `low` and at most `high`; None and 0 are no bounds. NaN is kept."""

    reason: str
    measure: str
    low: float | None = None
    high: float | None = None

    def is_off(self) -> bool:
        """Whether the rule drops nothing: sets are switched off rule by rule with None or 0, as their users know it."""
        return not self.low and not self.high

    def drops(self, values: Column) -> NDArray[np.bool_]:
        """Return true for the values out of bounds."""
        dropped = np.zeros(len(values), np.bool_)
        if self.low:
            dropped |= values < self.low
        if self.high:
            dropped |= values > self.high
        return dropped

    def describe(self) -> str:
        """The condition a kept document meets, as in "3 ≤ characters per word"."""
        left = f"{self.low:.12g} ≤ " if self.low else ""
        right = f" ≤ {self.high:.12g}" if self.high else ""
        return f"{left}{self.measure.replace('_', ' ')}{right}"


@dataclass(frozen=True)
class Verdict:
    """Why a document is dropped, and the value that decided; (None, NaN) if it is kept."""

    reason: str | None
    value: float = math.nan


class RuleSet:
    """Rules that are applied in order: a document is dropped for the first one it breaks."""

    def rules(self) -> Sequence[Rule]:
        """Return the rules with the thresholds this set was given."""
        raise NotImplementedError(f"{type(self).__name__}: a rule set must define rules")

    def measure_document(self, text: str) -> Measures:
        """Return every measure the rules name, for one text: the definition."""
        raise NotImplementedError(f"{type(self).__name__}: a rule set must define measure_document")

    def rewrite_document(self, text: str) -> str:
        """Return the text a kept document goes on with."""
        return text

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        """Return one measure of all texts; only those that are `wanted` need be right.

        `known` holds what was measured for this column so far. A set may leave more there than was asked for. Here
        each text is judged once, and measured until it breaks a rule.
        """
        rules = [rule for rule in self.rules() if not rule.is_off()]
        known |= {rule.measure: np.full(len(texts), math.nan) for rule in self.rules()}
        for row in np.flatnonzero(wanted).tolist():
            measures = self.measure_document(texts.text(row))
            for rule in rules:
                known[rule.measure][row] = measures[rule.measure]
                if rule.drops(known[rule.measure][row : row + 1])[0]:
                    break
        return known[name]

    def rewrite(self, texts: Texts, wanted: NDArray[np.bool_]) -> Texts:
        """Return the texts the documents that are `wanted` go on with; the others may be anything."""
        if type(self).rewrite_document is RuleSet.rewrite_document:
            return texts
        left = [self.rewrite_document(texts.text(row)) if wanted[row] else "" for row in range(len(texts))]
        column = TextColumn.of(pa.chunked_array([from_texts(left)]))
        return texts if column is None else Texts(column, texts.missing, texts.tokenizer)

    def judge_document(self, text: str) -> Verdict:
        """Apply the rules to one text."""
        measures = self.measure_document(text)
        for rule in self.rules():
            value = float(measures[rule.measure])
            if not rule.is_off() and rule.drops(np.array([value]))[0]:
                return Verdict(rule.reason, value)
        return Verdict(None)

    @property
    def name(self) -> str:
        """The name in stage names and metrics: the class name in snake_case, unless one is set."""
        return cast("str | None", vars(self).get("_name")) or snake_case(type(self).__name__)

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
