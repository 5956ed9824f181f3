"""`HistoryWriter`: turns snapshots into lines of `metrics.jsonl`, as often as they are worth a line.

Format 3. A header is an object: `history` (3), `name` of the run, `columns` (of run, stage, group and node: name and
unit), and whose they are: `stages`, `groups`, `nodes`, `reasons`, `metrics`. Every other line is a string of rows with
commas between them: the run's, one for each stage, group and machine, one of all reasons, one of all metrics. A row
holds what was added to each number, packed (`Packing`) and in its column's unit, since the line before; from zero after
a header. It is written as `text_of` says, without the zeros at its end. So a line is short although a run may
have hundreds of columns, and a number is as exact after hours as at the beginning. A header comes at the start of every
session, when there is a new column, and now and then, so that what follows a damaged line can still be read.

A line is due when max(1, min(60, elapsed / 600)) seconds have passed since the last: every second in the first ten
minutes, then about 600 for every time the run becomes 2.7 times as long.

What is kept of a stage is what a chart over time needs; the rest is in `status.json` and the report. What the stages
of a group share is kept once, under the name of its first stage. A column is identified by three words: what it is of
(run, stage, group, node, reason, metric), whose (a stage's or a machine's name), and its name.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from gristmill.metrics.node_sample import NodeSample
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

STATES = ("starting", "running", "draining", "finished", "stopped", "failed")
SHARES = ("useful", "setup", "starved", "blocked", "fragmented", "wasted", "scheduler")
MOST_NAMES = 400  # of reasons, and of metrics: what is beyond them is in the report only
MB, CENTI, MILLI = 1_000_000.0, 0.01, 0.001


class _Kept(NamedTuple):
    name: str
    unit: float
    get: Callable[..., float]


# Those that change most often first: numbers at the end of a row that are the same as before are not written.
_RUN = (
    _Kept("made_at", CENTI, lambda s: s.made_at),
    _Kept("read", 1, lambda s: s.read),
    _Kept("written", 1, lambda s: s.written),
    _Kept("dropped", 1, lambda s: s.dropped),
    _Kept("input_bytes_done", 1, lambda s: s.input_bytes_done),
    _Kept("memory_bytes", MB, lambda s: s.memory_bytes),
    _Kept("data_in_flight_bytes", MB, lambda s: s.data_in_flight_bytes),
    _Kept("bound_s", 0.1, lambda s: s.bound_s),
    *(
        _Kept(f"cpu_{share}_s", 0.1, lambda s, share=share: s.resource_seconds.get("cpu", {}).get(share, 0.0))
        for share in SHARES
    ),
    _Kept("eta_s", 0.1, lambda s: -0.1 if s.eta_s is None else min(s.eta_s, 1e9)),
    _Kept("elapsed_s", CENTI, lambda s: s.elapsed_s),
    _Kept("partitions_done", 1, lambda s: s.partitions_done),
    _Kept("quarantined", 1, lambda s: s.quarantined),
    _Kept("created", 1, lambda s: s.created),
    _Kept("memory_limit", MB, lambda s: s.memory_limit),
    _Kept("data_limit_bytes", MB, lambda s: s.data_limit_bytes),
    _Kept("partitions_total", 1, lambda s: s.partitions_total),
    _Kept("state", 1, lambda s: STATES.index(s.state) if s.state in STATES else 0),
    *(
        _Kept(f"gpu_{share}_s", 0.1, lambda s, share=share: s.resource_seconds.get("gpu", {}).get(share, 0.0))
        for share in SHARES
    ),
)
_STAGE = (
    _Kept("process_s", CENTI, lambda s: s.process_s),
    _Kept("dropped", 1, lambda s: s.dropped),
    _Kept("documents_in", 1, lambda s: s.documents_in),
    _Kept("documents_out", 1, lambda s: s.documents_out),
    _Kept("quarantined", 1, lambda s: s.quarantined),
    _Kept("retries", 1, lambda s: s.retries),
)
_GROUP = (
    _Kept("queued_tasks", 1, lambda s: s.queued_tasks),
    *(_Kept(state, 1, lambda s, state=state: _in_state(s, state)) for state in ("busy", "idle", "blocked")),
    *(_Kept(state, 1, lambda s, state=state: _in_state(s, state)) for state in ("starting", "draining")),
    _Kept("memory_bytes", MB, lambda s: s.memory_bytes),
    _Kept("largest_worker_bytes", MB, lambda s: s.largest_worker_bytes),
    _Kept("losses", 1, lambda s: sum(s.losses.values())),
)
_NODE = (
    _Kept("cpu_s", 0.1, lambda n: n.cpu_s),
    _Kept("memory_bytes", MB, lambda n: n.memory_bytes),
    _Kept("gpu_utilization", CENTI, lambda n: sum(g.utilization for g in n.gpus) / max(1, len(n.gpus))),
    _Kept("gpu_memory_bytes", MB, lambda n: sum(g.memory_bytes for g in n.gpus)),
    _Kept("memory_total_bytes", MB, lambda n: n.memory_total_bytes),
)


def _in_state(stage: StageSnapshot, state: str) -> int:
    if stage.worker_states:
        return stage.worker_states[state]
    # Where another engine has the workers, it is known only how many there are and how many have work.
    return {"busy": stage.busy_workers, "idle": stage.workers - stage.busy_workers}.get(state, 0)


KINDS = {"run": _RUN, "stage": _STAGE, "group": _GROUP, "node": _NODE}


class Shape(msgspec.Struct, frozen=True):
    """Whose numbers a line holds: the run's, those of stages, groups and machines, then all reasons, all metrics."""

    stages: tuple[str, ...]
    groups: tuple[str, ...]  # by their first stages
    nodes: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]  # (stage, reason)
    metrics: tuple[tuple[str, str], ...]  # (stage, name), in thousandths


def shape_of(snapshot: RunSnapshot, before: Shape | None = None) -> Shape:
    """Return whose numbers a snapshot has; reasons, metrics and machines that there were before stay."""
    reasons = dict.fromkeys(before.reasons if before else ())
    metrics = dict.fromkeys(before.metrics if before else ())
    for stage in snapshot.stages:
        for known, names in ((reasons, stage.reasons), (metrics, stage.metrics)):
            for name in names:
                if len(known) < MOST_NAMES:
                    known[stage.name, name] = None
    first: dict[int, str] = {}
    for stage in snapshot.stages:
        first.setdefault(stage.group, stage.name)
    nodes = dict.fromkeys([*(before.nodes if before else ()), *(node.node for node in snapshot.nodes)])
    stages = tuple(stage.name for stage in snapshot.stages)
    return Shape(stages, tuple(first.values()), tuple(nodes), tuple(reasons), tuple(metrics))


def values_of(snapshot: RunSnapshot, shape: Shape) -> list[list[int]]:
    """Return the numbers of a snapshot, a row for each owner in the shape, in units of their columns."""
    stages = {stage.name: stage for stage in snapshot.stages}
    nodes = {node.node: node for node in snapshot.nodes}
    return [
        _numbers(_RUN, snapshot),
        *(_numbers(_STAGE, stages.get(name, _NO_STAGE)) for name in shape.stages),
        *(_numbers(_GROUP, stages.get(name, _NO_STAGE)) for name in shape.groups),
        *(_numbers(_NODE, nodes.get(name, _NO_NODE)) for name in shape.nodes),
        [stages.get(stage, _NO_STAGE).reasons.get(reason, 0) for stage, reason in shape.reasons],
        [round(stages.get(stage, _NO_STAGE).metrics.get(name, 0) / MILLI) for stage, name in shape.metrics],
    ]


_NO_STAGE = StageSnapshot("", 0)
_NO_NODE = NodeSample("", 0.0, 0, 0, 0.0, 0)


def _numbers(kept: Iterable[_Kept], of: object) -> list[int]:
    return [round(each.get(of) / each.unit) for each in kept]


class Packing:
    """Numbers that others predict are kept as the difference from the prediction, which is mostly zero.

    What comes into a stage is what left the one before; what leaves it is what came in and was not lost; what it drops
    has a reason; workers that are idle are all but those that are not; and time passes as fast by both clocks. The same
    rules applied backwards give the numbers again.
    """

    def __init__(self, shape: Shape, columns: Mapping[str, Sequence[str]]) -> None:
        run, stage = columns["run"], columns["stage"]
        self._made_at, self._elapsed = run.index("made_at"), run.index("elapsed_s")
        self._dropped, self._quarantined = stage.index("dropped"), stage.index("quarantined")
        self._in, self._out = stage.index("documents_in"), stage.index("documents_out")
        self._stages, self._groups = len(shape.stages), len(shape.groups)
        self._idle = columns["group"].index("idle")
        self._not_idle = [columns["group"].index(state) for state in ("busy", "blocked", "starting", "draining")]
        number = {name: index for index, name in enumerate(shape.stages)}
        self._reasons = [(number[stage], at) for at, (stage, _) in enumerate(shape.reasons) if stage in number]

    def pack(self, rows: list[list[int]]) -> list[list[int]]:
        """What to write for the numbers of `values_of`; they stay as they are."""
        packed = [list(row) for row in rows]
        packed[0][self._elapsed] = rows[0][self._made_at] - rows[0][self._elapsed]
        came = 0
        explained = self._explained(rows)
        for row, out, drops in zip(rows[1 : self._stages + 1], packed[1 : self._stages + 1], explained, strict=True):
            lost = row[self._dropped] + row[self._quarantined]
            out[self._dropped] = row[self._dropped] - drops
            out[self._in] = row[self._in] - came
            out[self._out] = row[self._out] - row[self._in] + lost
            came = row[self._out]
        for row in self._group_rows(packed):
            row[self._idle] += sum([row[state] for state in self._not_idle])
        return packed

    def unpack(self, rows: list[list[int]]) -> None:
        """Turn what was read into the numbers it was made from, in place."""
        rows[0][self._elapsed] = rows[0][self._made_at] - rows[0][self._elapsed]
        came = 0
        explained = self._explained(rows)
        for row, drops in zip(rows[1 : self._stages + 1], explained, strict=True):
            row[self._dropped] += drops
            row[self._in] += came
            row[self._out] += row[self._in] - row[self._dropped] - row[self._quarantined]
            came = row[self._out]
        for row in self._group_rows(rows):
            row[self._idle] -= sum([row[state] for state in self._not_idle])

    def _group_rows(self, rows: list[list[int]]) -> list[list[int]]:
        return rows[self._stages + 1 : self._stages + self._groups + 1]

    def _explained(self, rows: list[list[int]]) -> list[int]:
        """Documents of each stage that were dropped for a reason that has a column."""
        found = [0] * self._stages
        for stage, at in self._reasons:
            found[stage] += rows[-2][at]
        return found


FORMAT = 3
COLUMN_NAMES = {kind: [kept.name for kept in columns] for kind, columns in KINDS.items()}
LEAST_S, MOST_S, PARTS = 1.0, 60.0, 600
LINES_BELOW_A_HEADER = 256


def interval_s(elapsed_s: float) -> float:
    """Seconds between two lines of a run that has lasted this long.

    >>> [interval_s(seconds) for seconds in (5, 1200, 36_000, 360_000)]
    [1.0, 2.0, 60.0, 60.0]
    """
    return max(LEAST_S, min(MOST_S, elapsed_s / PARTS))


class HistoryWriter:
    """Remembers what it has written. `every_s` is a user's own interval, in place of the one above."""

    def __init__(self, every_s: float | None = None) -> None:
        self._every_s = every_s
        self._last_s: float | None = None
        self._shape: Shape | None = None
        self._before: list[list[int]] = []
        self._lines = 0

    def is_due(self, elapsed_s: float) -> bool:
        """Whether a line is to be written after so many seconds."""
        if self._last_s is None:
            return True
        interval = interval_s(elapsed_s) if self._every_s is None else self._every_s
        return elapsed_s - self._last_s >= interval - 0.05  # snapshots come in steps, and one step late is a step lost

    def lines(self, snapshot: RunSnapshot) -> bytes:
        """Return what to append for a snapshot: a line, and a header above it if one is needed."""
        self._last_s = snapshot.elapsed_s
        shape = shape_of(snapshot, self._shape)
        header = b""
        if shape != self._shape or self._lines % LINES_BELOW_A_HEADER == 0:
            header = _header(snapshot, shape)
            self._shape, self._before, self._lines = shape, [], 0
            self._packing = Packing(shape, COLUMN_NAMES)
        self._lines += 1
        rows = self._packing.pack(values_of(snapshot, shape))
        self._before = self._before or [[0] * len(row) for row in rows]
        grown = [_grown(now, before) for now, before in zip(rows, self._before, strict=True)]
        self._before = rows
        return b'%b"%b"\n' % (header, ",".join(map(text_of, grown)).encode())


def _header(snapshot: RunSnapshot, shape: Shape) -> bytes:
    columns = {kind: [(kept.name, kept.unit) for kept in columns] for kind, columns in KINDS.items()}
    whose = msgspec.to_builtins(shape)
    return msgspec.json.encode({"history": FORMAT, "name": snapshot.name, "columns": columns, **whose}) + b"\n"


def _grown(now: list[int], before: list[int]) -> list[int]:
    grown = [new - old for new, old in zip(now, before, strict=True)]
    while grown and not grown[-1]:
        grown.pop()
    return grown


# Rows of small whole numbers as short text

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # the second half: more digits follow
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_NUMBER = r"[g-z0-9+/]*[A-Za-f]"
_KNOWN = 1 << 15  # numbers that are remembered: nearly all are small


def text_of(numbers: Iterable[int]) -> str:
    """Return numbers one after another, in base-64 digits, lowest first; one bit of each digit says that more follow.

    The lowest bit of all is the sign. From -15 to 15 it is one character, to 511 two, to 16,383 three: decimal digits
    and commas take more than twice that, and a run of 40 stages writes 1,700 such lines in its first hour.

    >>> text_of([0, 1, -1, 16, 5000])
    'ACDgBw4J'
    >>> numbers_of("ACDgBw4J")
    [0, 1, -1, 16, 5000]
    """
    return "".join(map(_digits, numbers))


@lru_cache(_KNOWN)
def _digits(number: int) -> str:
    left = -number << 1 | 1 if number < 0 else number << 1
    digits = []
    while left >= 32:
        digits.append(_DIGITS[left & 31 | 32])
        left >>= 5
    return "".join(digits) + _DIGITS[left]


def numbers_of(text: str) -> list[int]:
    """The inverse of `text_of`; ValueError for what that does not return."""
    found = re.findall(_NUMBER, text)
    if sum(map(len, found)) != len(text):
        raise ValueError(f"expected numbers in digits of base 64; got {text[:40]!r}")
    return [_value(digits) for digits in found]


@lru_cache(_KNOWN)
def _value(digits: str) -> int:
    value = 0
    for digit in reversed(digits):
        value = value << 5 | _VALUES[digit] & 31
    return -(value >> 1) if value & 1 else value >> 1
