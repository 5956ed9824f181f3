"""A schedule as a Chrome trace: the JSON that Perfetto, speedscope and Chromium's own viewer open.

A group is a process there, a lane of a worker a thread. Times are microseconds from the beginning of the run. Stages
of a group follow each other inside their task as long as each took, so that they add up to the seconds of the books; a
stage that streams worked in turns with them.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gristmill.backends.schedules import ScheduledGroup
from gristmill.engine.spans import NO_GROUP, Level, Mark, Shown, Span

RUN = 0  # the "process" that shows what concerns the whole run; groups are counted from 1
CHUNK_BYTES = 1 << 18
_WHOLE_RUN = ("commit", "message", "end", "again")


def chrome_trace(shown: Iterable[Shown], groups: Sequence[ScheduledGroup], *, name: str) -> Iterator[bytes]:
    """Yield the bytes of a trace, some at a time."""
    writer = _Writer(groups)
    head = msgspec.json.encode({"run": name, "made by": "gristmill trace"})
    chunk = bytearray(b'{"displayTimeUnit":"ms","otherData":' + head + b',"traceEvents":[\n')
    separator = b""
    for event in writer.events(shown):
        chunk += separator
        chunk += _encode(event)
        separator = b",\n"
        if len(chunk) >= CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk + b"\n]}\n")


_encode = msgspec.json.Encoder().encode

Event = dict[str, object]


class _Writer:
    def __init__(self, groups: Sequence[ScheduledGroup]) -> None:
        self._groups = groups
        self._threads: dict[tuple[int, int, int], int] = {}  # group, worker, lane -> number of the thread
        self._memory: dict[int, dict[int, int]] = {}  # group -> worker -> bytes
        self._names: dict[int, str] = {}  # of workers, if they have names

    def events(self, shown: Iterable[Shown]) -> Iterator[Event]:
        yield from self._processes()
        for each in shown:
            if isinstance(each, Span):
                yield from self._span(each)
            elif isinstance(each, Level):
                yield self._level(each)
            elif each.kind == "worker":
                self._names[each.worker] = each.text
            else:
                yield from self._mark(each)

    def _processes(self) -> Iterator[Event]:
        yield _meta("process_name", RUN, "run")
        for number, group in enumerate(self._groups, 1):
            segment = f" (segment {group.segment})" if group.segment else ""
            yield _meta("process_name", number, f"{group.name}{segment}")
            yield {"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": number}}

    def _thread(self, group: int, worker: int, lane: int) -> Iterator[Event]:
        key = (group, worker, lane)
        if key not in self._threads:
            number = self._threads[key] = len(self._threads) + 1
            name = self._names.get(worker, f"worker {worker}") + (f" lane {lane}" if lane else "")
            yield _meta("thread_name", group + 1, name, number)
            yield {
                "ph": "M",
                "name": "thread_sort_index",
                "pid": group + 1,
                "tid": number,
                "args": {"sort_index": worker * 1000 + lane},
            }

    def _span(self, span: Span) -> Iterator[Event]:
        yield from self._thread(span.group, span.worker, span.lane)
        pid, tid = span.group + 1, self._threads[span.group, span.worker, span.lane]
        start, end = _us(span.start_s), _us(span.end_s)
        yield {
            "ph": "X",
            "cat": span.kind,
            "name": span.item_id if span.kind == "task" else f"{span.kind} {span.item_id}".rstrip(),
            "pid": pid,
            "tid": tid,
            "ts": start,
            "dur": round(end - start, 3),
            "args": _arguments(span),
        }
        stages = self._groups[span.group].stages
        if span.kind == "task":  # also for a single stage: a task takes longer than its stages, by what is around them
            yield from _stages(stages, span.process_s, pid, tid, start, end)

    def _mark(self, mark: Mark) -> Iterator[Event]:
        event: Event = {"ph": "i", "cat": mark.kind, "name": mark.kind, "ts": _us(mark.at_s)}
        if mark.group == NO_GROUP or mark.kind in _WHOLE_RUN:
            event |= {"pid": RUN, "tid": 0, "s": "p"}
        elif mark.worker < 0:
            event |= {"pid": mark.group + 1, "tid": 0, "s": "p"}
        else:
            yield from self._thread(mark.group, mark.worker, mark.lane)
            event |= {"pid": mark.group + 1, "tid": self._threads[mark.group, mark.worker, mark.lane], "s": "t"}
        yield event | {"args": {"text": mark.text}}

    def _level(self, level: Level) -> Event:
        event: Event = {"ph": "C", "pid": level.group + 1, "tid": 0, "ts": _us(level.at_s)}
        if level.kind == "queue":
            return event | {"name": "tasks waiting", "args": {"tasks": level.value}}
        workers = self._memory.setdefault(level.group, {})
        workers[level.worker] = level.value
        return event | {"name": "memory of workers", "args": {"bytes": sum(workers.values())}}


def _stages(
    stages: Sequence[str], process_s: Sequence[float], pid: int, tid: int, start: float, end: float
) -> Iterator[Event]:
    for name, seconds in zip(stages, process_s, strict=False):
        after = min(round(start + seconds * 1e6, 3), end)
        duration = round(after - start, 3)
        if duration > 0:
            yield {"ph": "X", "cat": "stage", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration}
        start = after


def _arguments(span: Span) -> Event:
    given: Event = {
        "task": span.task if span.task >= 0 else None,
        "documents in": span.documents_in or None,
        "documents out": span.documents_out if span.documents_in or span.documents_out else None,
        "bytes": span.num_bytes or None,
        "waited s": round(span.waited_s, 6) if span.waited_s else None,
        "process s": round(sum(span.process_s), 6) if span.process_s else None,
        "attempt": span.attempt + 1 if span.attempt else None,
        "care": span.care or None,
        "note": span.note or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _meta(kind: str, pid: int, name: str, tid: int = 0) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
