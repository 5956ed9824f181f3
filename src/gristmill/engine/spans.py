"""What a schedule is made of: spans, marks and levels; how a worker's spans are laid side by side, and merged.

A worker says when a task is done and how long it took, not when it began. So a task's span ends when the driver has
heard of it, at the latest, and before the next task of its worker begins: placed that late, no span begins before its
task was sent, and none overlaps another.
"""

import itertools
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

HELD_SPANS = 64  # of a lane, that a later one may still push back; no message is so late as to reach further back
NO_WORKER = NO_GROUP = -1


class Span(msgspec.Struct, frozen=True):
    """A worker at one thing. Seconds count from the first step.

    | kind   | the worker                                                                    |
    |--------|-------------------------------------------------------------------------------|
    | set-up | starts, from the command to its first word                                    |
    | task   | works on a task that it finished                                              |
    | wasted | works on a task that another worker had finished, or that counts no more      |
    | raised | works on a task until a stage raised                                          |
    | lost   | works on a task until the worker was gone                                     |
    | ending | was told to end, and does                                                     |
    """

    kind: str
    worker: int
    group: int
    start_s: float
    end_s: float
    lane: int = 0
    item_id: str = ""
    task: int = -1
    attempt: int = 0
    care: str = ""  # how carefully, if not as usual
    waited_s: float = 0.0  # between being ready to be done and being sent to a worker
    documents_in: int = 0
    documents_out: int = 0
    num_bytes: int = 0
    process_s: tuple[float, ...] = ()  # by stage of the group, as the books have it
    note: str = ""  # the error, or what the worker was lost to

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


class Mark(msgspec.Struct, frozen=True):
    """Something that happened at one moment: commit, retry, loss, step, recall, again, warning, message or end."""

    kind: str
    at_s: float
    text: str
    worker: int = NO_WORKER
    group: int = NO_GROUP
    lane: int = 0


class Level(msgspec.Struct, frozen=True):
    """What a number is from this moment on: tasks that wait for a group ("queue"), or bytes of a worker ("memory")."""

    kind: str
    at_s: float
    value: int
    group: int
    worker: int = NO_WORKER


Shown = Span | Mark | Level


class Lane(msgspec.Struct):
    """Spans that may still be pushed back by a later one, and where the last that may not has ended."""

    floor: float
    held: deque[Span] = msgspec.field(default_factory=deque)

    @property
    def end_s(self) -> float:
        """When the last of them ends."""
        return self.held[-1].end_s if self.held else self.floor

    def add(self, span: Span) -> Iterator[Span]:
        """Put a span behind the others; yield those that are final."""
        self.held.append(span)
        _push_back(self.held)
        while len(self.held) > HELD_SPANS:
            yield self._settle()

    def settle_all(self) -> Iterator[Span]:
        """Yield the rest: no span comes after these."""
        while self.held:
            yield self._settle()

    def _settle(self) -> Span:
        span = self.held.popleft()
        # Clocks of two processes differ by microseconds: a span never begins before the one ahead of it has ended.
        start = max(span.start_s, self.floor)
        end = self.floor = max(start, span.end_s)
        return msgspec.structs.replace(span, start_s=start, end_s=end)


class Rows:
    """The lanes of one worker. On one, spans push each other back; with several, each takes one that is free."""

    def __init__(self, lanes: int, floor: float) -> None:
        self._lanes = lanes
        self._rows = [Lane(floor)]

    @property
    def end_s(self) -> float:
        """When the last span ends."""
        return max(row.end_s for row in self._rows)

    def add(self, span: Span) -> Iterator[Span]:
        """Place a span; yield those that are final."""
        number = 0
        if self._lanes > 1:
            free = (n for n, row in enumerate(self._rows) if row.end_s <= span.start_s)
            number = next(free, len(self._rows))
        if number == len(self._rows):
            self._rows.append(Lane(span.start_s))
        if number:
            span = msgspec.structs.replace(span, lane=number)
        yield from self._rows[number].add(span)

    def settle_all(self) -> Iterator[Span]:
        """Yield the rest."""
        for row in self._rows:
            yield from row.settle_all()


def _push_back(held: deque[Span]) -> None:
    """Let every span end before the next begins. A finished one keeps its length, any other is cut."""
    limit = held[-1].start_s
    for number in range(len(held) - 2, -1, -1):
        span = held[number]
        if span.end_s <= limit:
            return
        start = limit - span.seconds if span.kind in ("task", "wasted") else min(span.start_s, limit)
        held[number] = msgspec.structs.replace(span, start_s=start, end_s=limit)
        limit = start


def merge_spans(spans: Sequence[Span], limit: int) -> list[Span]:
    """Return at most about `limit` spans: of neighbours on one lane, those with the shortest gap between are joined.

    A joined span says in its note how many it stands for. Spans of different kinds are never joined.
    """
    if len(spans) <= limit:
        return list(spans)
    ordered = sorted(spans, key=lambda s: (s.group, s.worker, s.lane, s.start_s))
    gaps = [
        following.start_s - span.end_s if _is_same_row(span, following) else None
        for span, following in itertools.pairwise(ordered)
    ]
    shortest = sorted((gap, number) for number, gap in enumerate(gaps) if gap is not None)
    joined = {number for _, number in shortest[: len(spans) - limit]}
    merged: list[Span] = []
    row: list[Span] = []
    for number, span in enumerate(ordered):
        row.append(span)
        if number not in joined:
            merged.append(_merge(row))
            row = []
    return merged


def _is_same_row(span: Span, following: Span) -> bool:
    return (span.group, span.worker, span.lane, span.kind) == (
        following.group,
        following.worker,
        following.lane,
        following.kind,
    )


def _merge(row: Sequence[Span]) -> Span:
    if len(row) == 1:
        return row[0]
    first, last = row[0], row[-1]
    process_s = tuple(map(sum, zip(*(span.process_s for span in row if span.process_s), strict=True)))
    return Span(
        first.kind,
        first.worker,
        first.group,
        first.start_s,
        last.end_s,
        first.lane,
        waited_s=max(span.waited_s for span in row),
        documents_in=sum(span.documents_in for span in row),
        documents_out=sum(span.documents_out for span in row),
        num_bytes=sum(span.num_bytes for span in row),
        process_s=process_s,
        note=f"{len(row)} spans merged into one",
    )
