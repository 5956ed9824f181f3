"""`StageContext`: how a stage reports what leaves the stream sideways, and where a writer may put files.

A worker gives each of its stages a context before every call and reads it afterwards. A stage called outside a run (in
a test, in a notebook) has a context of its own that counts and keeps nothing else, and files written then appear at
once.

`Observation` is how much of what stages measure the user wants recorded.
"""

import operator
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, Protocol, SupportsFloat, runtime_checkable

import msgspec

from gristmill.errors import ConfigError, StageError
from gristmill.metrics.snapshot import StageCounts
from gristmill.metrics.tally import tallied
from gristmill.secrets import without_secrets, without_url_secrets
from gristmill.stages.measured import About, Gone, Measured
from gristmill.tasks.batch import Batch, chosen, count_true, true_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from gristmill.tasks.batch import Mask, Payload
    from gristmill.tasks.task import Task


PAYLOADS_DIR = "payloads"  # below a directory of rejects or of quarantined items: those that are bytes, a file each
MAX_NAME_CHARS = 80  # of a metric
STAGING_DIR = ".gristmill/tmp"  # below the directory a sink writes to, so that publishing is a rename


class Rejected(msgspec.Struct, frozen=True):
    """Items a filter dropped: `values[i]` was measured for item i and did not satisfy `threshold`."""

    items: "Batch[Any]"
    reason: str
    values: tuple[object, ...] | None
    threshold: str | None


@dataclass(frozen=True)
class Quarantined:
    """One document, image or other item that could not be processed.

    `row` is its position in the stage's input; `line` its line in `source` where a reader knows it, counted from the
    start of the block that begins at byte `block_start`, or of the file if that is None. `document` is the item in
    words, or as much of it as there is; `payload` the item in bytes, which is kept as a file with this `extension`
    beside the record.
    """

    error: str
    kind: str
    document: str = ""
    document_id: str = ""
    source: str = ""
    line: int | None = None
    block_start: int | None = 0
    row: int | None = None
    traceback: str = ""
    num_documents: int = 1  # more when a batch could not be taken apart; 0 where it is unknown (see lost_bytes)
    lost_bytes: int = 0  # of a file, or a part of one, that cannot be read: how many documents it holds is unknown
    payload: "Payload | None" = field(default=None, repr=False, compare=False)
    extension: str = ""


Entry = dict[str, object]  # a line of a quarantine file
Completer = Callable[[Entry], bool]  # changes an entry in place and says whether it did


@runtime_checkable
class CompletesRecords(Protocol):
    """A stage that knows more about its records in quarantine once the whole run is done."""

    def completer(self, facts: Iterable[bytes]) -> Completer:
        """Return what completes a record, given all that the stage noted with `StageContext.note_fact` in the run.

        It is asked about the records of every stage, and after a crash about some that it has completed before: those
        it must leave alone.
        """


@runtime_checkable
class HearsOfCommits(Protocol):
    """A stage that has something to do in the driver once a partition is committed, such as cleaning up."""

    def after_commit(self, facts: "Sequence[bytes]") -> None:
        """Act on what the stage noted with `StageContext.note_fact` about a partition that is committed.

        After a crash it is told again of partitions it already knows: acting twice must do no harm.
        """


class StageContext(msgspec.Struct, eq=False):
    """Side outputs of one stage during one call."""

    session: str = ""  # names the temporary directory of this execution; "" outside a run
    attempt: str = ""
    keep_rejects: bool = False
    durable: bool = False  # files to disk before they are handed over
    memory_limit: int = 0  # bytes that all processes of the run together may take; 0 if no limit was set
    dropped: dict[str, int] = {}  # reason -> documents
    dropped_of: dict[str, dict[str, int]] = {}  # task id -> the same, where a call has several
    rejects: list[Rejected] = []
    quarantined: list[Quarantined] = []
    facts: list[bytes] = []  # see note_fact
    learnt: dict[str, float] = {}  # what workers that start later should know
    # What the stage's author counts, by the task it is counted for; "" if none was named. Most calls have nothing.
    metrics: dict[str, StageCounts] | None = None
    observes: bool = False  # whether the run records what was measured, and which documents were dropped
    dropped_bytes: dict[str, int] = {}  # reason -> about how many bytes of documents
    measured: list[Measured] | None = None
    gone: list[Gone] | None = None

    @property
    def is_clean(self) -> bool:
        """Whether the stage reported nothing."""
        return not (self.dropped or self.quarantined or self.facts or self.learnt or self.rejects)

    def another(self, attempt: str) -> "StageContext":
        """An empty context of the same run."""
        made = StageContext(self.session, attempt, self.keep_rejects, self.durable, self.memory_limit)
        made.observes = self.observes
        return made

    @property
    def has_observed(self) -> bool:
        """Whether the stage measured documents, or dropped some that may become examples."""
        return self.measured is not None or self.gone is not None

    def divided(self, tasks: "Sequence[tuple[str, str, int]]") -> "list[StageContext]":
        """What was reported in a call, divided among its tasks, given each one's id, attempt and missing items.

        An item left the task it was dropped from, if the stage says which that is and the task lacks that many. If the
        stage does not say, or joined tasks before it dropped items, they left the tasks that lack some, in order: so
        each task accounts for its own items. Whatever belongs to none of the tasks goes to the first.
        """
        shares = [self.another(attempt) for _, attempt, _ in tasks]
        if self.is_clean and self.metrics is None and not self.has_observed:
            return shares
        place = {task_id: number for number, (task_id, _, _) in enumerate(tasks)}
        for rejected in self.rejects:
            shares[place.get(rejected.items.task_id, 0)].rejects.append(rejected)
        for of, counts in (self.metrics or {}).items():
            shares[place.get(of, 0)]._metrics_of(of).add(counts)
        for measured in self.measured or ():
            shares[place.get(measured.task_id, 0)].note_measured(measured)
        for gone in self.gone or ():
            shares[place.get(gone.task_id, 0)]._note_gone(gone)
        shares[0].facts, shares[0].learnt = self.facts, self.learnt
        self._divide_items(shares, place, [missing for _, _, missing in tasks])
        self.measured = self.gone = None  # which is theirs now
        return shares

    def _divide_items(self, shares: "list[StageContext]", place: dict[str, int], lacking: list[int]) -> None:
        left = dict(self.dropped)

        def take(number: int, reason: str, most: int) -> None:
            taken = min(most, left[reason], lacking[number])
            if taken > 0:
                _add(shares[number].dropped, reason, taken)
                num_bytes = self.dropped_bytes.get(reason, 0) * taken // self.dropped[reason]
                _add(shares[number].dropped_bytes, reason, num_bytes)
                lacking[number] -= taken
                left[reason] -= taken

        for task_id, number in place.items():
            for reason, count in self.dropped_of.get(task_id, {}).items():
                take(number, reason, count)
        for record in self.quarantined:
            number = next((n for n, missing in enumerate(lacking) if missing >= max(1, record.num_documents)), 0)
            shares[number].quarantined.append(record)
            lacking[number] -= record.num_documents
        for reason, count in self.dropped.items():
            for number in range(len(shares)):
                take(number, reason, count)
        for reason, count in left.items():
            if count:  # more than the tasks lack
                _add(shares[0].dropped, reason, count)

    def take_over(self, other: "StageContext") -> None:
        """Add what another context of the same stage has recorded."""
        for reason, count in other.dropped.items():
            _add(self.dropped, reason, count)
        for reason, num_bytes in other.dropped_bytes.items():
            _add(self.dropped_bytes, reason, num_bytes)
        self.dropped_of.update(other.dropped_of)
        for measured in other.measured or ():
            self.note_measured(measured)
        for gone in other.gone or ():
            self._note_gone(gone)
        self.rejects += other.rejects
        self.quarantined += other.quarantined
        self.facts += other.facts
        for name, value in other.learnt.items():
            self.learn(name, value)
        for task_id, counts in (other.metrics or {}).items():
            self._metrics_of(task_id).add(counts)

    def drop(
        self,
        batch: "Batch[Any]",
        mask: "Mask",
        *,
        reason: str,
        values: "Sequence[object] | pa.Array | pa.ChunkedArray | None" = None,
        threshold: str | None = None,
        gone: Gone | None = None,
    ) -> None:
        """Record that the items of `batch` where `mask` is true leave the stream for `reason`.

        `mask` and `values` have an entry for each item: lists, arrays of numpy or of Arrow. `gone` is for a stage that
        can show its documents better than the batch can.
        """
        if not isinstance(batch, Batch):
            raise StageError(
                f"context.drop: expected a Batch, which can be divided; got {type(batch).__name__}. Make it a subclass "
                "of gristmill.tasks.Batch"
            )
        given: object = reason  # by a user's code
        if not isinstance(given, str) or not given:
            raise StageError(f"context.drop: expected a reason, which is a text; got {given!r:.200}")
        if len(mask) != batch.num_items:
            raise StageError(f"context.drop: expected a mask of {batch.num_items} values; got {len(mask)}")
        if values is not None and len(values) != batch.num_items:
            raise StageError(f"context.drop: expected values for {batch.num_items} items; got {len(values)}")
        count = count_true(mask)
        if not count:
            return
        for counts in (self.dropped, self.dropped_of.setdefault(batch.task_id, {})):
            _add(counts, reason, count)
        _add(self.dropped_bytes, reason, batch.bytes_of(mask, count))
        if self.observes:
            self._note_gone(
                gone or Gone(reason, true_rows(mask), None if values is None else chosen(values, mask), batch)
            )
        if self.keep_rejects:
            measured = None if values is None else tuple(chosen(values, mask))
            rejected = batch.filter(mask)
            rejected.task_id = batch.task_id
            rejected.inherit(batch)
            self.rejects.append(Rejected(rejected, reason, measured, threshold))

    def drop_rows(self, batch: "Batch[Any]", count: int, gone: Gone, *, num_bytes: int) -> None:
        """Do what `drop` does, where no rejects are kept, for a stage that knows which rows they are and their size.

        Making a mask of them, and counting it, would take as long as many a rule.
        """
        for counts in (self.dropped, self.dropped_of.setdefault(batch.task_id, {})):
            _add(counts, gone.reason, count)
        _add(self.dropped_bytes, gone.reason, num_bytes)
        if self.observes:
            self._note_gone(gone)

    def measure(
        self,
        name: str,
        values: "Sequence[float] | pa.Array | pa.ChunkedArray | NDArray[np.number]",
        kept: "Mask | NDArray[np.bool_] | None" = None,
        bounds: tuple[float | None, float | None] = (None, None),
        *,
        of: "Batch[Any] | None" = None,
        measure: str = "",
        amount: str | None = None,
    ) -> None:
        """Say what was measured on every item, and which items were kept by it, for those who look at the run.

        For each measure the run keeps how kept and refused values are distributed; given the batch they are `of`, also
        the items nearest to each of the `bounds`, the least and the greatest value that is kept. `name` is the reason
        refused items are dropped for. A measure whose sums are an amount says which: "tokens". Nothing is dropped by
        this; filters that `Score`, `Filter` and `ScoreFilter` run have said it already.
        """
        checked = _checked(name, "measure")
        if of is not None and len(values) != of.num_items:
            raise StageError(f"context.measure: expected values for {of.num_items} items; got {len(values)}")
        if kept is not None and len(kept) != len(values):
            raise StageError(f"context.measure: expected kept to have {len(values)} entries; got {len(kept)}")
        if not self.observes:
            return
        import numpy as np  # a stage that measures has loaded it

        mask = None if kept is None else np.zeros(len(kept), np.bool_)
        if kept is not None and mask is not None:
            mask[true_rows(kept)] = True
        low, high = bounds
        about = About(checked, measure or checked, low, high, None, kept is not None, amount, len(self.measured or ()))
        self.note_measured(Measured(about, values, mask, None, of))

    def measure_labels(
        self,
        name: str,
        labels: "Sequence[object]",
        kept: "Sequence[bool]",
        *,
        measure: str = "",
        condition: str | None = None,
    ) -> None:
        """Say what label every item got, and which items were kept by it: for labels what `measure` is for numbers.

        For each label the run keeps how many items with it were kept and refused; None is the label of those that have
        none. `name` is the reason refused items are dropped for, `condition` what a kept one meets, in words.
        """
        checked = _checked(name, "measure_labels")
        if len(kept) != len(labels):
            raise StageError(f"context.measure_labels: expected kept to have {len(labels)} entries; got {len(kept)}")
        if self.observes:
            import numpy as np  # a stage that measures has loaded it

            words = [None if label is None else str(label) for label in labels]
            about = About(checked, measure or checked, condition=condition, position=len(self.measured or ()))
            self.note_measured(Measured(about, words, np.array(kept, np.bool_), None, None))

    def note_measured(self, measured: Measured) -> None:
        """Do what `measure` does, for a stage that has everything at hand; only if `observes` is set."""
        if self.measured is None:
            self.measured = []
        self.measured.append(measured)

    def _note_gone(self, gone: Gone) -> None:
        """Note which documents were dropped, as part of `drop`."""
        if self.gone is None:
            self.gone = []
        self.gone.append(gone)

    def quarantine(self, record: Quarantined) -> None:
        """Record that an item could not be processed and leaves the stream."""
        if record.payload is not None:
            memoryview(record.payload)  # raises TypeError here, where the mistake is, if it is not bytes
        self.quarantined.append(
            replace(
                record,
                error=without_secrets(record.error),
                traceback=without_secrets(record.traceback),
                source=without_url_secrets(record.source),
            )
        )

    def note_fact(self, fact: object) -> None:
        """Note something about what was processed that the stage itself will need when the run has ended.

        It is JSON, committed with its source partition and opened by nothing else; see `CompletesRecords`. Paths go
        through `without_url_secrets` first. Keep facts small and few: the ledger may have millions of lines.
        """
        self.facts.append(msgspec.json.encode(fact))

    def count(self, name: str, number: int = 1, *, of: "Task[Any] | None" = None) -> None:
        """Count something of the stage's own: "cache_hits", "tokens". It is shown wherever the run's books are.

        Like a document it counts once, however often its task is tried, and in a run that is continued too. A stage
        with its own `process_batch` may say `of` which task; else it counts for the first of them. What is
        counted outside of a call (in `setup`, say) belongs to no task, and is counted nowhere.
        """
        try:
            counted = {_checked(name, "count"): operator.index(number)}
        except TypeError:
            raise StageError(
                f"context.count: expected a whole number for {name!r}; got {number!r}. context.observe takes others"
            ) from None
        self._metrics_of("" if of is None else of.task_id).measure(counted, {})

    def observe(
        self, name: str, value: "SupportsFloat | Iterable[SupportsFloat]", *, of: "Task[Any] | None" = None
    ) -> None:
        """Note a value whose distribution is of interest, "fetch_s", or all values in a list or an array.

        Of each name a tally is kept, not the values: least and greatest value and all quantiles, at most 3.1 % too
        low. It counts once, as with `count`.
        """
        try:
            observed = {_checked(name, "observe"): tallied(value)}
        except (TypeError, ValueError, OverflowError):
            raise StageError(
                f"context.observe: expected a number, or an array of numbers, for {name!r}; got {value!r:.200}"
            ) from None
        self._metrics_of("" if of is None else of.task_id).measure({}, observed)

    def _metrics_of(self, task_id: str) -> StageCounts:
        if self.metrics is None:
            self.metrics = {}
        return self.metrics.setdefault(task_id, StageCounts())

    @property
    def own_counts(self) -> StageCounts:
        """What has been counted and observed so far, of all tasks: for tests of a stage."""
        total = StageCounts()
        for counts in (self.metrics or {}).values():
            total.add(counts)
        return total

    def learn(self, name: str, value: float) -> None:
        """Remember what a worker has found out at some cost, for those that start later: the smallest value counts.

        They find it in `worker_metadata.learnt` of `setup`. The size of a batch that fits into memory is an example.
        """
        self.learnt[name] = min(value, self.learnt.get(name, value))

    def staging_path(self, directory: str, name: str) -> str | None:
        """Where to write `directory/name` for now, or None outside a run: write it in place, atomically."""
        if not self.session:
            return None
        return f"{directory.rstrip('/')}/{STAGING_DIR}/{self.session}/{PurePosixPath(name).name}.{self.attempt}"


def _add(counts: dict[str, int], reason: str, number: int) -> None:
    counts[reason] = counts.get(reason, 0) + number


def _checked(name: object, method: str) -> str:
    if isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS:
        return name
    raise StageError(f"context.{method}: expected a name of 1 to {MAX_NAME_CHARS} characters; got {name!r:.200}")


# The context of the call this thread, or this coroutine, is in; none outside a run. Calls of one stage may overlap, so
# it cannot be kept with the stage.
CURRENT: ContextVar[StageContext | None] = ContextVar("gristmill_stage_context", default=None)


Level = Literal["full", "counts", "off"]
LEVELS: tuple[Level, ...] = ("full", "counts", "off")


class Observation(msgspec.Struct, frozen=True):
    """What a run records about its documents, beside the books.

    `level`   "full": how every measure is distributed, and examples of documents with the beginning of their texts;
              "counts": the same without examples, so that no text of any document is kept; "off": nothing
    `slices`  columns by whose values documents are counted, with what became of them. By default `source` and
              `language`, where a stage or the format has made columns of them; columns named here are also looked for
              in JSON lines
    """

    level: Level = "full"
    slices: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ConfigError(f"observe: expected one of {', '.join(LEVELS)}; got {self.level!r}")
        given: object = self.slices  # by a user who may have written one name in place of a list
        if given is not None:
            if not isinstance(given, list | tuple) or not all(isinstance(name, str) and name for name in given):
                raise ConfigError(f"slices: expected a list of names of columns; got {given!r}")
            msgspec.structs.force_setattr(self, "slices", tuple(given))

    @classmethod
    def of(cls, given: "Level | Observation") -> "Observation":
        """Return what was asked for, by a level alone or in full."""
        return given if isinstance(given, Observation) else cls(given)

    @property
    def is_on(self) -> bool:
        return self.level != "off"


NOTHING = Observation("off")
