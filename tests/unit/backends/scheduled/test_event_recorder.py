"""The log on disk: written in order, readable up to wherever it was cut, and never the end of a run."""

import io

import pytest

from gristmill.backends.scheduled import kept_records as event_recorder
from gristmill.backends.scheduled.kept_records import EventRecorder, read_frames
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.event_log import FRAME, NO_COMMANDS, decode_events, decode_header, hash_commands
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.testing.virtual_run import group

CONFIG = SchedulerConfig(num_sources=2)


def recorder(directory):
    return EventRecorder(directory, (group(0),), CONFIG)


def frames(data):
    return list(read_frames(io.BytesIO(data)))


@pytest.fixture
def data(tmp_path):
    """A log of a header and three calls."""
    made = recorder(tmp_path)
    for number in range(3):
        made.took((e.Ticked(float(number)), e.Committed(number)))
        made.gave([c.Publish(number)])
    made.close()
    return (tmp_path / "events.log").read_bytes()


def test_what_was_recorded_is_read_in_order(data):
    header, *calls = frames(data)

    assert decode_header(header.body).config == CONFIG
    assert [decode_events(call.body)[1] for call in calls] == [e.Committed(n) for n in range(3)]
    assert [call.commands_hash for call in calls] == [hash_commands([c.Publish(n)]) for n in range(3)]


def test_a_log_cut_anywhere_is_read_up_to_its_last_complete_frame(data):
    whole = frames(data)
    ends = [sum(FRAME.size + len(frame.body) for frame in whole[: n + 1]) for n in range(len(whole))]

    for cut in range(len(data)):
        assert frames(data[:cut]) == whole[: sum(end <= cut for end in ends)]


def test_a_changed_byte_of_a_body_makes_its_frame_unsound(data):
    whole = frames(data)
    last = len(data) - 1
    damaged = frames(data[:last] + bytes([data[last] ^ 1]))

    assert [frame.is_sound for frame in damaged] == [True] * (len(whole) - 1) + [False]


@pytest.mark.parametrize(("interval_s", "calls"), [(0.0, 1), (1e9, 0)])
def test_what_a_killed_driver_leaves_is_as_old_as_the_last_interval(tmp_path, monkeypatch, interval_s, calls):
    monkeypatch.setattr(event_recorder, "FLUSH_S", interval_s)
    made = recorder(tmp_path)
    made.took((e.Ticked(1.0),))
    made.gave([])
    on_disk = frames((tmp_path / "events.log").read_bytes())
    made.close()

    assert len(on_disk) == 1 + calls
    assert len(frames((tmp_path / "events.log").read_bytes())) == 2


def test_events_the_scheduler_did_not_survive_are_kept(tmp_path):
    made = recorder(tmp_path)
    made.took((e.Cancelled(),))
    made.close()
    _, call = frames((tmp_path / "events.log").read_bytes())

    assert decode_events(call.body) == (e.Cancelled(),)
    assert call.commands_hash == NO_COMMANDS


def test_a_new_log_replaces_the_one_of_an_earlier_driver(tmp_path, data):
    recorder(tmp_path).close()

    assert len(frames((tmp_path / "events.log").read_bytes())) == 1


def test_a_log_that_cannot_be_opened_is_a_message_and_no_error(tmp_path):
    made = recorder(tmp_path / "gone")
    made.took((e.Ticked(0.0),))
    made.gave([])
    made.close()

    assert "events.log: the event log ends early" in made.problem


def test_a_value_that_cannot_be_written_ends_the_log_and_not_the_run(tmp_path):
    made = recorder(tmp_path)
    made.took((e.Ticked(1.0),))
    made.gave([])
    made.took((e.TaskEmitted(0, 0, e.Output(0, "a", object(), 0)),))
    made.gave([c.Publish(0)])
    made.close()

    assert "got object" in made.problem
    assert len(frames((tmp_path / "events.log").read_bytes())) == 2


@pytest.mark.skipif("not __import__('pathlib').Path('/dev/full').exists()", reason="needs a disk that is always full")
def test_a_full_disk_ends_the_log_and_not_the_run(tmp_path):
    (tmp_path / "events.log").symlink_to("/dev/full")
    made = recorder(tmp_path)
    made.took((e.Ticked(0.0),))
    made.gave([])
    made.close()

    assert "No space left" in made.problem
