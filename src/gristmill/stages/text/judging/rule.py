"""`Rule`: a measure and the bounds a kept document stays in; `RuleSet`: rules that were published together.

A set defines its measures for one text in plain Python (`measure_document`); most also have them for a column, compiled
(`measure`), and a test holds both equal. A set may change the text of the documents it keeps. What becomes of dropped
documents is the stage's business.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.base import snake_case
from gristmill.stages.text.judging.statistics import Statistic, TextColumn
from gristmill.stages.text.judging.texts import Texts
from gristmill.tasks.text_columns import from_texts

Measures = Mapping[str, float]
Column = NDArray[np.float64]
Numbers = NDArray[np.int64] | NDArray[np.float64]


class Bounds(NamedTuple):
    """The least and the greatest value that is kept, both included; None where there is no bound.

    NaN is within no bounds, unless both are None.
    """

    low: float | None = None
    high: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether there are no bounds at all."""
        return self.low is None and self.high is None

    def hold(self, values: Numbers) -> NDArray[np.bool_]:
        """Return true for the values within the bounds."""
        held = np.ones(len(values), np.bool_)
        if self.low is not None:
            held &= values >= self.low
        if self.high is not None:
            held &= values <= self.high
        return held

    def holds(self, value: float) -> bool:
        """Whether one value is within the bounds."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def describe(self, measure: str) -> str:
        """The condition a kept document meets, as in "50 ≤ words ≤ 100000"."""
        left = "" if self.low is None else f"{self.low:.12g} ≤ "
        right = "" if self.high is None else f" ≤ {self.high:.12g}"
        return f"{left}{measure}{right}"


@dataclass(frozen=True)
class Rule:
    """Keep a document whose measure is at least `low` and at most `high`; None sets no bound.

    A measure that is not a number, such as the mean length of no words, says nothing: the document stays.
    """

    reason: str
    measure: str
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> Bounds:
        """The bounds of kept documents."""
        return Bounds(self.low, self.high)

    def drops(self, values: Numbers) -> NDArray[np.bool_]:
        """Return true for the values out of bounds."""
        return ~(self.bounds.hold(values) | np.isnan(values))

    def describe(self) -> str:
        """The condition a kept document meets, as in "3 ≤ characters per word"."""
        return self.bounds.describe(self.measure.replace("_", " "))


def published(*rules: Rule) -> list[Rule]:
    """Return rules as users of the published sets know them: a bound of 0 switches one off, as None does."""
    return [Rule(rule.reason, rule.measure, rule.low or None, rule.high or None) for rule in rules]


@dataclass(frozen=True)
class Verdict:
    """Why a document is dropped, and the value that decided; (None, NaN) if it is kept."""

    reason: str | None
    value: float = math.nan


class RuleSet:
    """Rules that are applied in order: a document is dropped for the first one it breaks."""

    def check_ready(self) -> None:
        """Raise MissingDependency if a package is missing. Called before anything starts."""

    def rules(self) -> Sequence[Rule]:
        """Return the rules with the thresholds this set was given."""
        raise NotImplementedError(f"{type(self).__name__}: a rule set must define rules")

    def measure_document(self, text: str) -> Measures:
        """Return every measure the rules name, for one text: the definition."""
        raise NotImplementedError(f"{type(self).__name__}: a rule set must define measure_document")

    def rewrite_document(self, text: str) -> str:
        """Return the text a kept document goes on with."""
        return text

    def statistics(self) -> tuple[Statistic, ...]:
        """Return what `measure` will ask the texts for, so that it is counted together with what others ask for."""
        return ()

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        """Return one measure of all texts; only those that are `wanted` need be right.

        `known` holds what was measured for this column so far. A set may leave more there than was asked for. This
        default judges each text once, and measures it until it breaks a rule.
        """
        applied = self.applied_rules()
        known |= {rule.measure: np.full(len(texts), math.nan) for rule in self.rules()}
        for row in np.flatnonzero(wanted).tolist():
            measures = self.measure_document(texts.text(row))
            for rule in applied:
                known[rule.measure][row] = measures[rule.measure]
                if rule.drops(known[rule.measure][row : row + 1])[0]:
                    break
        return known[name]

    def rewrite(self, texts: Texts, wanted: NDArray[np.bool_]) -> Texts:
        """Return the texts the documents that are `wanted` go on with; the others may be anything."""
        left = [self.rewrite_document(texts.text(row)) if wanted[row] else "" for row in range(len(texts))]
        column = TextColumn.of(pa.chunked_array([from_texts(left)]))
        return texts if column is None else texts.rewritten(column)

    def changes_texts(self) -> bool:
        """Whether kept documents may go on with another text."""
        kind = type(self)
        return kind.rewrite is not RuleSet.rewrite or kind.rewrite_document is not RuleSet.rewrite_document

    def applied_rules(self) -> list[Rule]:
        """Return the rules that have a bound; the others drop nothing and are not measured."""
        return [rule for rule in self.rules() if not rule.bounds.is_open]

    def judge_document(self, text: str) -> Verdict:
        """Apply the rules to one text."""
        measures = self.measure_document(text)
        for rule in self.applied_rules():
            value = float(measures[rule.measure])
            if rule.drops(np.array([value]))[0]:
                return Verdict(rule.reason, value)
        return Verdict(None)

    @property
    def name(self) -> str:
        """The name in stage names and metrics: the class name in snake_case, unless one is set."""
        return cast("str | None", vars(self).get("_name")) or snake_case(type(self).__name__)

    @name.setter
    def name(self, name: str) -> None:
        self._name = name


class LazyMeasures(Mapping[str, float]):
    """The measures of one text, each taken when it is first asked for.

    If a text breaks the first rule, what the later ones need is never measured, which may be most of the work.
    """

    def __init__(self, ways: Mapping[str, Callable[[], float]]) -> None:
        self._ways = ways
        self._taken: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        if name not in self._taken:
            self._taken[name] = self._ways[name]()
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ways)

    def __len__(self) -> int:
        return len(self._ways)


def share(part: float, whole: float, *, of_nothing: float = 0.0) -> float:
    """Return part / whole, or a fixed value where there is nothing to take a part of."""
    return part / whole if whole else of_nothing


def shares(part: NDArray[np.int64], whole: NDArray[np.int64], *, of_nothing: float = 0.0) -> Column:
    """Return `share` of every pair."""
    result = np.full(len(part), of_nothing)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
