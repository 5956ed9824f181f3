"""`Timeline`: what each worker did when, in columns, and the parts of it that the page asks for.

The schedule is rebuilt by replaying a log, which the dashboard cannot do itself: a command hands in a function that
fills a timeline. It is kept in arrays, so that a run of many hours takes a few megabytes.
"""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

MOST_SPANS = 20_000  # in one answer
KINDS = ("set-up", "task", "wasted", "raised", "lost", "ending")
LOG_ENDS = "the log ends here"  # the note of what was under way then
EVENTS = 200
SAMPLES = 300
LAST_SPANS = 30


@dataclass
class Timeline:
    """Spans by group, worker, lane and start; marks and samples of memory by time. Group `g` is called `groups[g]`."""

    groups: tuple[str, ...] = ()
    problem: str = ""  # why it ends early, or is empty
    duration_s: float = 0.0
    worker: "array[int]" = field(default_factory=lambda: array("q"))
    group: "array[int]" = field(default_factory=lambda: array("h"))
    lane: "array[int]" = field(default_factory=lambda: array("h"))
    kind: "array[int]" = field(default_factory=lambda: array("b"))
    start: "array[float]" = field(default_factory=lambda: array("d"))
    end: "array[float]" = field(default_factory=lambda: array("d"))
    documents: "array[int]" = field(default_factory=lambda: array("q"))
    items: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)  # by the number of the span
    marks: dict[str, "deque[Happened]"] = field(default_factory=dict)  # by kind, the latest of each
    counts: dict[str, int] = field(default_factory=dict)  # of all marks, by kind
    memory: dict[int, "array[float]"] = field(default_factory=dict)  # by worker: time, bytes, time, bytes ...
    names: dict[int, str] = field(default_factory=dict)  # of workers, where another engine gives them

    def add(self, kind: str, worker: int, group: int, lane: int, start: float, end: float) -> int:
        """Add a span and return its number; `items` gets one more, and `notes` one if there is something to say."""
        self.worker.append(worker)
        self.group.append(group)
        self.lane.append(lane)
        self.kind.append(KINDS.index(kind))
        self.start.append(start)
        self.end.append(end)
        self.duration_s = max(self.duration_s, end)
        return len(self.worker) - 1

    def mark(self, kind: str, at_s: float, text: str) -> None:
        """Note what happened at one moment."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.marks.setdefault(kind, deque(maxlen=EVENTS)).append(Happened(kind, at_s, text))

    def sample(self, worker: int, at_s: float, num_bytes: int) -> None:
        """Note how much memory a worker has. In a long run every other sample is dropped, as often as needed."""
        samples = self.memory.setdefault(worker, array("d"))
        samples.extend((at_s, num_bytes))
        if len(samples) >= 4 * SAMPLES:
            pairs = list(zip(samples[::2], samples[1::2], strict=True))
            self.memory[worker] = array("d", [number for pair in pairs[::2] for number in pair])


class Happened(msgspec.Struct, frozen=True):
    """Something that happened at one moment."""

    kind: str
    at_s: float
    text: str


class WorkerNow(msgspec.Struct):
    """A worker and what it did last."""

    number: int
    group: int
    state: str
    tasks: int = 0
    busy_s: float = 0.0
    last: int = -1  # its last span


def workers(timeline: Timeline, *, is_live: bool) -> list[WorkerNow]:
    """Return every worker there has been, by group and number."""
    found: dict[int, WorkerNow] = {}
    task = KINDS.index("task")
    for number, worker in enumerate(timeline.worker):
        now = found.get(worker)
        if now is None:
            now = found[worker] = WorkerNow(worker, timeline.group[number], "")
        if timeline.kind[number] == task:
            now.tasks += 1
            now.busy_s += timeline.end[number] - timeline.start[number]
        if now.last < 0 or timeline.end[number] >= timeline.end[now.last]:
            now.last = number
    for now in found.values():
        now.state = _state(timeline, now.last, is_live=is_live)
    return sorted(found.values(), key=lambda now: (now.group, now.number))


def _state(timeline: Timeline, last: int, *, is_live: bool) -> str:
    kind, at_the_end = KINDS[timeline.kind[last]], timeline.notes.get(last) == LOG_ENDS
    if at_the_end and is_live:
        return "starting" if kind == "set-up" else "busy"
    if kind == "lost":
        return "lost"
    return "idle" if is_live and kind != "ending" else "ended"


class Spans(msgspec.Struct):
    """Columns of spans, for drawing."""

    worker: list[int] = []
    group: list[int] = []
    lane: list[int] = []
    kind: list[int] = []
    start: list[float] = []
    end: list[float] = []
    item: list[str] = []
    note: list[str] = []


def spans_within(timeline: Timeline, start: float, end: float, most: int = MOST_SPANS) -> tuple[Spans, int]:
    """Return the spans that touch a part of the time, and how many there are; too many are joined with neighbours."""
    gap = 0.0
    number = sum(1 for _ in _within(timeline, start, end))
    if number > most:
        gap = (end - start) / 4_000
        while sum(1 for _ in _joined(timeline, start, end, gap)) > most:
            gap *= 2
    return _columns(timeline, _joined(timeline, start, end, gap)), number


def _within(timeline: Timeline, start: float, end: float) -> Iterator[int]:
    return (n for n in range(len(timeline.worker)) if timeline.end[n] >= start and timeline.start[n] <= end)


def _joined(timeline: Timeline, start: float, end: float, gap: float) -> Iterator[tuple[int, float, int]]:
    """The first span of each row of neighbours, where the last of them ends, and how many there are."""
    row: tuple[int, float, int] | None = None
    for number in _within(timeline, start, end):
        if row is not None and gap and _is_neighbour(timeline, row, number, gap):
            row = row[0], timeline.end[number], row[2] + 1
            continue
        if row is not None:
            yield row
        row = number, timeline.end[number], 1
    if row is not None:
        yield row


def _is_neighbour(timeline: Timeline, row: tuple[int, float, int], number: int, gap: float) -> bool:
    first, end, _ = row
    same = (timeline.worker, timeline.lane, timeline.kind)
    return all(column[first] == column[number] for column in same) and timeline.start[number] - end <= gap


def _columns(timeline: Timeline, rows: Iterable[tuple[int, float, int]]) -> Spans:
    spans = Spans()
    for first, end, count in rows:
        spans.worker.append(timeline.worker[first])
        spans.group.append(timeline.group[first])
        spans.lane.append(timeline.lane[first])
        spans.kind.append(timeline.kind[first])
        spans.start.append(round(timeline.start[first], 4))
        spans.end.append(round(end, 4))
        spans.item.append(timeline.items[first] if count == 1 else "")
        spans.note.append(timeline.notes.get(first, "")[:300] if count == 1 else f"{count} of them")
    return spans


def one_worker(timeline: Timeline, number: int, *, is_live: bool) -> dict[str, object] | None:
    """Return everything about one worker, or None if there is none with this number."""
    now = next((found for found in workers(timeline, is_live=is_live) if found.number == number), None)
    if now is None:
        return None
    own = [n for n, worker in enumerate(timeline.worker) if worker == number]
    samples = timeline.memory.get(number, array("d"))
    pairs = [(at, held) for at, held in zip(samples[::2], samples[1::2], strict=True) if held]
    return {
        "number": number,
        "stage": timeline.groups[now.group],
        "state": now.state,
        "tasks": now.tasks,
        "busy_s": now.busy_s,
        "node": timeline.names.get(number, f"started at {timeline.start[own[0]]:.1f} s"),
        "item": timeline.items[now.last],
        "note": timeline.notes.get(now.last, "")[:300],
        "memory": pairs,
        "spans": [
            {
                "kind": KINDS[timeline.kind[n]],
                "item": timeline.items[n],
                "start": timeline.start[n],
                "end": timeline.end[n],
                "documents": timeline.documents[n],
            }
            for n in own[: -LAST_SPANS - 1 : -1]
        ],
    }


def events(timeline: Timeline, messages: Sequence[Happened], kind: str | None) -> dict[str, object]:
    """Return what happened, the latest first, and how often each kind of thing did."""
    everything = [*(mark for marks in timeline.marks.values() for mark in marks), *messages]
    wanted = sorted((mark for mark in everything if kind in (None, mark.kind)), key=lambda mark: mark.at_s)
    counts = dict(timeline.counts)
    for message in messages:
        counts[message.kind] = counts.get(message.kind, 0) + 1
    shown = wanted[: -EVENTS - 1 : -1]
    left = sum(counts.values() if kind is None else [counts.get(kind, 0)]) - len(shown)
    return {"events": shown, "counts": counts, "left_out": left, "problem": timeline.problem}
