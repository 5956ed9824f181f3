"""What the scheduler wants done. Names are imperative; executors carry them out in order and decide nothing."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from gristmill.engine.events import Crumb, Output
from gristmill.metrics.stage_counts import StageCounts
from gristmill.tasks import StagedFile


class Care(Enum):
    """How carefully a worker handles a task, rising with every failure."""

    NORMAL = 0  # an exception is reported and the task comes back
    ISOLATE = 1  # an exception is narrowed down to documents, which are quarantined
    STEP = 2  # the task killed its workers: one document at a time, each announced before it is touched
    CONDEMN = 3  # do not touch it: quarantine it whole


class Assignment(NamedTuple):
    """One task for a worker. `condemned` documents are quarantined unread; `skip` outputs are known already."""

    task: int
    item_id: str
    payload: object
    care: Care
    attempt: int
    condemned: tuple[Crumb, ...]
    cause: str  # why it is handled with care, for the quarantine record
    skip: int


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start a process for a group, with these GPUs of the node to itself (or its share of one)."""

    worker: int
    group: int
    node: int
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DrainWorker:
    """Let a worker finish what it has, run its teardown, and end."""

    worker: int


@dataclass(frozen=True, slots=True)
class KillWorker:
    """End a worker now."""

    worker: int
    reason: str


@dataclass(frozen=True, slots=True)
class SendTask:
    """Give tasks to a worker; it takes them in order. `batch` of them go into one call."""

    worker: int
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class GrantEmit:
    """Allow a streaming worker one more output."""

    worker: int
    task: int


@dataclass(frozen=True, slots=True)
class PullSource:
    """Ask for so many more partitions."""

    count: int


@dataclass(frozen=True, slots=True)
class Release:
    """A payload is no longer needed."""

    payload: object


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that descends from a source partition is done: write it down, then say Committed."""

    root: int
    name: str
    outputs: tuple[Output, ...]
    counts: tuple[StageCounts, ...]
    side_files: tuple[StagedFile, ...]
    lines_read: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """The commit is durable: give the files their final names."""

    root: int


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the user that a task has been running for suspiciously long."""

    worker: int
    task: int
    item_id: str
    running_s: float


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over. `error` is empty when all is well."""

    outcome: str  # finished | stopped | failed | quarantine_limit
    error: str = ""


Command = (
    StartWorker
    | DrainWorker
    | KillWorker
    | SendTask
    | GrantEmit
    | PullSource
    | Release
    | Commit
    | Publish
    | Warn
    | Finish
)
