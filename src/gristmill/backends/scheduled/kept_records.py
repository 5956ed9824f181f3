"""What is kept of a run for later: its event log, and how fast its stages were."""

import contextlib
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import xxhash

from gristmill import __version__
from gristmill.engine.commands import Command
from gristmill.engine.event_log import (
    FRAME,
    NO_COMMANDS,
    Frame,
    checksum,
    encode_events,
    encode_header,
    frame,
    hash_commands,
)
from gristmill.engine.events import Event
from gristmill.engine.plan import Group, Plan
from gristmill.engine.policies.rates import MEASURED, Prior
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.runs.progress import MeasuredRun
from gristmill.storage.atomic_write import write_file
from gristmill.storage.cache_directory import cache_directory

# How fast stages were on this hardware the last time: priors for the next run, in `profiles.json` of the user's cache.
#
# A profile decides only how many workers a stage has in the first seconds. So a file that cannot be read or written is
# as good as none, the last writer wins, and nothing here is an error. A pipeline that runs as one group has nothing to
# share out, and leaves the file alone. GRISTMILL_PROFILES=off turns profiles off.

VERSION = 1
MAX_PROFILES = 256  # about 30 kB; the oldest go
OFF = ("off", "0", "no", "false")


class Profile(msgspec.Struct, frozen=True):
    """One group of stages on one kind of machine."""

    service_s: float  # of a task
    setup_s: float
    fan_out: float


class _File(msgspec.Struct, frozen=True):
    version: int
    profiles: dict[str, Profile]


class ProfileStore:
    """The profiles of one user."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Profile]:
        """All profiles, the oldest first; none if there is no file or it is not one of ours."""
        try:
            file = msgspec.json.decode(self.path.read_bytes(), type=_File)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}
        return {key: each for key, each in file.profiles.items() if _is_sane(each)} if file.version == VERSION else {}

    def add(self, profiles: Mapping[str, Profile]) -> None:
        """Keep these, in place of what was known, and forget the oldest if there are too many."""
        kept = {key: profile for key, profile in self.read().items() if key not in profiles} | dict(profiles)
        newest = dict(list(kept.items())[-MAX_PROFILES:])
        with contextlib.suppress(OSError):
            # Not forced to disk: that takes as long as a small run, and a lost guess costs nothing but a guess.
            write_file(str(self.path), [msgspec.json.encode(_File(VERSION, newest))], forced=False)


def open_store(plan: Plan) -> ProfileStore | None:
    """Return the store a plan may use; None if profiles are turned off or would be of no use."""
    if os.environ.get("GRISTMILL_PROFILES", "").lower() in OFF or len(plan.groups) == 1:
        return None
    return ProfileStore(cache_directory() / "profiles.json")


def priors(plan: Plan, gpu_memory_gb: tuple[float, ...], store: ProfileStore | None) -> tuple[Prior | None, ...]:
    """What is known of every group before the run: what its stages say, else what an earlier run has measured."""
    known = {} if store is None else store.read()
    hardware = _hardware(gpu_memory_gb) if known else ""
    return tuple(_prior(group, known.get(_key(plan, group, hardware)) if known else None) for group in plan.groups)


def remember(plan: Plan, measured: MeasuredRun, store: ProfileStore) -> None:
    """Keep what a run has measured of the groups that did enough to be believed."""
    hardware = _hardware(measured.gpu_memory_gb)
    found = {
        _key(plan, group, hardware): Profile(each.service_s, each.setup_s, each.fan_out)
        for group, each in zip(plan.groups, measured.groups, strict=True)
        if each.tasks >= MEASURED and each.service_s > 0
    }
    if found:
        store.add(found)


def _hardware(gpu_memory_gb: tuple[float, ...]) -> str:
    """The kind of machine this is, as far as speed goes."""
    system = os.uname()
    gpus = ",".join(f"{gb:g}" for gb in gpu_memory_gb)
    return f"{system.sysname} {system.machine} {_processor()} gpus:{gpus}"


def _processor() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


def _prior(group: Group, profile: Profile | None) -> Prior | None:
    setup_s, fan_out = (profile.setup_s, profile.fan_out) if profile is not None else (0.0, 1.0)
    if group.expected_s is not None:
        return Prior(group.lanes / group.expected_s, setup_s, fan_out)
    return None if profile is None else Prior(group.lanes / profile.service_s, setup_s, fan_out)


def _key(plan: Plan, group: Group, hardware: str) -> str:
    """What the speed of a group depends on: its stages, what a worker has, how large the tasks are, the machine."""
    configs = dict(plan.stage_configs)
    stages = [
        (type(stage).__qualname__, configs.get(name, "")) for stage, name in zip(group.stages, group.names, strict=True)
    ]
    mean_bytes = plan.input_bytes / max(1, len(plan.sources))
    size = round(math.log2(mean_bytes)) if mean_bytes >= 1 else 0
    parts: tuple[object, ...] = (stages, str(group.resources), group.batch_size, size, hardware)
    parts += (group.lanes,) if group.lanes > 1 else ()
    return xxhash.xxh3_64(repr(parts).encode()).hexdigest()


def _is_sane(profile: Profile) -> bool:
    return all(map(math.isfinite, (profile.service_s, profile.setup_s, profile.fan_out))) and profile.service_s > 0


FILE_NAME = "events.log"
FLUSH_S = 1.0
BUFFER_BYTES = 1 << 20


EARLIER = 8  # logs of sessions before that are kept: events.1.log is the latest of them


def keep_earlier_logs(directory: Path) -> None:
    """Make room for the log of a new session; what cannot be renamed is replaced by it."""
    names = [FILE_NAME, *(f"events.{number}.log" for number in range(1, EARLIER + 1))]
    with contextlib.suppress(OSError):
        if not (directory / FILE_NAME).stat().st_size:
            return
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            with contextlib.suppress(FileNotFoundError):
                (directory / newer).replace(directory / older)


class EventRecorder:
    """Writes the log of one driver, from the beginning; `keep_earlier_logs` has put an earlier driver's aside.

    A log is an observation: if it cannot be written (the disk is full, a task's size is not a number), the
    run goes on without it, and `problem` says so.
    """

    def __init__(self, directory: Path, groups: Sequence[Group], config: SchedulerConfig) -> None:
        self.problem = ""
        self._path = directory / FILE_NAME
        self._pending: bytes | None = None
        self._flushed = time.monotonic()
        self._file: BinaryIO | None = None
        try:
            self._file = self._path.open("wb", buffering=BUFFER_BYTES)
            self._write(frame(encode_header(groups, config, version=__version__)))
        except (OSError, TypeError, OverflowError) as error:
            self._give_up(error)
        self._flush()

    def took(self, events: Sequence[Event]) -> None:
        """Note what the scheduler is about to be told."""
        if self._file is not None:
            try:
                self._pending = encode_events(events)
            except (TypeError, OverflowError) as error:
                self._give_up(error)

    def gave(self, commands: Sequence[Command]) -> None:
        """Note what it answered, before anything is done about it."""
        if self._pending is None:
            return
        try:
            self._write(frame(self._pending, hash_commands(commands)))
        except (TypeError, OverflowError) as error:
            self._give_up(error)
        self._pending = None
        now = time.monotonic()
        if now - self._flushed >= FLUSH_S:
            self._flushed = now
            self._flush()

    def close(self) -> None:
        """Finish the file. Events the scheduler failed at are the most interesting ones, and are kept too."""
        if self._pending is not None:
            self._write(frame(self._pending, NO_COMMANDS))
            self._pending = None
        self._flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            try:
                self._file.write(data)
            except OSError as error:
                self._give_up(error)

    def _flush(self) -> None:
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.problem = f"{self._path}: the event log ends early, so it cannot be replayed to the end: {error}"
        file, self._file, self._pending = self._file, None, None
        if file is not None:
            # What is in the buffer goes out if it can; a file whose disk is full is closed by the failing attempt.
            with contextlib.suppress(OSError):
                file.close()


def read_frames(file: BinaryIO) -> Iterator[Frame]:
    """Yield the complete frames of a log, the header first."""
    while len(start := file.read(FRAME.size)) == FRAME.size:
        length, expected, commands_hash = FRAME.unpack(start)
        body = file.read(length)
        if len(body) < length:
            return
        yield Frame(body, commands_hash, checksum(body) == expected)
