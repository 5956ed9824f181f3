"""`RunSchedule`: the schedule of a run, read from its directory, whichever engine scheduled it.

Where our scheduler did, its event log is replayed; where another engine did, there are the times of tasks. A run with
exchanges has a log for each segment; they are shown as one, on one clock.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from gristmill.backends.delegated import task_times
from gristmill.backends.scheduled import kept_records
from gristmill.engine.event_log import Header, decode_events
from gristmill.engine.events import Ticked
from gristmill.engine.replay import Step, read_header, replay
from gristmill.engine.schedule import schedule
from gristmill.engine.spans import NO_GROUP, Level, Mark, Shown, Span
from gristmill.errors import ConfigError, EngineBug, ReadError


class ScheduledGroup(NamedTuple):
    """A row of a schedule's groups. `segment` counts from 1, or is 0 in a run without exchanges."""

    name: str
    stages: tuple[str, ...]
    segment: int


class RunSchedule:
    """Iterate over it for spans, marks and levels; `problem` then says why it ends early, if it does."""

    def __init__(self, run_dir: Path, *, session: int | None = None) -> None:
        self.problem = ""
        self.num_events = 0
        self._parts = _find(run_dir, session)
        self.groups = tuple(group for part in self._parts for group in part.groups())

    def __iter__(self) -> Iterator[Shown]:
        began = min((when for part in self._parts if (when := part.began()) is not None), default=None)
        first_group = 0
        for part in self._parts:
            for shown in part.read(self, began):
                yield _moved(shown, first_group) if first_group else shown
            first_group += len(part.groups())

    def within(self, start_s: float = 0.0, end_s: float = float("inf")) -> Iterator[Shown]:
        """Yield what touches a part of the run, in seconds from its beginning. Spans are not cut."""
        for shown in self:
            if isinstance(shown, Span):
                if shown.end_s >= start_s and shown.start_s <= end_s:
                    yield shown
            elif start_s <= shown.at_s <= end_s or (isinstance(shown, Mark) and shown.kind == "worker"):
                yield shown


class _EventLog:
    """The log of our scheduler."""

    def __init__(self, path: Path, segment: int) -> None:
        self._path, self._segment = path, segment
        with path.open("rb") as file:
            self._header: Header = read_header(kept_records.read_frames(file))

    def groups(self) -> tuple[ScheduledGroup, ...]:
        return tuple(ScheduledGroup(_name(g.names), g.names, self._segment) for g in self._header.groups)

    def began(self) -> float | None:
        """The clock at the first event."""
        with self._path.open("rb") as file:
            frames = kept_records.read_frames(file)
            read_header(frames)
            first = next(frames, None)
        if first is None or not first.is_sound:
            return None
        return next((event.now for event in decode_events(first.body) if isinstance(event, Ticked)), None)

    def read(self, told: RunSchedule, began: float | None) -> Iterator[Shown]:
        def steps() -> Iterator[Step]:
            with self._path.open("rb") as file:
                frames = kept_records.read_frames(file)
                read_header(frames)
                # A log of another version may be answered differently somewhere: what comes before that is right.
                try:
                    for step in replay(self._header, frames):
                        told.num_events += len(step.events)
                        yield step
                except (EngineBug, ReadError) as error:
                    told.problem = f"{self._path.name}: {error} (recorded by gristmill {self._header.version})"

        yield from schedule(steps(), self._header.groups, began=began)


class _TaskTimes:
    """What the registrar has noted where another engine schedules."""

    def __init__(self, path: Path, segment: int, session: int | None) -> None:
        self._path, self._segment = path, segment
        sessions = task_times.read_sessions(path)
        back = 0 if session is None else session  # 1 is the one before the last, as with event logs
        if back >= len(sessions):
            raise ConfigError(
                f"{path}: expected one of its {len(sessions) - 1} earlier sessions, 1 the latest; got {back}"
            )
        self._header, self._start = sessions[-1 - back]

    def groups(self) -> tuple[ScheduledGroup, ...]:
        return tuple(ScheduledGroup(_name(g.names), g.names, self._segment) for g in self._header.groups)

    def began(self) -> float | None:
        first = next(task_times.read_times(self._path, self._start), None)
        return None if first is None else first.begun

    def read(self, told: RunSchedule, began: float | None) -> Iterator[Shown]:
        yield from task_times.spans_of(self._header, self._counted(told), began=began)

    def _counted(self, told: RunSchedule) -> Iterator[task_times.TaskTime]:
        try:
            for time in task_times.read_times(self._path, self._start):
                told.num_events += 1
                yield time
        except ReadError as error:
            told.problem = str(error)


def _find(run_dir: Path, session: int | None) -> list[_EventLog | _TaskTimes]:
    """Return the logs of a run, whether its directory, the output around it or a log itself was named."""
    if run_dir.is_file():
        return [_EventLog(run_dir, 0)]
    name = kept_records.FILE_NAME if session is None else f"events.{session}.log"
    for home in (run_dir, run_dir / ".gristmill"):
        segments = sorted(home.glob("segment-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        places = [(home, 0)] + [(path, number) for number, path in enumerate(segments, 1)]
        parts: list[_EventLog | _TaskTimes] = []
        for place, segment in places:
            if (place / name).is_file():
                parts.append(_EventLog(place / name, segment))
            elif (place / task_times.FILE_NAME).is_file():
                parts.append(_TaskTimes(place / task_times.FILE_NAME, segment, session))
        if parts:
            return parts
    kept = sorted(path.name for home in (run_dir, run_dir / ".gristmill") for path in home.glob("events*.log"))
    others = f"; there are {', '.join(kept)}" if kept else ""
    raise ConfigError(f"expected the directory of a run with {name} in it; got {str(run_dir)!r}{others}")


def _name(stages: tuple[str, ...]) -> str:
    return stages[0] if len(stages) == 1 else f"{stages[0]}…{stages[-1]}"


def _moved(shown: Shown, first_group: int) -> Shown:
    """The same, renumbered as in the groups of a later segment."""
    if isinstance(shown, Level | Span) or shown.group != NO_GROUP:
        return msgspec.structs.replace(shown, group=shown.group + first_group)
    return shown
