"""How fast stages were on this hardware the last time: priors for the next run, in `profiles.json` of the user's cache.

A profile decides only how many workers a stage has in the first seconds. So a file that cannot be read or written is as
good as none, the last writer wins, and nothing here is an error. A pipeline that runs as one group has nothing to share
out, and leaves the file alone. GRISTMILL_PROFILES=off turns profiles off.
"""

import contextlib
import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import xxhash

from gristmill.engine.plan import Group, Plan
from gristmill.engine.policies.rates import MEASURED, Prior
from gristmill.runs.measured import MeasuredRun
from gristmill.storage.atomic_write import write_file
from gristmill.storage.cache_directory import cache_directory

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
        except (OSError, msgspec.DecodeError):
            return {}
        return {key: each for key, each in file.profiles.items() if _is_sane(each)} if file.version == VERSION else {}

    def add(self, profiles: Mapping[str, Profile]) -> None:
        """Keep these, in place of what was known, and forget the oldest if there are too many."""
        kept = {key: profile for key, profile in self.read().items() if key not in profiles} | dict(profiles)
        newest = dict(list(kept.items())[-MAX_PROFILES:])
        with contextlib.suppress(OSError):
            write_file(str(self.path), [msgspec.json.encode(_File(VERSION, newest))])


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
