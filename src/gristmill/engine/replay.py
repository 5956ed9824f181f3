"""Replay of an event log: a new scheduler gets the same events and must give the same commands (I13).

Pure like the scheduler: frames in, steps out. It stops at the first difference, because what follows answers
commands that were never given. Where frames come from is `backends/scheduled/kept_records.py`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gristmill.engine import invariants
from gristmill.engine.commands import Command
from gristmill.engine.event_log import NO_COMMANDS, Frame, Header, decode_events, decode_header, hash_commands
from gristmill.engine.events import Event
from gristmill.engine.scheduler import Scheduler
from gristmill.errors import EngineBug, ReadError

SHOWN_CHARS = 300  # of the commands in a message


class Step(NamedTuple):
    """One call of the scheduler. Events are counted from 1; `now` is the run's clock."""

    first_event: int
    events: tuple[Event, ...]
    commands: list[Command]
    now: float


def read_header(frames: Iterator[Frame]) -> Header:
    """Take the first frame of a log."""
    first = next(frames, None)
    if first is None or not first.is_sound:
        raise ReadError("event log: expected a header; got " + ("nothing" if first is None else "damaged bytes"))
    return decode_header(first.body)


def replay(header: Header, frames: Iterable[Frame], *, check_invariants: bool = False) -> Iterator[Step]:
    """Yield every step of the run again.

    Raises EngineBug at the first event that is answered differently or leaves the scheduler in an impossible state, and
    ReadError at a frame that has been changed.
    """
    scheduler = header.scheduler()
    number = 1
    for frame in frames:
        if not frame.is_sound:
            raise ReadError(f"event {number}: expected the bytes that were written; the log is damaged here")
        events = decode_events(frame.body)
        yield _step(scheduler, number, events, frame.commands_hash, check_invariants=check_invariants)
        number += len(events)


def _step(
    scheduler: Scheduler, number: int, events: tuple[Event, ...], expected: int, *, check_invariants: bool
) -> Step:
    try:
        commands = scheduler.handle(*events)
        found = hash_commands(commands)
        if check_invariants:
            invariants.check(scheduler, commands)
    except EngineBug as error:
        raise EngineBug(f"event {number}: {error}") from error
    if expected not in (found, NO_COMMANDS):
        others = f" and the {len(events) - 1} after it" if len(events) > 1 else ""
        raise EngineBug(
            f"event {number}: expected commands with the hash {expected:016x} in answer to it{others}; "
            f"got {found:016x}: {_shortened(commands)}"
        )
    return Step(number, events, commands, scheduler.now)


def _shortened(commands: list[Command]) -> str:
    text = ", ".join(map(str, commands)) or "none"
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
