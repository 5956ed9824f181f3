"""What a run looks like at one moment. The terminal, `gristmill status`, the log and the report all read this."""

import re
from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import Any

import msgspec

from gristmill.metrics.node_sample import NodeSample
from gristmill.metrics.tally import Distribution, Slots

# `ErrorCounts`: what went wrong in a run, by stage and error, with one example of each.
#
# A run may quarantine millions of documents for a handful of reasons. Errors that differ in numbers, quoted text or
# addresses only ("line 17", "line 18") are one; of each, one example is kept with its place, traceback and document:
# the first by source and line, so it does not matter which worker reports when. The number of examples is bounded.

MAX_KINDS = 20  # of each stage; what comes after them is counted by its exception alone, and then together
MAX_MESSAGE_CHARS = 500
MAX_KIND_CHARS = 120
MAX_TRACEBACK_CHARS = 4_000
MAX_DOCUMENT_CHARS = 10_000
OTHERS = "other errors"

_VARYING = r"0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*|'[^']*'|\"[^\"]*\"|`[^`]*`"  # compiled when wanted: few runs have errors


class ErrorExample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One document that failed. `line` counts from 1 in `source`; `document` is it, or the beginning of it."""

    document_id: str = ""
    source: str = ""
    line: int | None = None
    row: int | None = None
    task: str = ""
    traceback: str = ""
    document: str = ""

    @property
    def place(self) -> str:
        """Where to look, for a person: id, file and line as far as they are known."""
        where = f"line {self.line} of {self.source}" if self.source and self.line is not None else self.source
        return " in ".join(part for part in (f"document {self.document_id}" if self.document_id else "", where) if part)

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """The key that decides which of two examples comes first, whichever worker reported it, and when."""
        line = -1 if self.line is None else self.line
        return self.source, line, -1 if self.row is None else self.row, self.task, self.document_id


class ErrorCount(msgspec.Struct):
    """One error of one stage: how many documents it cost, and how many parts of files could not be read."""

    stage: str
    kind: str  # the exception, or what a reader calls it
    message: str  # of the example
    count: int = 0
    lost_parts: int = 0
    lost_bytes: int = 0
    example: ErrorExample = msgspec.field(default_factory=ErrorExample)

    def to_json(self) -> dict[str, object]:
        """For the report of a run. The document stays where it is private: in quarantine, and in the result."""
        fields = msgspec.to_builtins(self)
        fields["example"].pop("document", None)
        return dict(fields)

    @property
    def error(self) -> str:
        """Exception and message in one line."""
        first_line = self.message.partition("\n")[0]
        return f"{self.kind}: {first_line}" if self.kind and first_line else self.kind or first_line


class ErrorCounts:
    """Counts errors. `add` what a worker reports, or what another has counted; ask for `commonest`."""

    def __init__(self, counted: Iterable[ErrorCount] = ()) -> None:
        self._by_stage: dict[str, dict[tuple[str, str], ErrorCount]] = {}
        for count in counted:
            self.add(count)

    def add(self, count: ErrorCount) -> None:
        """Add one error, or many of a kind."""
        kinds = self._by_stage.setdefault(count.stage, {})
        key = self._key(kinds, count)
        known = kinds.get(key)
        if known is None:
            kinds[key] = _cut(count, key)
            return
        known.count += count.count
        known.lost_parts += count.lost_parts
        known.lost_bytes += count.lost_bytes
        if count.example.order < known.example.order:
            newer = _cut(count, key)
            known.message, known.example = newer.message, newer.example

    def would_show(self, count: ErrorCount) -> bool:
        """Whether its example would be kept: if not, its long parts need not be known."""
        kinds = self._by_stage.get(count.stage, {})
        known = kinds.get(self._key(kinds, count))
        return known is None or count.example.order < known.example.order

    def merge(self, other: "ErrorCounts") -> None:
        """Add everything another has counted."""
        for count in other.all():
            self.add(count)

    def all(self) -> list[ErrorCount]:
        """Stages in the order they were met, the commonest error of each first."""
        return [
            count
            for kinds in self._by_stage.values()
            for count in sorted(kinds.values(), key=lambda c: (-c.count, -c.lost_parts, c.kind, c.message))
        ]

    def commonest(self, stage: str) -> list[ErrorCount]:
        """The errors of one stage, the commonest first."""
        return [count for count in self.all() if count.stage == stage]

    @staticmethod
    def _key(kinds: dict[tuple[str, str], ErrorCount], count: ErrorCount) -> tuple[str, str]:
        exact = count.kind, alike(count.message)
        if exact in kinds or len(kinds) < MAX_KINDS:
            return exact
        of_kind = count.kind, ""
        return of_kind if of_kind in kinds or len(kinds) < 2 * MAX_KINDS else (OTHERS, "")


def alike(message: str) -> str:
    """The message without what differs from one document to the next.

    >>> alike("line 17: expected 'text'; got 3.5")
    "line #: expected #; got #"
    """
    return re.sub(_VARYING, "#", message[:MAX_MESSAGE_CHARS])


def error_kind(kind: str, error: str) -> str:
    """Return what the terminal calls errors like this one: short, and the same for all of them.

    >>> error_kind("ValueError", "ValueError: line 17: expected 'text'")
    "ValueError: line …: expected …"
    """
    message = re.sub(_VARYING, "…", without_kind(error[:MAX_MESSAGE_CHARS], kind).partition("\n")[0])
    return (f"{kind}: {message}" if kind and message else kind or message)[:MAX_KIND_CHARS]


def of_record(
    stage: str, kind: str, error: str, example: ErrorExample, *, num_documents: int = 1, lost_bytes: int = 0
) -> ErrorCount:
    """Return what a quarantine record counts as. One without a document is a part of a file that cannot be read."""
    lost = num_documents == 0
    return ErrorCount(stage, kind, without_kind(error, kind), num_documents, int(lost), lost_bytes, example)


def without_kind(error: str, kind: str) -> str:
    """Python writes `json.decoder.JSONDecodeError: Expecting value`; the exception is named already."""
    name, colon, message = error.partition(": ")
    return message if colon and name.rpartition(".")[2] == kind else error


def _cut(count: ErrorCount, key: tuple[str, str]) -> ErrorCount:
    example = count.example
    return ErrorCount(
        count.stage,
        key[0],
        count.message[:MAX_MESSAGE_CHARS] if key[0] != OTHERS else "",
        count.count,
        count.lost_parts,
        count.lost_bytes,
        msgspec.structs.replace(
            example,
            traceback=example.traceback[-MAX_TRACEBACK_CHARS:],  # its end says where it happened
            document=example.document[:MAX_DOCUMENT_CHARS],
        ),
    )


# `StageCounts`: what a stage did, as numbers that add up over tasks, workers and resumed runs.

MAX_METRICS = 100  # names of each kind that a stage may give; what it counts under further names is "other"


class StageCounts(msgspec.Struct, array_like=True):
    """Documents in and out of one stage, what became of the others, and what it cost.

    `read` counts documents a reader met for the first time, `created` those a splitter made out of others, `written`
    those that left the pipeline at its end. So over a whole run: read + created = written + dropped + quarantined.
    """

    documents_in: int = 0
    documents_out: int = 0
    read: int = 0
    created: int = 0
    written: int = 0
    quarantined: int = 0
    bytes_in: int = 0
    process_s: float = 0.0
    lost_parts: int = 0  # files, or parts of files, that could not be read: nobody knows how many documents they held
    lost_bytes: int = 0
    dropped: dict[str, int] = msgspec.field(default_factory=dict)  # reason -> documents
    returned_none: int = 0  # documents in tasks for which the stage gave back None and no reason: they count as dropped
    errors: dict[str, int] = msgspec.field(default_factory=dict)  # what failed, by `error_kind` -> documents or parts
    counted: dict[str, int] = msgspec.field(default_factory=dict)  # what the stage's author counts, by name
    observed: dict[str, Slots] = msgspec.field(default_factory=dict)  # values the author has the stage note (tally.py)
    bytes_out: int = 0  # of the documents that went on
    dropped_bytes: dict[str, int] = msgspec.field(default_factory=dict)  # reason -> bytes; about, where a row has none
    lost_of_plan: int = 0  # `lost_bytes` as the plan counts them: a file of unknown size is a usual one there

    def add(self, other: "StageCounts") -> None:
        _add(self, other)

    def subtract(self, other: "StageCounts") -> None:
        """Take back what was added."""
        _subtract(self, other)

    def note_error(self, kind: str, number: int) -> None:
        """Count what failed by a short name of its kind, for those who watch; quarantine has everything about each."""
        _add_each(self.errors, {kind: number}, _BOUNDS["errors"])

    def measure(self, counted: dict[str, int], observed: dict[str, Slots]) -> None:
        """Add what a stage's author has counted and observed."""
        _add_each(self.counted, counted, _BOUNDS["counted"])
        _add_each(self.observed, observed, _BOUNDS["observed"])

    @property
    def commonest_error(self) -> str:
        """The kind of error most documents failed by, or ""."""
        kinds = [kind for kind, number in self.errors.items() if number > 0 and kind != OTHERS]
        return min(kinds, key=lambda kind: (-self.errors[kind], kind), default="")

    def is_empty(self) -> bool:
        """Whether no document was counted."""
        return not (
            self.documents_in or self.documents_out or self.read or self.quarantined or self.written or self.lost_parts
        )

    @property
    def has_passed(self) -> bool:
        """Whether any document came through the stage; one that it dropped has."""
        return bool(self.documents_out or self.written or self.dropped)

    @property
    def has_failures(self) -> bool:
        return bool(self.quarantined or self.lost_parts)

    @property
    def dropped_total(self) -> int:
        return sum(self.dropped.values())

    def numbers(self, *, but: Container[str] = ()) -> dict[str, float]:
        """Every field that is a number and not zero, by its name."""
        found = {name: getattr(self, name) for name in self.__struct_fields__ if name not in but}
        return {name: value for name, value in found.items() if value and not isinstance(value, dict)}

    def to_json(self) -> dict[str, object]:
        """Only what is not zero, so that a ledger line stays short."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if value}


class NamedCounts(StageCounts, array_like=False, omit_defaults=True, forbid_unknown_fields=True):
    """The same with the names of its fields, for files that people read."""

    @classmethod
    def of(cls, counts: StageCounts) -> "NamedCounts":
        return cls(*(getattr(counts, name) for name in cls.__struct_fields__))

    def plain(self) -> StageCounts:
        """The counts, to calculate with."""
        return StageCounts(*(getattr(self, name) for name in self.__struct_fields__))


Bound = tuple[int, str]  # how many names are kept, and what the others together are called
# Messages of errors may be different for every document, and so may what a user makes names of metrics from.
_BOUNDS = {"errors": (MAX_KINDS, OTHERS), "counted": (MAX_METRICS, "other"), "observed": (MAX_METRICS, "other")}


def _add_each(mine: dict[Any, Any], theirs: dict[Any, Any], bound: Bound | None = None) -> None:
    """Add numbers by name, or tallies by name, which are numbers by slot."""
    for name, count in theirs.items():
        known = name if bound is None or name in mine or len(mine) < bound[0] else bound[1]
        if type(count) is dict:
            _add_each(mine.setdefault(known, {}), count)
        else:
            mine[known] = mine.get(known, 0) + count


def _subtract_each(mine: dict[Any, Any], theirs: dict[Any, Any], bound: Bound | None = None) -> None:
    """Take back what was added; a name of which nothing is left is removed."""
    for name, count in theirs.items():
        # Gone already if what was added under it came to nothing: zeros, or tallies of no values.
        known = bound[1] if bound is not None and name not in mine and bound[1] in mine else name
        if type(count) is dict:
            left = mine.get(known, {})
            _subtract_each(left, count)
        else:
            left = mine.get(known, 0) - count
        if left:
            mine[known] = left
        else:
            mine.pop(known, None)


def _arithmetic(sign: str, each: str) -> Callable[[StageCounts, StageCounts], None]:
    """Return `x += y` or `x -= y` over all fields, written out from their names: none can be forgotten.

    A loop with getattr and setattr takes five times as long, and books are kept several times for every task (measured
    in docs/log/2026-11-17-back-to-speed.md). Most fields of a task are empty, and those are only looked at.
    """
    lines = [
        f"    if other.{name}: {each}(self.{name}, other.{name}, {_BOUNDS.get(name)})"
        if isinstance(empty, dict)
        else f"    if other.{name}: self.{name} {sign}= other.{name}"
        for name, empty in msgspec.structs.asdict(StageCounts()).items()
    ]
    made: dict[str, Callable[..., None]] = {"add_each": _add_each, "subtract_each": _subtract_each}
    exec("\n".join(["def calculate(self, other):", *lines]), made)  # noqa: S102  # nothing but names written above
    return made["calculate"]


_add, _subtract = _arithmetic("+", "add_each"), _arithmetic("-", "subtract_each")


def balance(counts: list[StageCounts]) -> int:
    """Return read + created - written - dropped - quarantined over all stages: 0 when the books balance."""
    return sum(c.read + c.created - c.written - c.dropped_total - c.quarantined for c in counts)


SPILLED_BYTES = "spilled_bytes"  # what a stage that writes files between two others counts them as

# Fields of StageCounts that have a place of their own here. Any other appears among the metrics, if it is not zero.
SHOWN = frozenset(
    (
        *("documents_in", "documents_out", "read", "created", "written", "quarantined", "bytes_in", "bytes_out"),
        *("process_s", "lost_of_plan"),
    )
)

SNAPSHOT_S = 0.25  # between two snapshots, for an observer that does not say how often it wants them


WORKER_STATES = ("starting", "idle", "busy", "blocked", "draining")


class StageSnapshot(msgspec.Struct, frozen=True):
    """One stage. Stages with the same `group` run fused in one process and share workers, queue and memory.

    So a group's workers (`workers`, `busy_workers`, `worker_states`, `peak_workers`), queue, memory and
    `last_progress_at` are in each of its stages: add them up over groups, not over stages. All else is the stage's own.
    Counts of documents cover all sessions of a run; latencies, retries, losses, recycles and peaks this session.
    """

    name: str
    group: int
    documents_in: int = 0
    documents_out: int = 0
    dropped: int = 0
    quarantined: int = 0
    bytes_in: int = 0
    process_s: float = 0.0  # summed over workers
    workers: int = 0
    busy_workers: int = 0
    queued_tasks: int = 0
    queue_s: float = 0.0  # how long the present workers need for what is queued
    memory_bytes: int = 0
    error: str = ""  # what most of those in quarantine failed by
    metrics: dict[str, float] = {}  # what else is counted, by gristmill or the stage's author
    observed: dict[str, dict[str, float]] = {}  # name -> figures of a `Distribution`
    reasons: dict[str, int] = {}  # documents dropped, by reason; they add up to `dropped`
    worker_states: dict[str, int] = {}  # all of WORKER_STATES, or none where another engine knows
    largest_worker_bytes: int = 0  # the most memory any present worker has held
    last_progress_at: float | None = None  # seconds since 1970; when a task got further, or the first came to wait here
    latency: tuple[int, ...] = ()  # tasks by how long they took, in the slots of `pace.BOUNDS` and one beyond
    latency_s: float = 0.0  # of all these tasks together
    retries: int = 0  # tasks tried again after they failed here
    losses: dict[str, int] = {}  # workers that died here: memory, signal, timeout, exit, node, unknown
    recycles: int = 0  # workers replaced for their age, size or use; in the first stage of a group
    peak_workers: int = 0
    peak_memory_bytes: int = 0  # of the workers together
    peak_worker_bytes: int = 0  # of the largest
    bytes_out: int = 0  # of the documents that went on
    dropped_bytes: dict[str, int] = {}  # by reason, as `reasons`

    def with_counts(self, counts: StageCounts) -> "StageSnapshot":
        """Return it with what is in the books; a stage that only reads or only writes shows that."""
        return msgspec.structs.replace(
            self,
            documents_in=counts.documents_in or counts.read,
            documents_out=counts.documents_out or counts.written,
            dropped=counts.dropped_total,
            reasons=dict(counts.dropped),
            quarantined=counts.quarantined,
            bytes_in=counts.bytes_in,
            bytes_out=counts.bytes_out,
            dropped_bytes=dict(counts.dropped_bytes),
            process_s=counts.process_s,
            error=counts.commonest_error,
            metrics=counts.numbers(but=SHOWN) | counts.counted,
            observed={name: Distribution(slots).to_json() for name, slots in counts.observed.items()},
        )


class RunSnapshot(msgspec.Struct, frozen=True):
    """The whole run. `state` is starting, running, draining, finished, stopped or failed.

    Times (`..._at`) are seconds since 1970. `elapsed_s`, `resource_seconds`, `bound_s` and peaks are of this session.
    """

    name: str
    state: str
    elapsed_s: float
    partitions_done: int
    partitions_total: int
    read: int
    written: int
    dropped: int
    quarantined: int
    created: int
    input_bytes_done: int
    input_bytes_total: int
    memory_bytes: int
    memory_limit: int
    eta_s: float | None
    stages: tuple[StageSnapshot, ...]
    messages: tuple[str, ...] = ()  # what the watchdog and the engine have to say since the last snapshot
    bound_s: float = 0.0  # the least time what was done so far could have taken
    resource: str = ""  # the scarcest
    shares: dict[str, float] = {}  # where its seconds went: they add up to one
    made_at: float = 0.0
    started_at: float = 0.0  # the session
    fingerprint: str = ""  # of the plan
    eta_low_s: float | None = None  # with `eta_high_s`: nine times out of ten the run ends in between
    eta_high_s: float | None = None
    resource_seconds: dict[str, dict[str, float]] = {}  # cpu, gpu -> share -> seconds: all there was, adding up
    data_in_flight_bytes: int = 0  # tasks that wait or are worked on
    data_limit_bytes: int = 0  # what the scheduler keeps that under
    peak_memory_bytes: int = 0
    peak_data_bytes: int = 0
    nodes: tuple[NodeSample, ...] = ()  # the latest of each machine; where it is known


# `Rates`: how fast a run is going now, from two of its snapshots.

WINDOW_S = 10.0  # long enough that a slow batch does not make the numbers jump


class Rates:
    """Remembers the snapshots of the last seconds. Reads the snapshots' own clock."""

    def __init__(self) -> None:
        self._history: deque[RunSnapshot] = deque()
        self._first: RunSnapshot | None = None

    def add(self, snapshot: RunSnapshot) -> None:
        """Take in the newest snapshot; a run that has ended is averaged over all its time."""
        if snapshot.state in ("finished", "stopped", "failed") and self._first is not None:
            self._history = deque([self._first])  # not zero: a resumed run begins with what was done before
        self._first = self._first or snapshot
        self._history.append(snapshot)
        while len(self._history) > 2 and self._history[1].elapsed_s <= snapshot.elapsed_s - WINDOW_S:
            self._history.popleft()

    def documents_per_s(self, stage: int) -> float:
        """Documents per second into stage number `stage`."""
        old, new = self._ends()
        before = old.stages[stage].documents_in if old and stage < len(old.stages) else 0
        return self._per_second(new.stages[stage].documents_in - before)

    def bytes_per_s(self, stage: int | None = None) -> float:
        """Bytes per second into a stage, or read from the input if none is given."""
        old, new = self._ends()
        if stage is None:
            return self._per_second(new.input_bytes_done - (old.input_bytes_done if old else 0))
        before = old.stages[stage].bytes_in if old and stage < len(old.stages) else 0
        return self._per_second(new.stages[stage].bytes_in - before)

    def _ends(self) -> tuple[RunSnapshot | None, RunSnapshot]:
        return (self._history[0] if len(self._history) > 1 else None), self._history[-1]

    def _per_second(self, amount: float) -> float:
        old, new = self._ends()
        seconds = new.elapsed_s - (old.elapsed_s if old else 0.0)
        return max(0.0, amount / seconds) if seconds > 0 else 0.0
