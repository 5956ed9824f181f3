"""`Tallying`: what was measured and dropped in one call, counted, with the documents that are examples of it.

Recording may take 2 % of a run's processor time (`benchmarks/observation_cost.py`), and judging 3,000 documents by 28
rules takes 50 ms. So arrays go to one call of compiled code, what comes out of it goes into the file as it is, and a
text is touched only if it is an example.
"""

from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gristmill.kernels.row_hash import mix
from gristmill.kernels.tally_layout import ALL, KEPT
from gristmill.metrics.observation_parts import Part, PartDocuments, PartRule, encode_rules, shown_text
from gristmill.metrics.observations import Labels
from gristmill.stages.measured import KEPT_BEFORE, About, Excerpts, Gone, Measured, Shown, of_line
from gristmill.tasks import Batch
from gristmill.worker.call_books import shown_item
from gristmill.worker.job import Observed, Place
from gristmill.worker.measuring import (
    Counted,
    Counter,
    Doubles,
    Keys,
    Laid,
    Longs,
    Measures,
    Texts,
    count_plainly,
    numbers_in,
)
from gristmill.worker.recorded import Recorded
from gristmill.worker.slicing import MAX_VALUE_CHARS

FEW_VALUES = 20_000  # that a worker counts without compiled code
MOST_RULES = 256  # sets of rules that are remembered: a stage may measure something else in every batch

_Measured = list[tuple[Place, Measured]]
_About = tuple[tuple[Place, About, bool], ...]  # of each measure: whose, which, and whether its documents can be shown


class _Rules(NamedTuple):
    """The rules of a call, which are mostly those of the call before."""

    about: _About
    encoded: msgspec.Raw
    bounds: Doubles
    places: Longs  # where examples of them are remembered


class Tallying:
    """Counts what the stages of one group report; without examples unless `is_full`."""

    def __init__(self, *, is_full: bool) -> None:
        self.recorded = Recorded()
        self._is_full = is_full
        self._seen = 0  # values, up to FEW_VALUES
        self._rules: dict[_About, _Rules] = {}
        self._current = self._made_rules(())
        self._laid, self._counter = Laid(), Counter()

    def tally(self, measured: _Measured, gone: list[tuple[Place, Gone]]) -> Observed:
        """Return what was measured and dropped in one call."""
        lost = gone if self._is_full else []
        shown = _Shown(measured, lost)
        given, chosen, labelled = _in_numbers(measured, shown)
        rules = self._rules_of(chosen)
        values = self._laid.values(given, rules.bounds)
        dropped = self._laid.gone([shown.rows(one) for _, one in lost])
        compiled = self._is_worth_compiling(len(values.numbers))
        windows, keys = None, shown.keys(compiled=compiled)
        if compiled:
            self.recorded.look()
            samples = self.recorded.sample_places([(place.number, one.reason) for place, one in lost])
            windows = self.recorded.windows()
            counted = self._counter.count(values, dropped, keys, windows, (rules.places, samples), shown.texts())
        else:
            counted = count_plainly(values, dropped, keys)
        part = _part(rules.encoded, counted)
        if lost:
            part.reasons = [(place.name, place.number, one.reason) for place, one in lost]
            part.sample_values = _values_of(lost, dropped.firsts, counted)
        if len(counted.documents):
            part.documents = shown.packed(counted, keys)
        if labelled:
            part.labels = [_labels(place, one) for place, one in labelled]
        return Observed(part, windows, self.recorded.version)

    def _is_worth_compiling(self, number: int) -> bool:
        if self._seen <= FEW_VALUES:
            self._seen += number
        return self._seen > FEW_VALUES

    def _rules_of(self, measured: _Measured) -> _Rules:
        # Mostly they are the very objects of the call before, and then comparing them takes no time.
        about = tuple([(place, one.about, one.of is not None) for place, one in measured])
        if about != self._current.about:
            if about not in self._rules:
                if len(self._rules) > MOST_RULES:
                    self._rules.clear()
                    self.recorded.forget()
                self._rules[about] = self._made_rules(about)
            self._current = self._rules[about]
        return self._current

    def _made_rules(self, about: _About) -> _Rules:
        rules: list[PartRule] = []
        bounds: list[float | None] = []
        for place, one, can_be_shown in about:
            is_shown = self._is_full and can_be_shown
            rules.append(_part_rule(place, one, is_shown=is_shown))
            bounds += [one.low, one.high] if is_shown else [None, None]
        flat = np.array([np.nan if bound is None else bound for bound in bounds], np.float64)
        places = self.recorded.rule_places([(place.number, one) for place, one, _ in about])
        return _Rules(about, encode_rules(rules), flat, places)


class ShownItems:
    """The items of a batch of any kind, known by their numbers in the task."""

    def __init__(self, batch: Batch[Any]) -> None:
        self.batch = batch

    def texts(self) -> None:
        """They are not known."""
        return

    def keys(self) -> Keys:
        """Return a number for every item."""
        import xxhash

        seed = xxhash.xxh3_64_intdigest(self.batch.task_id.encode("utf-8", "surrogatepass"))
        return mix(np.arange(self.batch.num_items, dtype=np.uint64) + np.uint64(seed))

    def excerpts(self, rows: Longs, *, with_texts: bool = True) -> Excerpts:
        """Return some of the items as examples, always with texts."""
        del with_texts
        each = [self._shown(row) for row in rows.tolist()]
        return Excerpts([name for name, _ in each], [text for _, text in each])

    def _shown(self, row: int) -> tuple[bytes, bytes]:
        item = shown_item(self.batch, row)
        text = _text_of(item.text) or item.preview or item.text
        return shown_text(item.id).encode(), shown_text(text).encode()


def _text_of(line: str) -> str:
    """The text of a document that is shown as a JSON line."""
    return of_line(line.encode("utf-8", "backslashreplace"))[1] if line.startswith("{") else ""


class _Shown:
    """The documents of several measures, numbered consecutively."""

    def __init__(self, measured: _Measured, lost: list[tuple[Place, Gone]]) -> None:
        self._all: dict[int, tuple[int, Shown]] = {}  # by what was given, which its owner keeps
        self._number = 0
        known: object = None
        for of in chain([one.of for _, one in measured], [one.of for _, one in lost]):
            if of is not known and of is not None and id(of) not in self._all:
                shown = ShownItems(of) if isinstance(of, Batch) else of
                self._all[id(of)] = (self._number, shown)
                self._number += shown.batch.num_items
            known = of

    def offset(self, of: object) -> int:
        """The number of the first document of one of these."""
        return 0 if of is None or len(self._all) == 1 else self._all[id(of)][0]

    def rows(self, gone: Gone) -> Longs:
        """The numbers of documents that were dropped, by their rows in one of these."""
        rows = gone.rows if isinstance(gone.rows, np.ndarray) else np.asarray(gone.rows, np.int64)
        return rows if len(self._all) == 1 else rows + self.offset(gone.of)

    def texts(self) -> Texts | None:
        """Texts that compiled code makes keys of."""
        found = next(iter(self._all.values()))[1].texts() if len(self._all) == 1 else None
        return None if found is None else Texts(*found)

    def keys(self, *, compiled: bool) -> Keys:
        """Return a key of every document, or where compiled code will make them, room for as many."""
        if not self._all or (compiled and self.texts() is not None):
            return np.empty(max(1, self._number), np.uint64)
        each = [shown.keys() for _, shown in self._all.values()]
        return each[0] if len(each) == 1 else np.concatenate(each)

    def packed(self, counted: Counted, keys: Keys) -> list[PartDocuments]:
        """Return the documents that are examples, in order, as a part has them."""
        documents = counted.documents
        if counted.beginnings is not None:  # then all are of one batch
            texts, ends = counted.beginnings
            [(_, shown)] = self._all.values()
            excerpts = shown.excerpts(documents, with_texts=False)
            return [excerpts.packed(shown.batch, keys[documents], (texts[: ends[-1]].tobytes(), ends.tobytes()))]
        firsts = [first for first, _ in self._all.values()]
        each = np.split(documents, np.searchsorted(documents, firsts[1:])) if len(firsts) > 1 else [documents]
        return [
            shown.excerpts(rows - first).packed(shown.batch, keys[rows])
            for (first, shown), rows in zip(self._all.values(), each, strict=True)
            if len(rows)
        ]


def _in_numbers(measured: _Measured, shown: _Shown) -> tuple[Measures, _Measured, _Measured]:
    """What was measured in numbers; by whom; and what was not numbers."""
    given = Measures([], [], [], [], [])
    chosen: _Measured = measured
    labelled: _Measured = []
    end, follows = 0, False  # whether the measure before is counted too
    for n, (place, one) in enumerate(measured):
        _, values, kept, rows, of = one
        numbers = numbers_in(values)
        if numbers is None:
            chosen = chosen if labelled else measured[:n]
            labelled.append((place, one))
            follows = False
            continue
        if labelled:
            chosen.append((place, one))
        if of is None:
            rows = np.zeros(len(numbers), np.int64)  # no one will ask which documents they are
        elif rows is KEPT_BEFORE and not follows:
            rows = _rows_left(measured, n)
        follows = of is not None
        given.numbers.append(numbers)
        given.kept.append(kept)
        given.offsets.append(shown.offset(of))
        if rows is KEPT_BEFORE:
            given.sources.append(KEPT)
        elif isinstance(rows, np.ndarray):
            given.sources.append(end)
            given.rows.append(rows)
            end += len(rows)
        else:
            given.sources.append(ALL)
    return given, chosen, labelled


def _rows_left(measured: _Measured, number: int) -> Longs:
    """The rows kept by the measures before this one, not all of which are counted."""
    first = next(n for n in range(number, -1, -1) if measured[n][1].rows is not KEPT_BEFORE)
    rows = measured[first][1].rows
    left = rows if isinstance(rows, np.ndarray) else np.arange(len(measured[first][1].values))
    for _, one in measured[first:number]:
        left = left if one.kept is None else left[one.kept]
    return left


def _part(rules: msgspec.Raw, counted: Counted) -> Part:
    """What was counted, as a file has it."""
    return Part(
        *(rules, counted.sums.tobytes(), counted.extremes.tobytes(), counted.ends.tobytes()),
        *(counted.slots.tobytes(), counted.counts.tobytes()),
        *(counted.windows.tobytes(), counted.values.tobytes(), counted.near.tobytes()),
        sampled=counted.reasons.tobytes(),
        sample_documents=counted.sampled.tobytes(),
    )


def _part_rule(place: Place, about: About, *, is_shown: bool = False) -> PartRule:
    return PartRule(
        *(place.name, place.number, about.position, about.name, about.measure, about.low, about.high),
        *(about.condition, about.decides, about.amount, is_shown),
    )


def _values_of(lost: list[tuple[Place, Gone]], firsts: Longs, counted: Counted) -> bytes:
    """What was measured of dropped documents that are examples; NaN where that was nothing, or no number."""
    reasons = counted.reasons.tolist()
    known = {reason: _numbers_of(lost[reason][1].values) for reason in set(reasons)}
    places = (counted.gone - firsts[counted.reasons]).tolist()  # among the documents of a reason
    each = [known[reason] for reason in reasons]
    found = [np.nan if numbers is None else numbers[place] for numbers, place in zip(each, places, strict=True)]
    return (np.array(found, np.float64) + 0.0).tobytes()


def _numbers_of(values: Any) -> Doubles | Longs | None:
    return None if values is None else numbers_in(values)


def _labels(place: Place, one: Measured) -> tuple[PartRule, Labels]:
    """Documents by what they were called, where that is not a number."""
    labels = Labels()
    given = one.values.to_pylist() if hasattr(one.values, "to_pylist") else list(one.values)
    kept = [True] * len(given) if one.kept is None else one.kept.tolist()
    for label, is_kept in zip(given, kept, strict=True):
        count = labels.of(None if label is None else shown_text(str(label))[:MAX_VALUE_CHARS])
        count.kept += is_kept
        count.refused += not is_kept
    labels.bound()
    return _part_rule(place, one.about), labels
