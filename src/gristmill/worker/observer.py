"""`Observer`: what a worker records about the documents of a task, as a file that is published with its partition.

What stages measured and dropped in one call is counted in one go, when the call is over and its results count: nothing
is recorded of a trial, or of an attempt that failed. The file of a task is a side file, like rejects: it is named in
the ledger line of the partition or has not happened.

Letters: R rules.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from gristmill.metrics.observation_files import SUFFIX, Part, PartExamples, PartTally, encode_parts, packed
from gristmill.metrics.observations import SAMPLED, Observations
from gristmill.stages.context import Observation, StageContext
from gristmill.stages.measured import About, Document, Gone, Measured, Shown, of_line, shown_source, shown_text
from gristmill.storage.atomic_write import explained, force_file, stage_file
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import Batch, StagedFile
from gristmill.worker.call_books import shown_item
from gristmill.worker.recorded import Recorded
from gristmill.worker.slicing import Slicer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gristmill.worker.measuring import Counted, Values

MOST_PARTS = 8  # of a file, before they are added up
FEW_VALUES = 20_000  # that a worker counts without compiled code


class ShownItems:
    """The items of a batch of any kind, known by their numbers in the task."""

    def __init__(self, batch: "Batch[Any]") -> None:
        self.batch = batch

    def keys(self, *, compiled: bool) -> "NDArray[np.uint64]":
        import numpy as np
        import xxhash

        from gristmill.kernels.row_hash import mix

        del compiled
        seed = xxhash.xxh3_64_intdigest(self.batch.task_id.encode("utf-8", "surrogatepass"))
        return mix(np.arange(self.batch.num_items, dtype=np.uint64) + np.uint64(seed))

    def documents(self, rows: Sequence[int]) -> list[Document]:
        keys, source = self.keys(compiled=False), shown_source(self.batch)
        return [Document(int(keys[row]), *self._shown(row, source)) for row in rows]

    def _shown(self, row: int, source: str) -> tuple[str, str, str, str]:
        item = shown_item(self.batch, row)
        text = _text_of(item.text) or item.preview or item.text
        return shown_text(item.id), source, self.batch.task_id, shown_text(text)


def _text_of(line: str) -> str:
    """The text of a document that is shown as a JSON line."""
    return of_line(line.encode("utf-8", "backslashreplace"))[1] if line.startswith("{") else ""


class Place(NamedTuple):
    """A stage as tallies name it."""

    name: str
    number: int


Reported = tuple[Place, StageContext]


class Observer:
    """Records what the stages of one group report."""

    def __init__(self, observation: Observation, directory: str, options: StorageOptions | None) -> None:
        self._observation = observation
        self._directory = directory.rstrip("/")
        self._options = options
        self._recorded = Recorded()
        self._seen = 0  # values, up to FEW_VALUES
        self._counter: Any = None

    def part(self, reported: Sequence[Reported]) -> Part | None:
        """Return what was reported in one call, by all its stages."""
        measured = [(place, one) for place, context in reported for one in context.measured or ()]
        gone = [(place, one) for place, context in reported for one in context.gone or ()]
        if not measured and not gone:
            return None
        self._recorded.look()
        part = Part()
        roll = _Roll() if self._observation.level == "full" else None
        self._tally(part, measured, roll)
        if roll is not None:
            self._sample(part, gone, roll)
            roll.fill(part)
        if gone:
            slicer = Slicer(self._observation.slices)
            for place, one in gone:
                slicer.drop(one.of if isinstance(one.of, Batch) else one.of.batch, one.rows, place.name, one.reason)
            part.slices = slicer.slices()
        return part

    def written(self, batch: object, gone: Iterable[Gone] | None = None) -> Part | None:
        """Return what is recorded of documents that leave the pipeline at its end; `gone` did not get so far."""
        slicer = Slicer(self._observation.slices)
        if isinstance(batch, Batch):
            lost = {int(row) for one in gone or () for row in one.rows}
            slicer.write(batch, [row for row in range(batch.num_items) if row not in lost] if lost else None)
        slices = slicer.slices()
        return Part(slices=slices) if slices else None

    # Measures

    def _tally(self, part: Part, measured: list[tuple[Place, Measured]], roll: "_Roll | None") -> None:
        from gristmill.worker.measuring import numbers_in

        found = [(place, one, numbers_in(one.values)) for place, one in measured]
        known = [(place, one, numbers) for place, one, numbers in found if numbers is not None]
        if not known:
            return
        compiled = self._is_worth_compiling(sum(len(numbers) for _, _, numbers in known))
        shown = _Shown(one.of for _, one, _ in known)
        given = [(one, numbers, shown.offset(one.of)) for _, one, numbers in known]
        values = _gathered(given, bounded=roll is not None)
        keys = shown.keys(compiled=compiled, wanted=roll is not None)
        rules = [(place.number, one.about) for place, one, _ in known]
        counted = self._counted(values, keys, None if roll is None else rules, compiled=compiled)
        near = [] if roll is None else roll.examples(shown, values, counted.nearest)
        for rule, (place, one, _) in enumerate(known):
            about = one.about
            has_windows = one.of is not None and (about.low is not None or about.high is not None)
            part.tallies.append(
                PartTally(
                    *(place.name, place.number, about.position, about.name, about.measure, about.low, about.high),
                    *(about.condition, about.decides, about.amount),
                    *(counted.sides[2 * rule], counted.sides[2 * rule + 1]),
                    near[4 * rule : 4 * rule + 4] if has_windows else [],
                )
            )

    def _is_worth_compiling(self, number: int) -> bool:
        if self._seen <= FEW_VALUES:
            self._seen += number
        return self._seen > FEW_VALUES

    def _counted(
        self, values: "Values", keys: "NDArray[np.uint64]", rules: list[tuple[int, About]] | None, *, compiled: bool
    ) -> "Counted":
        from gristmill.worker.measuring import Counter, count_plainly

        if not compiled:
            return count_plainly(values, keys)
        if self._counter is None:
            self._counter = Counter()
        counted: Counted = self._counter.count(values, keys, None if rules is None else self._recorded.windows(rules))
        return counted

    # Examples of what was dropped

    def _sample(self, part: Part, gone: list[tuple[Place, Gone]], roll: "_Roll") -> None:
        import numpy as np

        from gristmill.worker.measuring import numbers_in

        for place, one in gone:
            shown = roll.shown(one.of)
            rows = np.asarray(one.rows, np.int64)
            keys, firsts = np.unique(shown.keys(compiled=self._seen > FEW_VALUES)[rows], return_index=True)
            most = self._recorded.greatest_key(place.number, one.reason)
            chosen = firsts[:SAMPLED] if most is None else firsts[:SAMPLED][keys[:SAMPLED] <= most]
            if not len(chosen):
                continue
            numbers = None if one.values is None else numbers_in(one.values)
            values = [None if numbers is None else _number(numbers[at]) for at in chosen.tolist()]
            examples = PartExamples(values, roll.numbers(shown, rows[chosen].tolist()))
            part.samples.append((place.name, place.number, one.reason, examples))

    # The file

    def write(self, parts: list[Part], name: str, context: StageContext) -> StagedFile:
        """Write what was recorded of a task. Like quarantine it is for its user only, unless the run is shared."""
        final = f"{self._directory}/{name}{SUFFIX}"
        with explained(final):
            temporary = context.staging_path(self._directory, f"{name}{SUFFIX}") or final
            written = stage_file(temporary, [encode_parts(parts)], storage_options=self._options)
            if context.durable:
                force_file(written.path)
        self._recorded.expect(final, parts)
        # Of no documents: whoever looks for records of documents among side files passes it by.
        return StagedFile(written.path, final, written.num_bytes, 0, written.checksum)


def fewer(parts: list[Part]) -> list[Part]:
    """The same in one part, where there are many."""
    if len(parts) <= MOST_PARTS:
        return parts
    total = Observations()
    for part in parts:
        total.add(part.unpacked())
    return [packed(total)]


class _Shown:
    """The documents of several measures, numbered through."""

    def __init__(self, given: "Iterable[Shown | Batch[Any] | None]") -> None:
        self._all: dict[int, tuple[int, Shown]] = {}
        self._number = 0
        for of in given:
            if of is not None and id(of) not in self._all:
                shown = ShownItems(of) if isinstance(of, Batch) else of
                self._all[id(of)] = (self._number, shown)
                self._number += shown.batch.num_items

    def offset(self, of: object) -> int:
        return 0 if of is None else self._all[id(of)][0]

    def keys(self, *, compiled: bool, wanted: bool) -> "NDArray[np.uint64]":
        import numpy as np

        if not wanted or not self._all:
            return np.zeros(max(1, self._number), np.uint64)
        each = [shown.keys(compiled=compiled) for _, shown in self._all.values()]
        return each[0] if len(each) == 1 else np.concatenate(each)

    @property
    def only(self) -> "Shown | None":
        """The one there is, if there is one."""
        return next(iter(self._all.values()))[1] if len(self._all) == 1 else None

    def at(self, row: int) -> tuple["Shown", int]:
        """Whose document has a number, and which of theirs it is."""
        first, shown = next(found for found in reversed(self._all.values()) if found[0] <= row)
        return shown, row - first


class _Roll:
    """The documents of a part that are examples, each once."""

    def __init__(self) -> None:
        self._shown: dict[int, Shown] = {}  # also keeps them, so that an id is nobody else's
        self._numbers: dict[tuple[int, int], int] = {}

    def shown(self, of: "Shown | Batch[Any]") -> "Shown":
        if id(of) not in self._shown:
            self._shown[id(of)] = ShownItems(of) if isinstance(of, Batch) else of
        return self._shown[id(of)]

    def numbers(self, shown: "Shown", rows: Iterable[int]) -> list[int]:
        """Return the numbers of documents in the part."""
        known = id(shown)
        self._shown[known] = shown
        numbers = self._numbers
        return [numbers.setdefault((known, row), len(numbers)) for row in rows]

    def examples(self, shown: _Shown, values: "Values", nearest: "NDArray[np.int64]") -> list[PartExamples]:
        """Return the values of all windows, which are given by their numbers, as examples."""
        there = nearest >= 0
        places = nearest[there]
        rows, numbers = values.rows[places].tolist(), values.numbers[places].tolist()
        if shown.only is not None:
            documents = self.numbers(shown.only, rows)
        else:
            documents = [self.numbers(whose, [own])[0] for whose, own in map(shown.at, rows)]
        ends = there.sum(axis=1).cumsum().tolist()
        return [PartExamples(numbers[first:end], documents[first:end]) for first, end in pairwise([0, *ends])]

    def fill(self, part: Part) -> None:
        """Give a part the documents that its examples are numbers of."""
        by_batch: dict[int, list[tuple[int, int]]] = {}
        for (shown, row), number in self._numbers.items():
            by_batch.setdefault(shown, []).append((row, number))
        found: list[tuple[int, str, str, str, str]] = [(0, "", "", "", "")] * len(self._numbers)
        for known, pairs in by_batch.items():
            documents = self._shown[known].documents([row for row, _ in pairs])
            for (_, number), document in zip(pairs, documents, strict=True):
                found[number] = (document.key, document.id, document.source, document.place, document.text)
        part.documents = found


def _gathered(known: list[tuple[Measured, Any, int]], *, bounded: bool) -> "Values":
    """Lay out the values of all rules one behind the other."""
    import numpy as np

    from gristmill.worker.measuring import Values

    firsts = np.cumsum([0, *(len(numbers) for _, numbers, _ in known)])
    total = int(firsts[-1])
    values, kept, rows = np.empty(total), np.ones(total, np.bool_), np.empty(total, np.int64)
    bounds = np.full(2 * len(known), np.nan)
    for rule, (one, numbers, offset) in enumerate(known):
        own = slice(firsts[rule], firsts[rule + 1])
        np.add(numbers, 0.0, out=values[own])  # of the two zeros one
        if one.kept is not None:
            kept[own] = one.kept
        np.add(np.arange(len(numbers)) if one.rows is None else one.rows, offset, out=rows[own])
        for place, bound in enumerate((one.about.low, one.about.high) if bounded and one.of is not None else ()):
            bounds[2 * rule + place] = np.nan if bound is None else bound
    return Values(values, kept, rows, firsts, bounds)


def _number(value: float) -> float | None:
    return None if value != value else float(value) + 0.0  # noqa: PLR0124  # not a number is not itself
