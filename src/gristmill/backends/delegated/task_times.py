"""When tasks were done, where another engine schedules: `tasks.jsonl` of the run directory.

    {"format": 1, "version": "…", "groups": [{"names": ["read", "filter"], "lanes": 1}]}    where a session begins
    [group, worker, item, begun, ended, useful seconds, documents in, out, bytes, seconds by stage]

There is no log of events to replay, because the decisions are the other engine's; so this is written as tasks end. All
times are by the registrar's clock, since machines' clocks do not agree. A record is an observation: if the disk is
full, the run goes on without it.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gristmill import __version__
from gristmill.engine.plan import Group
from gristmill.engine.spans import Mark, Rows, Shown, Span
from gristmill.errors import ReadError

FILE_NAME = "tasks.jsonl"
FORMAT = 1


class TaskTime(msgspec.Struct, frozen=True, array_like=True):
    """One task that was done."""

    group: int
    worker: str
    item_id: str
    begun: float
    ended: float
    useful_s: float
    documents_in: int
    documents_out: int
    num_bytes: int
    process_s: tuple[float, ...]


class TimedGroup(msgspec.Struct, frozen=True):
    """Names of a group's stages, and how many calls a worker of it has at once."""

    names: tuple[str, ...]
    lanes: int


class TimesHeader(msgspec.Struct, frozen=True):
    """The line a session begins with."""

    format: int
    version: str
    groups: tuple[TimedGroup, ...]


class TaskTimes:
    """Writes the times of one session behind those of earlier ones."""

    def __init__(self, path: Path | None, groups: Sequence[Group]) -> None:
        self._path = path
        self._write([TimesHeader(FORMAT, __version__, tuple(TimedGroup(group.names, group.lanes) for group in groups))])

    def add(self, times: Sequence[TaskTime]) -> None:
        """Write what the registrar has heard of."""
        if times:
            self._write(times)

    def _write(self, lines: "Sequence[TaskTime] | list[TimesHeader]") -> None:
        if self._path is None:
            return
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        with contextlib.suppress(OSError), self._path.open("ab") as file:
            file.write(text)


def read_sessions(path: Path) -> list[tuple[TimesHeader, int]]:
    """Return the sessions in a file: what each began with, and where its first line is."""
    found = []
    with path.open("rb") as file:
        while line := file.readline():
            if line.startswith(b"{"):
                try:
                    found.append((msgspec.json.decode(line, type=TimesHeader), file.tell()))
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise ReadError(f"{path}: expected the names of groups; {error}") from None
    return found


def read_times(path: Path, start: int) -> Iterator[TaskTime]:
    """Yield the tasks of the session whose first line is at `start`; a line cut at the end of the file is left out."""
    decoder = msgspec.json.Decoder(TaskTime)
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.startswith(b"{"):
                return
            if not line.endswith(b"\n"):
                return
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ReadError(f"{path}: expected a task as an array; {error}") from None


def spans_of(header: TimesHeader, times: Iterable[TaskTime], *, began: float | None = None) -> Iterator[Shown]:
    """Yield tasks as they were done, and the names of workers; there are no scheduling decisions to show.

    A process to which Ray Data gives tasks of several groups is shown as a worker of each.
    """
    workers: dict[tuple[str, int], int] = {}
    rows: list[Rows] = []
    for time in times:
        if began is None:
            began = time.begun
        worker = workers.setdefault((time.worker, time.group), len(workers))
        if worker == len(rows):
            rows.append(Rows(header.groups[time.group].lanes, 0.0))
            yield Mark("worker", 0.0, time.worker, worker, time.group)
        end = time.ended - began
        span = Span(
            "task",
            worker,
            time.group,
            end - max(time.useful_s, sum(time.process_s)),
            end,
            item_id=time.item_id,
            documents_in=time.documents_in,
            documents_out=time.documents_out,
            num_bytes=time.num_bytes,
            process_s=time.process_s,
        )
        yield from rows[worker].add(span)
    for each in rows:
        yield from each.settle_all()
