"""A log replays to the same commands, and the first event that does not is named."""

import pytest
from tests.property.test_scheduler_is_pure import steps, troubled_run

from gristmill.engine import events as e
from gristmill.engine.commands import Finish
from gristmill.engine.event_log import (
    NO_COMMANDS,
    Frame,
    decode_events,
    decode_header,
    encode_events,
    encode_header,
    hash_commands,
)
from gristmill.engine.policies import retry
from gristmill.engine.replay import read_header, replay
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.engine.state import Crew
from gristmill.errors import EngineBug, ReadError
from gristmill.testing.virtual_run import group


@pytest.fixture(scope="module")
def log():
    """The header and the frames of a run in which much goes wrong."""
    run = troubled_run()
    again = Scheduler(run.groups, run.config)
    frames = []
    for tick, others in steps(run.events):
        events = (tick, *others)
        body = encode_events(events)
        frames.append(Frame(body, hash_commands(again.handle(*events)), is_sound=True))
    return decode_header(encode_header(run.groups, run.config, version="1")), frames


def first_event_of(frames, index):
    return 1 + sum(len(decode_events(frame.body)) for frame in frames[:index])


def changed(frames, index, *events):
    return [*frames[:index], frames[index]._replace(body=encode_events(events)), *frames[index + 1 :]]


def find(frames, kind):
    """The place of the first frame with such an event after the run has got going."""
    return next(n for n, f in enumerate(frames) if n > 50 and any(isinstance(x, kind) for x in decode_events(f.body)))


def test_the_whole_run_comes_out_again(log):
    header, frames = log
    found = list(replay(header, frames, check_invariants=True))

    assert len(found) == len(frames)
    assert sum(len(step.events) for step in found) == first_event_of(frames, len(frames)) - 1
    assert isinstance(found[-1].commands[-1], Finish)


def test_events_are_counted_from_one_over_all_steps(log):
    header, frames = log

    assert [step.first_event for step in replay(header, frames)] == [
        first_event_of(frames, index) for index in range(len(frames))
    ]


def test_an_event_taken_out_of_the_log_is_noticed_where_it_was(log):
    header, frames = log
    index = find(frames, e.TaskFinished)
    tampered = changed(frames, index, decode_events(frames[index].body)[0])
    number = first_event_of(frames, index)

    with pytest.raises(EngineBug, match=rf"^event {number}: expected commands with the hash \w{{16}} .*; got \w{{16}}"):
        list(replay(header, tampered))


def test_everything_before_the_difference_is_replayed(log):
    header, frames = log
    index = find(frames, e.TaskRaised)
    replayed = replay(header, changed(frames, index, e.Cancelled()))

    assert [next(replayed).first_event for _ in range(index)] == [first_event_of(frames, n) for n in range(index)]
    with pytest.raises(EngineBug):
        next(replayed)


def test_damaged_bytes_are_not_taken_for_a_difference(log):
    header, frames = log
    frames = [*frames[:7], frames[7]._replace(is_sound=False)]

    with pytest.raises(ReadError, match=f"event {first_event_of(frames, 7)}: .* the log is damaged here"):
        list(replay(header, frames))


def test_events_without_an_answer_are_replayed_and_compared_with_nothing(log):
    header, frames = log
    cut = [*frames[:20], frames[20]._replace(commands_hash=NO_COMMANDS)]

    assert len(list(replay(header, cut))) == 21


def test_an_impossible_state_is_reported_with_the_event_that_led_there(monkeypatch):
    header = decode_header(encode_header((group(0),), SchedulerConfig(num_sources=1), version="1"))
    joined = Frame(encode_events((e.Ticked(0.0), e.NodeJoined(0, 1.0, (), 5))), NO_COMMANDS, is_sound=True)
    quiet = Frame(encode_events((e.Ticked(0.0),)), NO_COMMANDS, is_sound=True)
    monkeypatch.setattr(Crew, "add", lambda *_: None)  # a crew that forgets

    assert len(list(replay(header, [quiet, joined]))) == 2
    with pytest.raises(EngineBug, match=r"^event 2: I1 CPUs in use of node 0: expected 0; got 1"):
        list(replay(header, [quiet, joined], check_invariants=True))


def test_a_policy_with_another_number_is_noticed_at_the_first_event_it_answers_differently(log, monkeypatch):
    header, frames = log
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.1)
    scheduler = header.scheduler()
    answers = (hash_commands(scheduler.handle(*decode_events(frame.body))) for frame in frames)
    first = next(
        n for n, (frame, found) in enumerate(zip(frames, answers, strict=True)) if found != frame.commands_hash
    )

    with pytest.raises(EngineBug, match=f"^event {first_event_of(frames, first)}: expected commands with the hash"):
        list(replay(header, frames))


@pytest.mark.parametrize("frames", [[], [Frame(b"", 0, is_sound=False)]])
def test_a_log_without_a_sound_header_is_refused(frames):
    with pytest.raises(ReadError, match="expected a header"):
        read_header(iter(frames))
