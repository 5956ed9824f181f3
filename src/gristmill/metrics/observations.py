"""What a run has recorded about its documents: how measures are distributed, examples, and slices.

Every source partition leaves files in `measures` of the run directory, published with its line of the ledger; so they
are there for what is committed and for nothing else. `load_observations` reads them and adds them up:

    from gristmill.metrics.observation_files import load_observations

    seen = load_observations("out/.gristmill")  # of a run that is over or still going; on a store: see there
    for tally in seen.tallies:  # in the order of the pipeline
        print(tally.stage, tally.name, tally.condition, tally.kept.num_values, tally.refused.num_values)
        print(tally.distribution.quantile(0.5), tally.kept.mean, tally.refused.greatest)
        print(tally.num_within(low=10.0))  # documents a threshold of 10 would keep, within a slot
        for window in tally.nearest:  # the examples next to each threshold, the nearest first
            print(window.bound, window.threshold, window.kept[0].text, window.refused[0].id)
    for sample in seen.samples:  # up to 16 documents for each reason
        print(sample.stage, sample.reason, [example.text for example in sample.examples])
    for value, outcomes in seen.slices["language"].by_size():
        print(value, outcomes.written, outcomes.dropped)  # amounts: documents and bytes

All of it adds up in any order (`Observations.add`): counts in fixed slots (`tally.py`), sums in fixed point, the least
examples by a key of their own, slices by the least hashes. So a report has the same bytes however many workers there
were and whatever was killed on the way. Nothing here knows about files.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

import msgspec
import xxhash

from gristmill.metrics.tally import BEYOND, NOT_A_NUMBER, Distribution, Slots, edge_of

NEAREST = 8  # examples next to a threshold, on each of its sides
SAMPLED = 16  # examples of each reason
EXCERPT_CHARS = 400  # of a document's text in an example
MAX_SLICES = 1_000  # values of a column; what has others is "other"
FRACTION_BITS = 32  # of sums: they are whole numbers of 2 to the power of -32
OTHER = "other"  # what the slices that are not kept are called where names are shown

BoundName = Literal["low", "high"]


class Example(msgspec.Struct, frozen=True, array_like=True):
    """One document. `place` is the task it was in; `key` is made of its text, and decides between equals."""

    value: float | None
    key: int
    id: str = ""
    source: str = ""
    place: str = ""
    text: str = ""  # at most `EXCERPT_CHARS` characters

    @property
    def order(self) -> tuple[int, str, str, str, str, float]:
        """The key that decides which of two examples comes first, whichever worker reported it, and when."""
        value = -math.inf if self.value is None else self.value
        return self.key, self.id, self.source, self.place, self.text, value


class Side(msgspec.Struct, array_like=True):
    """The values of the documents a measure kept, or of those it refused."""

    slots: Slots = msgspec.field(default_factory=dict)
    fixed_sum: int = 0  # in units of 2 to the power of -32; what is in the slots beyond range is left out
    least: float | None = None
    greatest: float | None = None

    @property
    def distribution(self) -> Distribution:
        return Distribution(self.slots)

    @property
    def num_documents(self) -> int:
        return sum(self.slots.values())

    @property
    def num_values(self) -> int:
        """Documents whose measure is a number."""
        return self.distribution.num_values

    @property
    def sum(self) -> float:
        return float(self.fixed_sum / (1 << FRACTION_BITS))

    @property
    def mean(self) -> float:
        """The mean of the values in range; not a number if there are none."""
        outside = self.slots.get(BEYOND, 0) + self.slots.get(-BEYOND, 0)
        number = self.num_values - outside
        return self.sum / number if number else math.nan

    def add(self, other: "Side") -> None:
        """Add the values of another side."""
        for slot, count in other.slots.items():
            self.slots[slot] = self.slots.get(slot, 0) + count
        self.fixed_sum += other.fixed_sum
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
        if other.greatest is not None:
            self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)


class Nearest(msgspec.Struct, array_like=True):
    """The documents next to one threshold, the nearest first."""

    bound: BoundName
    threshold: float
    kept: list[Example] = msgspec.field(default_factory=list)
    refused: list[Example] = msgspec.field(default_factory=list)

    def add(self, other: "Nearest") -> None:
        """Take over what is nearer."""
        self.kept = self._nearest(self.kept, other.kept)
        self.refused = self._nearest(self.refused, other.refused)

    def _nearest(self, one: list[Example], other: list[Example]) -> list[Example]:
        def order(example: Example) -> tuple[float, int, str, str, str, str, float]:
            return (abs((example.value or 0.0) - self.threshold), *example.order)

        return _distinct(sorted([*one, *other], key=order), NEAREST)


def _distinct(examples: Iterable[Example], most: int) -> list[Example]:
    """The first examples, each text once: a page that was crawled a thousand times is one example."""
    found: dict[int, Example] = {}
    for example in examples:
        if example.key not in found:
            found[example.key] = example
            if len(found) == most:
                break
    return list(found.values())


class MeasureTally(msgspec.Struct):
    """One measure of one stage, the bounds that decided, and what became of the documents that were measured."""

    stage: str
    stage_number: int  # in the run, from 0
    position: int  # among the measures of the stage, in the order they are taken
    name: str  # of the filter or rule, which is the reason of what it drops; of the score where nothing is dropped
    measure: str  # what the value is: "words"
    low: float | None = None
    high: float | None = None
    condition: str | None = None  # that a kept document meets, in words; None if unknown
    decides: bool = True  # whether documents are dropped by it
    amount: str | None = None  # "tokens" if sums of the measure are an amount of the run
    kept: Side = msgspec.field(default_factory=Side)
    refused: Side = msgspec.field(default_factory=Side)
    nearest: list[Nearest] = msgspec.field(default_factory=list)
    labels: "Labels | None" = None  # in place of sides, where what was found is not a number but a word

    @property
    def key(self) -> tuple[object, ...]:
        """What two parts of one tally have in common; sorts tallies in the order of the pipeline."""
        bounds = [(bound is not None, bound or 0.0) for bound in (self.low, self.high)]
        return (
            *(self.stage_number, self.position, self.stage, self.name, self.measure, *bounds),
            *(self.condition or "", self.decides, self.amount or ""),
        )

    @property
    def num_kept(self) -> int:
        return self.kept.num_documents if self.labels is None else self.labels.total.kept

    @property
    def num_refused(self) -> int:
        return self.refused.num_documents if self.labels is None else self.labels.total.refused

    @property
    def slots(self) -> Slots:
        """Those of all documents that were measured."""
        both = dict(self.kept.slots)
        for slot, count in self.refused.slots.items():
            both[slot] = both.get(slot, 0) + count
        return both

    @property
    def distribution(self) -> Distribution:
        """The values of all documents that were measured."""
        return Distribution(self.slots)

    def num_within(self, low: float | None = None, high: float | None = None) -> int:
        """How many of the measured documents have a value within these bounds, both included, within a slot."""
        least, most = (-math.inf if low is None else low), (math.inf if high is None else high)
        numbers = ((edge_of(slot), count) for slot, count in self.slots.items() if slot != NOT_A_NUMBER)
        return sum(count for edge, count in numbers if least <= edge <= most)

    def add(self, other: "MeasureTally") -> None:
        """Add another part of the same tally."""
        self.kept.add(other.kept)
        self.refused.add(other.refused)
        if other.labels is not None:
            self.labels = self.labels or Labels()
            self.labels.add(other.labels)
        windows = {window.bound: window for window in self.nearest}
        for window in other.nearest:
            windows.setdefault(window.bound, Nearest(window.bound, window.threshold)).add(window)
        self.nearest = [windows[bound] for bound in ("low", "high") if bound in windows]


class Sample(msgspec.Struct):
    """Up to `SAMPLED` documents that a stage dropped for one reason, taken evenly from all of them."""

    stage: str
    stage_number: int
    reason: str
    examples: list[Example] = msgspec.field(default_factory=list)

    @property
    def key(self) -> tuple[int, str, str]:
        return self.stage_number, self.stage, self.reason

    def add(self, other: "Sample") -> None:
        """Take over the examples with lesser keys."""
        everything = sorted([*self.examples, *other.examples], key=lambda example: example.order)
        self.examples = _distinct(everything, SAMPLED)


class Amount(msgspec.Struct, array_like=True):
    """Documents, and about how many bytes they take."""

    documents: int = 0
    num_bytes: int = 0

    def add(self, other: "Amount") -> None:
        self.documents += other.documents
        self.num_bytes += other.num_bytes


class Outcomes(msgspec.Struct, array_like=True):
    """What became of the documents with one value in a column."""

    written: Amount = msgspec.field(default_factory=Amount)
    dropped: dict[str, dict[str, Amount]] = msgspec.field(default_factory=dict)  # by stage, then by reason

    @property
    def total(self) -> Amount:
        total = Amount(self.written.documents, self.written.num_bytes)
        for amount in (amount for reasons in self.dropped.values() for amount in reasons.values()):
            total.add(amount)
        return total

    def drop(self, stage: str, reason: str, amount: Amount) -> None:
        """Count documents that were dropped."""
        self.dropped.setdefault(stage, {}).setdefault(reason, Amount()).add(amount)

    def add(self, other: "Outcomes") -> None:
        self.written.add(other.written)
        for stage, reasons in other.dropped.items():
            for reason, amount in reasons.items():
                self.drop(stage, reason, amount)


class LabelCount(msgspec.Struct, array_like=True):
    """How many documents with one label were kept and refused."""

    kept: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        return self.kept + self.refused

    def add(self, other: "LabelCount") -> None:
        self.kept += other.kept
        self.refused += other.refused


class Labels(msgspec.Struct, array_like=True):
    """Documents by what a classifier called them, as `Slices` has them by the values of a column."""

    values: dict[str, LabelCount] = msgspec.field(default_factory=dict)
    missing: LabelCount = msgspec.field(default_factory=LabelCount)
    others: LabelCount = msgspec.field(default_factory=LabelCount)

    def of(self, label: str | None) -> LabelCount:
        """The count of a label, to be added to; call `bound` when all are in."""
        return self.missing if label is None else self.values.setdefault(label, LabelCount())

    def bound(self) -> None:
        """Keep no more labels than there may be."""
        for label in _too_many(self.values):
            self.others.add(self.values.pop(label))

    def add(self, other: "Labels") -> None:
        for label, count in other.values.items():
            self.of(label).add(count)
        self.missing.add(other.missing)
        self.others.add(other.others)
        self.bound()

    @property
    def total(self) -> LabelCount:
        """Of all documents."""
        total = LabelCount()
        for _, count in self.by_size():
            total.add(count)
        return total

    def by_size(self) -> Iterator[tuple[str | None, LabelCount]]:
        """All labels, those of most documents first, then the others and those without a label, if there are any."""
        yield from sorted(self.values.items(), key=lambda item: (-item[1].total, item[0]))
        for name, count in ((OTHER, self.others), (None, self.missing)):
            if count.total:
                yield name, count


class Slices(msgspec.Struct, array_like=True):
    """Outcomes by the values of one column. None is the value of documents that have none.

    At most `MAX_SLICES` values are kept, those with the least hashes; `others` has the rest. Which are the largest is
    known only when everything has been seen, but a value of the least hashes is among them from the beginning, so its
    numbers are whole.
    """

    values: dict[str, Outcomes] = msgspec.field(default_factory=dict)
    missing: Outcomes = msgspec.field(default_factory=Outcomes)
    others: Outcomes = msgspec.field(default_factory=Outcomes)

    def of(self, value: str | None) -> Outcomes:
        """The outcomes of a value, to be added to; call `bound` when all values are in."""
        return self.missing if value is None else self.values.setdefault(value, Outcomes())

    def bound(self) -> None:
        """Keep no more values than there may be."""
        for value in _too_many(self.values):
            self.others.add(self.values.pop(value))

    def add(self, other: "Slices") -> None:
        for value, outcomes in other.values.items():
            self.of(value).add(outcomes)
        self.missing.add(other.missing)
        self.others.add(other.others)
        self.bound()

    def by_size(self) -> Iterator[tuple[str | None, Outcomes]]:
        """All values, those of most documents first, then the others and those without a value, if there are any."""
        yield from sorted(self.values.items(), key=lambda item: (-item[1].total.documents, item[0]))
        for name, outcomes in ((OTHER, self.others), (None, self.missing)):
            if outcomes.total.documents:
                yield name, outcomes


def _too_many(values: Collection[str]) -> list[str]:
    """Those of some values that are not kept."""
    return sorted(values, key=slice_order)[MAX_SLICES:] if len(values) > MAX_SLICES else []


def slice_order(value: str) -> tuple[int, str]:
    """The key by which values of a column are kept where there are too many."""
    return xxhash.xxh3_64_intdigest(value.encode("utf-8", "surrogatepass")), value


class Observations(msgspec.Struct):
    """Everything that was recorded, of one task or of a whole run."""

    tallies: list[MeasureTally] = msgspec.field(default_factory=list)
    samples: list[Sample] = msgspec.field(default_factory=list)
    slices: dict[str, Slices] = msgspec.field(default_factory=dict)  # by column

    def add(self, other: "Observations") -> None:
        """Add what another has recorded; in any order, the result is the same."""
        tallies = {tally.key: tally for tally in self.tallies}
        for tally in other.tallies:
            if tally.key not in tallies:
                tallies[tally.key] = msgspec.structs.replace(
                    tally, kept=Side(), refused=Side(), nearest=[], labels=None
                )
            tallies[tally.key].add(tally)
        samples = {sample.key: sample for sample in self.samples}
        for sample in other.samples:
            if sample.key not in samples:
                samples[sample.key] = msgspec.structs.replace(sample, examples=[])
            samples[sample.key].add(sample)
        for column, slices in other.slices.items():
            self.slices.setdefault(column, Slices()).add(slices)
        self.tallies = [tallies[key] for key in sorted(tallies)]
        self.samples = [samples[key] for key in sorted(samples)]

    @property
    def is_empty(self) -> bool:
        return not (self.tallies or self.samples or self.slices)

    def tally(self, stage: str, name: str) -> MeasureTally:
        """The tally of a rule of a stage; KeyError if there is none."""
        found = [tally for tally in self.tallies if (tally.stage, tally.name) == (stage, name)]
        if not found:
            raise KeyError(f"{stage}: expected a measure of it; got {name!r}")
        return found[0]

    def sample(self, stage: str, reason: str) -> list[Example]:
        """Examples of what a stage dropped for a reason; none if nothing was kept of them."""
        return next((s.examples for s in self.samples if (s.stage, s.reason) == (stage, reason)), [])

    def in_order(self) -> "Observations":
        """The same with every dict in the order of its keys: what is equal has the same bytes then."""
        fresh = Observations()
        fresh.add(self)
        for side in (side for tally in fresh.tallies for side in (tally.kept, tally.refused)):
            side.slots = dict(sorted(side.slots.items()))
        for labels in (tally.labels for tally in fresh.tallies if tally.labels is not None):
            labels.values = dict(sorted(labels.values.items()))
        fresh.slices = {column: _in_order(fresh.slices[column]) for column in sorted(fresh.slices)}
        return fresh


def _in_order(slices: Slices) -> Slices:
    values = {value: _stages_in_order(slices.values[value]) for value in sorted(slices.values)}
    return Slices(values, _stages_in_order(slices.missing), _stages_in_order(slices.others))


def _stages_in_order(outcomes: Outcomes) -> Outcomes:
    dropped = {stage: dict(sorted(reasons.items())) for stage, reasons in sorted(outcomes.dropped.items())}
    return Outcomes(outcomes.written, dropped)
