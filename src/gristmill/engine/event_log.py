"""The event log of a run, as bytes: enough to make the same scheduler elsewhere and to see that it decides the same.

    frame = length u32 │ checksum u32 │ commands u64 │ body          little-endian; the body is msgpack
    file  = frame of the header, then one frame for every call of `Scheduler.handle`

A body holds the events of the call; `commands` is the xxh3_64 of the commands it returned. The commands themselves are
not kept: they can be made again from the events. How events and commands are laid out is declared where they are
defined (arrays that begin with the class name), so that encoding is one call into C.

A payload is written as it is, so an executor that keeps a log uses numbers for payloads and keeps what they stand for
to itself. Opening and writing files is `backends/scheduled/kept_records.py`'s.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import xxhash

from gristmill.engine.commands import Command
from gristmill.engine.events import Event
from gristmill.engine.plan import Group
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import ConfigError, ReadError
from gristmill.stages.resources import Resources

FORMAT = 5
FRAME = struct.Struct("<IIQ")  # length of the body, its checksum, hash of the commands
NO_COMMANDS = 0  # in place of the hash: the run ended while the scheduler was handling the events


class GroupShape(msgspec.Struct, frozen=True):
    """A group as the scheduler sees it: everything but its stages."""

    index: int
    names: tuple[str, ...]
    first_stage: int
    resources: Resources
    batch_size: int
    num_workers: int | None
    deadline_s: float | None
    expected_s: float | None = None
    may_run_twice: bool = False
    batch_items: int | None = None
    batch_bytes: int | None = None
    lanes: int = 1
    cancels: bool = False


class Header(msgspec.Struct, frozen=True):
    """What a scheduler was made of. `version` is that of the gristmill that made its decisions."""

    format: int
    version: str
    groups: tuple[GroupShape, ...]
    config: SchedulerConfig

    def scheduler(self) -> Scheduler:
        """A new scheduler like the one that was recorded."""
        groups = (Group(stages=(), **msgspec.structs.asdict(shape)) for shape in self.groups)
        return Scheduler(tuple(groups), self.config)


class Frame(NamedTuple):
    """One call of the scheduler, or the header. `is_sound` is False if the bytes are not those that were written."""

    body: bytes
    commands_hash: int
    is_sound: bool


def encode_events(events: Sequence[Event]) -> bytes:
    """The body of a frame."""
    return _encode(events)


def hash_commands(commands: Sequence[Command]) -> int:
    """Say in 64 bits what the scheduler wants done; never `NO_COMMANDS`."""
    return xxhash.xxh3_64_intdigest(_encode(commands)) or 1


def _encode(value: Sequence[Event] | Sequence[Command] | Header) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_printable(msgspec.to_builtins(value, enc_hook=_plain)))


def _plain(value: object) -> object:
    """The plain value of a numpy number, or of a user's own kind of text: stages may count and name with those."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"event log: expected numbers, strings and tuples; got {type(value).__name__}")
    return item()


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)


def encode_header(groups: Sequence[Group], config: SchedulerConfig, *, version: str) -> bytes:
    """The body of the first frame."""
    names = GroupShape.__struct_fields__
    shapes = tuple(GroupShape(**{name: getattr(group, name) for name in names}) for group in groups)
    return _encode(Header(FORMAT, version, shapes, config))


def decode_header(body: bytes) -> Header:
    """The inverse of `encode_header`. Raises ConfigError for a log of another format."""
    try:
        found = msgspec.msgpack.decode(body)["format"]
        if found == FORMAT:
            return msgspec.msgpack.decode(body, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ReadError(f"event log: expected a header; {error}") from None
    raise ConfigError(f"event log: expected format {FORMAT}; got {found!r}, written by another version of gristmill")


_decoder = msgspec.msgpack.Decoder(tuple[Event, ...])


def decode_events(body: bytes) -> tuple[Event, ...]:
    """The inverse of `encode_events`."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"event log: expected events; {error}") from None


def frame(body: bytes, commands_hash: int = NO_COMMANDS) -> bytes:
    """A body with what belongs before it."""
    return FRAME.pack(len(body), checksum(body), commands_hash) + body


def checksum(body: bytes) -> int:
    """32 bits that tell a damaged body from a scheduler that has changed its mind."""
    return xxhash.xxh3_64_intdigest(body) & 0xFFFFFFFF


def _printable(value: object) -> object:
    """The value without lone surrogates, which UTF-8 cannot encode. File names and error messages may hold them.

    The scheduler passes text on as it is, so commands made from the changed events are the commands changed this way.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [_printable(part) for part in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(part) for key, part in value.items()}
    return value
