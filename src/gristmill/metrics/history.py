"""`read_history`: what `metrics.jsonl` says of a run, as columns over time, and those in a few bins for a chart.

    history = read_history(path.read_bytes(), since=1_700_000_000.0)
    memory = history.binned(history.column("run", "", "memory_bytes"), points=600)

A column has a name of three words: what it is of (run, stage, group, node, reason, metric), whose it is (a stage's or a
machine's name; a group's is that of its first stage), and its name. `history_writer.py` lists them. Lines that are
damaged, torn or of another format are left out, and so is what follows until the next header: it would be wrong by
what they said.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from gristmill.metrics.history_writer import FORMAT, MILLI, STATES, Packing, Shape, numbers_of

Key = tuple[str, str, str]  # of, who, name
MADE_AT: Key = ("run", "", "made_at")


class _Header(msgspec.Struct):
    history: int
    name: str
    columns: dict[str, list[tuple[str, float]]]
    stages: tuple[str, ...]
    groups: tuple[str, ...]
    nodes: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    metrics: tuple[tuple[str, str], ...]


_header_of = msgspec.json.Decoder(_Header)
_line_of = msgspec.json.Decoder(str)


class Points(NamedTuple):
    """A column in bins: one value each; None where a bin has none."""

    mean: list[float | None]
    least: list[float | None]
    greatest: list[float | None]


class _Part:
    """The lines below one header."""

    def __init__(self, header: _Header) -> None:
        self.header = header
        of = header.columns
        rows: list[list[tuple[Key, float]]] = [[(("run", "", name), unit) for name, unit in of["run"]]]
        for kind, names in (("stage", header.stages), ("group", header.groups), ("node", header.nodes)):
            rows += [[((kind, who, name), unit) for name, unit in of[kind]] for who in names]
        rows.append([(("reason", *pair), 1.0) for pair in header.reasons])
        rows.append([(("metric", *pair), MILLI) for pair in header.metrics])
        self.columns = {
            key: (number, place, unit) for number, row in enumerate(rows) for place, (key, unit) in enumerate(row)
        }
        shape = Shape(header.stages, header.groups, header.nodes, header.reasons, header.metrics)
        self._packing = Packing(shape, {kind: [name for name, _ in columns] for kind, columns in of.items()})
        self._made_at = self.columns[MADE_AT]
        self._now = [[0] * len(row) for row in rows]
        self.moments: list[list[list[int]]] = []

    def add(self, line: str, since: float) -> bool:
        """Add what a line says; False if it does not fit below this header."""
        rows = line.split(",")
        if len(rows) != len(self._now):
            return False
        now = self._now
        for number, text in enumerate(rows):
            if not text:
                continue
            row = numbers_of(text)
            if len(row) > len(now[number]):
                return False
            before = now[number]
            now[number] = [old + grown for old, grown in zip(before, row, strict=False)] + before[len(row) :]
        number, place, unit = self._made_at
        if now[number][place] * unit > since:
            moment = [list(row) for row in now]
            self._packing.unpack(moment)
            self.moments.append(moment)
        return True


class History:
    """Columns over time. `times` are seconds since 1970, in order; sessions follow each other."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = [part for part in parts if part.moments]
        self.name = parts[-1].header.name if parts else ""
        self.stages = parts[-1].header.stages if parts else ()
        self.groups = parts[-1].header.groups if parts else ()
        self.nodes = tuple(dict.fromkeys(node for part in parts for node in part.header.nodes))
        self.times: list[float] = [time or 0.0 for time in self.column(*MADE_AT)]

    def __len__(self) -> int:
        return sum(len(part.moments) for part in self._parts)

    def keys(self, of: str = "") -> list[Key]:
        """The columns there are, or those of one kind."""
        found = dict.fromkeys(key for part in self._parts for key in part.columns)
        return [key for key in found if not of or key[0] == of]

    def column(self, of: str, who: str, name: str) -> list[float | None]:
        """One column: a value for each time, None where nothing was noted."""
        values: list[float | None] = []
        for part in self._parts:
            place = part.columns.get((of, who, name))
            if place is None:
                values += [None] * len(part.moments)
            else:
                row, index, unit = place
                digits = 6 if unit < 1 else 0
                values += [round(moment[row][index] * unit, digits) for moment in part.moments]
        if (of, name) == ("run", "eta_s"):
            return [None if value is None or value < 0 else value for value in values]
        return values

    def states(self) -> list[str]:
        """The state of the run at each time."""
        return [STATES[int(state or 0)] for state in self.column("run", "", "state")]

    def per_second(self, column: Sequence[float | None]) -> list[float | None]:
        """How fast a column grows: None at the first time. Where a session starts to count anew it is 0."""
        rates: list[float | None] = [None] * len(column)
        for at in range(1, len(column)):
            old, new, seconds = column[at - 1], column[at], self.times[at] - self.times[at - 1]
            if old is not None and new is not None and seconds > 0:
                rates[at] = max(0.0, new - old) / seconds
        return rates

    def bins(self, points: int) -> list[tuple[int, int]]:
        """First and last time of each of at most `points` bins of equal length; empty ones are left out."""
        times = self.times
        if len(times) <= points:
            return [(at, at) for at in range(len(times))]
        width = (times[-1] - times[0]) / points or 1.0
        found: list[tuple[int, int]] = []
        before = -1
        for at, time in enumerate(times):
            number = max(before, min(points - 1, int((time - times[0]) / width)))  # a clock may be set back
            if number == before:
                found[-1] = found[-1][0], at
            else:
                found.append((at, at))
            before = number
        return found

    def bin_times(self, points: int) -> list[float]:
        """The end of each bin."""
        return [self.times[last] for _, last in self.bins(points)]

    def binned(self, column: Sequence[float | None], points: int) -> Points:
        """Return mean, least and greatest of a column in each of at most `points` bins."""
        made = Points([], [], [])
        for first, last in self.bins(points):
            known = [value for value in column[first : last + 1] if value is not None]
            made.mean.append(sum(known) / len(known) if known else None)
            made.least.append(min(known, default=None))
            made.greatest.append(max(known, default=None))
        return made


def read_history(content: bytes | Iterable[bytes], *, since: float = 0.0) -> History:
    """Read the history of a run, or the part of it later than `since`, in seconds since 1970."""
    parts: list[_Part] = []
    part: _Part | None = None
    for line in content.split(b"\n") if isinstance(content, bytes) else content:
        try:
            if line.startswith(b"{"):
                part = None
                header = _header_of.decode(line)
                if header.history == FORMAT:
                    part = _Part(header)
                    parts.append(part)
            elif line.strip() and part is not None and not part.add(_line_of.decode(line), since):
                part = None
        except (msgspec.DecodeError, RecursionError, KeyError, ValueError):
            part = None  # nothing more is known until the next header
    return History(parts)
