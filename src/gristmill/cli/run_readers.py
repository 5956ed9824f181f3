"""How the dashboard finds out about a run: functions that read a run directory, each in a process of its own."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.cli.run_files import RunFiles
from gristmill.errors import GristmillError
from gristmill.storage.file_system import file_system, is_url

if TYPE_CHECKING:
    from gristmill.dashboard.funnel import StageBytes
    from gristmill.dashboard.history_points import HistoryPoints
    from gristmill.dashboard.measures import Measures
    from gristmill.dashboard.run_data import RunData
    from gristmill.dashboard.shown_run import ShownRun
    from gristmill.dashboard.timeline import Timeline

STORE_LOOK_S = 5.0  # a run on a store writes no more often, and every look is a request that is paid for
MOST_SPANS = 200_000  # that the server holds; a longer replay is joined into as many


def shown_run(run: RunFiles) -> "ShownRun":
    """Return a run as the dashboard shows it."""
    from gristmill.dashboard.apart import apart
    from gristmill.dashboard.shown_run import Readers, ShownRun
    from gristmill.dashboard.watched_run import LOOK_S, WatchedRun

    readers = Readers(
        documents=functools.partial(apart, read_documents, run.place),
        history=functools.partial(apart, read_history_points, run.place),
        timeline=functools.partial(apart, read_timeline, run.place),
        trace=functools.partial(apart, read_trace, run.place),
        quarantine_files=run.quarantine_files,
    )
    return ShownRun(WatchedRun(run, look_s=STORE_LOOK_S if is_url(run.place) else LOOK_S), readers)


def read_documents(place: str) -> "tuple[RunData, Measures, dict[str, StageBytes]]":
    """Read the books and everything else a report says, and what was recorded about documents."""
    from gristmill.dashboard.funnel import StageBytes
    from gristmill.dashboard.measures import measures_of
    from gristmill.dashboard.run_data import read_run
    from gristmill.metrics.observation_files import load_observations

    run = RunFiles(place)
    seen = load_observations(place, file_system(place) if is_url(place) else None)
    counts = {name: own for segment in run.segments() for name, own in segment.counts.items()}
    sizes = {name: StageBytes(own.bytes_out, own.dropped_bytes) for name, own in counts.items()}
    return read_run(run, examples=False), measures_of(seen), sizes


def read_history_points(place: str) -> "HistoryPoints":
    """Read what was written down about the run's progress. Ten hours of it take more memory than all of the server."""
    from gristmill.dashboard.history_points import history_points
    from gristmill.metrics.history import read_history

    return history_points(read_history(RunFiles(place).read("metrics.jsonl") or b""))


def read_timeline(place: str) -> "Timeline":
    """Read what was scheduled when; a timeline that says why if that cannot be known."""
    from gristmill.dashboard.timeline import Timeline

    if is_url(place):
        return Timeline(problem="the schedule is shown of runs on a disk only")
    from gristmill.backends.schedules import RunSchedule
    from gristmill.engine.spans import Mark, Span, merge_spans

    try:
        schedule = RunSchedule(Path(place))
        shown = list(schedule)
    except (GristmillError, OSError) as error:
        return Timeline(problem=str(error))
    timeline = Timeline(groups=tuple(group.name for group in schedule.groups), problem=schedule.problem)
    spans = merge_spans([one for one in shown if isinstance(one, Span)], MOST_SPANS)
    for span in sorted(spans, key=lambda s: (s.group, s.worker, s.lane, s.start_s)):
        number = timeline.add(span.kind, span.worker, span.group, span.lane, span.start_s, span.end_s)
        timeline.items.append(span.item_id)
        timeline.documents.append(span.documents_in or span.documents_out)  # a reader is given none
        if span.note:
            timeline.notes[number] = span.note
    for one in shown:
        if isinstance(one, Mark):
            if one.kind == "worker":
                timeline.names[one.worker] = one.text
            else:
                timeline.mark(one.kind, one.at_s, one.text)
        elif not isinstance(one, Span) and one.kind == "memory":
            timeline.sample(one.worker, one.at_s, one.value)
    return timeline


def read_trace(place: str) -> bytes:
    """Return the schedule as a Chrome trace."""
    from gristmill.backends.chrome_trace import chrome_trace
    from gristmill.backends.schedules import RunSchedule

    schedule = RunSchedule(Path(place))
    return b"".join(chrome_trace(schedule, schedule.groups, name=Path(place).name))
