"""Events survive the log unchanged, and a hash of commands says everything about them."""

import math
import types
from typing import Union, get_args, get_origin

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import letters

from gristmill.engine import commands as c
from gristmill.engine import event_log
from gristmill.engine import events as e
from gristmill.engine.breaker import QuarantineLimit
from gristmill.engine.faults import Fault
from gristmill.engine.plan import Group
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import ConfigError, ReadError
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.resources import Resources
from gristmill.tasks import StagedFile
from gristmill.testing.virtual_run import group

int64 = st.integers(-(2**63), 2**63 - 1)
PLAIN = {
    int: int64,
    float: st.floats(allow_nan=False),
    str: letters,
    bytes: st.binary(max_size=9),
    bool: st.booleans(),
    object: int64,  # a payload, as the pools number them
    type(None): st.none(),
    c.Care: st.sampled_from(c.Care),
    Fault: st.sampled_from(Fault),
    StageCounts: st.builds(
        StageCounts,
        int64,
        read=int64,
        process_s=st.floats(0, 9),
        dropped=st.dictionaries(letters, int64),
        counted=st.dictionaries(letters, int64),
        observed=st.dictionaries(letters, st.dictionaries(int64, int64)),
    ),
    StagedFile: st.builds(StagedFile, letters, letters, int64, int64, letters),
}


def values(kind):
    """Everything that a field of this type may hold."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return st.one_of([values(argument) for argument in arguments])
    if origin is list or arguments[1:] == (...,):
        return st.lists(values(arguments[0]), max_size=3).map(origin)
    if origin is tuple:
        return st.tuples(*map(values, arguments))
    if issubclass(kind, tuple):  # a NamedTuple
        return st.builds(kind, *map(values, kind.__annotations__.values()))
    return st.builds(kind, *(values(field.type) for field in msgspec.structs.fields(kind)))


@pytest.mark.parametrize("kind", get_args(e.Event), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_event_comes_back_as_it_went_in(kind, data):
    events = tuple(data.draw(st.lists(values(kind), max_size=3)))

    assert event_log.decode_events(event_log.encode_events(events)) == events


@pytest.mark.parametrize("kind", get_args(c.Command), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_command_is_encoded_without_loss(kind, data):
    command = data.draw(values(kind))
    encoded = msgspec.msgpack.encode([command])

    assert msgspec.msgpack.decode(encoded, type=list[c.Command]) == [command]
    assert event_log.hash_commands([command]) == event_log.hash_commands(
        msgspec.msgpack.decode(encoded, type=list[c.Command])
    )


def test_commands_of_one_shape_and_different_kinds_are_told_apart():
    hashes = {event_log.hash_commands([kind(3)]) for kind in (c.DrainWorker, c.Publish, c.PullSource, c.Release)}

    assert len(hashes) == 4


def test_the_order_of_commands_counts():
    first, second = c.Publish(1), c.Publish(2)

    assert event_log.hash_commands([first, second]) != event_log.hash_commands([second, first])


def test_the_hash_is_pinned_because_it_is_stored():
    assert f"{event_log.hash_commands([c.StartWorker(1, 0, 0, (2,)), c.Finish('finished')]):016x}" == "4ecc3f7e1da64f02"


def test_infinities_and_not_a_number_survive():
    body = event_log.encode_events((e.Ticked(math.inf), e.Ticked(math.nan)))
    one, other = event_log.decode_events(body)

    assert one.now == math.inf
    assert math.isnan(other.now)


class Name(str):
    """A user's own kind of text."""


def test_numbers_of_numpy_and_subclasses_of_text_are_written_as_plain_values():
    output = e.Output(np.int64(1), Name("a"), np.uint32(7), 0)
    [event] = event_log.decode_events(event_log.encode_events((e.TaskEmitted(0, 0, output),)))

    assert event.output == e.Output(1, "a", 7, 0)
    assert type(event.output.item_id) is str


def test_text_that_has_no_utf8_is_written_all_the_same_and_hashes_alike_in_a_replay():
    lost = e.WorkerLost(1, "cannot read \udcff.jsonl")
    [replayed] = event_log.decode_events(event_log.encode_events((lost,)))

    assert replayed.cause == r"cannot read \udcff.jsonl"
    assert event_log.hash_commands([c.KillWorker(1, lost.cause)]) == event_log.hash_commands(
        [c.KillWorker(1, replayed.cause)]
    )


def test_a_payload_that_is_no_plain_value_is_refused_by_name():
    with pytest.raises(TypeError, match="expected numbers, strings and tuples; got object"):
        event_log.encode_events((e.TaskEmitted(0, 0, e.Output(0, "a", 1, object())),))


def test_a_header_makes_the_same_scheduler():
    groups = (group(0, batch_size=4, num_workers=2), group(1, resources=Resources(gpus=0.5), deadline_s=9.0))
    config = SchedulerConfig(num_sources=3, limit=QuarantineLimit(0.25), worker_max_lifetime_s=60.0)
    header = event_log.decode_header(event_log.encode_header(groups, config, version="1.2.3"))
    scheduler = header.scheduler()

    assert header.version == "1.2.3"
    assert scheduler.config == config
    assert scheduler.num_stages == 2
    for made, original in zip(scheduler.groups, groups, strict=True):
        assert made.plan.stages == ()
        assert msgspec.structs.asdict(header.groups[original.index]) == {
            name: getattr(original, name) for name in event_log.GroupShape.__struct_fields__
        }


def test_a_header_holds_everything_about_a_group_but_its_stages():
    assert {"stages", *event_log.GroupShape.__struct_fields__} == set(Group.__struct_fields__)


def test_a_header_takes_numbers_of_numpy():
    groups = (group(0, num_workers=np.int64(2), resources=Resources(cpus=np.float64(0.5))),)
    [shape] = event_log.decode_header(event_log.encode_header(groups, SchedulerConfig(1), version="1")).groups

    assert (shape.num_workers, shape.resources) == (2, Resources(cpus=0.5))


@pytest.mark.parametrize("limit", [3, 3.0, None])
def test_a_limit_stays_a_number_or_a_share(limit):
    config = SchedulerConfig(num_sources=1, limit=QuarantineLimit(limit))
    found = event_log.decode_header(event_log.encode_header((), config, version="1")).config.limit.most

    assert (found, type(found)) == (limit, type(limit))


def test_a_log_of_another_format_is_refused():
    with pytest.raises(ConfigError, match=f"expected format {event_log.FORMAT}; got 99"):
        event_log.decode_header(msgspec.msgpack.encode({"format": 99}))


@pytest.mark.parametrize("body", [b"", b"\x01", b"\x80", b"gristmill"])
def test_bytes_that_are_no_header_are_refused(body):
    with pytest.raises(ReadError, match="expected a header"):
        event_log.decode_header(body)


def test_bytes_that_are_no_events_are_refused():
    with pytest.raises(ReadError, match="expected events"):
        event_log.decode_events(msgspec.msgpack.encode([["NoSuchEvent", 1]]))
