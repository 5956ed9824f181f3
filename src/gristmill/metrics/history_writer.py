"""`HistoryWriter`: turns snapshots into lines of `metrics.jsonl`, each as often as it is worth a line.

Format 2. A header is an object: `history` (2), `name` of the run, `columns` (of run, stage, group and node: name and
unit), and whose they are: `stages`, `groups`, `nodes`, `reasons`, `metrics`. Every other line is an array of rows: the
run's, one for each stage, group and machine, one of all reasons, one of all metrics. A row holds what was added to each
number, packed (`Packing`) and in its column's unit, since the line before; from zero after a header. Zeros at the end
of a row are left out, and a row of zeros is 0. So a line is short although a run may have hundreds of columns, and a
number is as exact after hours as at the beginning. A header comes at the start of every session, when there is a new
column, and now and then, so that what is behind a damaged line can still be read.

A line is due when max(1, min(60, elapsed / 600)) seconds have passed since the last: every second in the first ten
minutes, then about 600 for every time the run becomes 2.7 times as long.
"""

import msgspec

from gristmill.metrics.history_columns import KINDS, Packing, Shape, shape_of, values_of
from gristmill.metrics.snapshot import RunSnapshot

FORMAT = 2
COLUMN_NAMES = {kind: [kept.name for kept in columns] for kind, columns in KINDS.items()}
LEAST_S, MOST_S, PARTS = 1.0, 60.0, 600
LINES_BELOW_A_HEADER = 256


def interval_s(elapsed_s: float) -> float:
    """Seconds between two lines of a run that has lasted so long.

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
        return header + msgspec.json.encode(grown) + b"\n"


def _header(snapshot: RunSnapshot, shape: Shape) -> bytes:
    columns = {kind: [(kept.name, kept.unit) for kept in columns] for kind, columns in KINDS.items()}
    whose = msgspec.to_builtins(shape)
    return msgspec.json.encode({"history": FORMAT, "name": snapshot.name, "columns": columns, **whose}) + b"\n"


def _grown(now: list[int], before: list[int]) -> list[int] | int:
    grown = [new - old for new, old in zip(now, before, strict=True)]
    while grown and not grown[-1]:
        grown.pop()
    return grown or 0
