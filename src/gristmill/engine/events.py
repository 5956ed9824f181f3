"""What happened, told to the scheduler by an executor. Names are in the past tense; all are frozen data.

`payload` is opaque here: the executor put it in and gets it back in commands (a descriptor of shared memory, an object
reference, the task itself).
"""

from dataclasses import dataclass
from typing import NamedTuple

from gristmill.metrics.stage_counts import StageCounts
from gristmill.tasks import StagedFile


class Output(NamedTuple):
    """One task a worker made. `index` counts the outputs of one input task."""

    index: int
    item_id: str
    num_bytes: int
    payload: object


class Crumb(NamedTuple):
    """Where a worker was when it was last heard of: stage of the group, and rows of that stage's input."""

    stage: int
    first_row: int
    end_row: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """The executor's clock. Seconds from an arbitrary origin, never going back."""

    now: float


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A machine may be used: its CPUs, the memory of each of its GPUs (GB), and bytes of memory for data."""

    node: int
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A machine is gone with all its workers."""

    node: int


class SourceItem(NamedTuple):
    """One source partition."""

    index: int
    name: str
    num_bytes: int
    payload: object


@dataclass(frozen=True, slots=True)
class SourceListed:
    """The next partitions, in answer to PullSource."""

    items: tuple[SourceItem, ...]


@dataclass(frozen=True, slots=True)
class SourceExhausted:
    """There are no more partitions."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker has finished its set-up and waits for tasks."""

    worker: int
    setup_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerSetupFailed:
    """A stage's set-up raised; the worker has ended."""

    worker: int
    error: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died, or was killed. `crumb` says what it was doing."""

    worker: int
    cause: str
    crumb: Crumb | None = None


@dataclass(frozen=True, slots=True)
class WorkerExited:
    """A worker that was told to drain has done so."""

    worker: int


@dataclass(frozen=True, slots=True)
class TaskEmitted:
    """A task that streams has made one more output and goes on."""

    worker: int
    task: int
    output: Output


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task is done. `counts` has one entry for each stage of the group; `side_files` hold rejects and quarantine."""

    worker: int
    task: int
    outputs: tuple[Output, ...]
    useful_s: float
    counts: tuple[StageCounts, ...]
    side_files: tuple[StagedFile, ...] = ()
    lines_read: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRaised:
    """A task's stage raised. `transient` if the stage declares this kind of error as nobody's fault."""

    worker: int
    task: int
    stage: str
    error: str
    transient: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """A root's record is in the ledger and on disk."""

    root: int


@dataclass(frozen=True, slots=True)
class MemorySampled:
    """The most memory a worker has held so far."""

    worker: int
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user wants the run to stop."""

    reason: str = "cancelled"


Event = (
    Ticked
    | NodeJoined
    | NodeLost
    | SourceListed
    | SourceExhausted
    | WorkerReady
    | WorkerSetupFailed
    | WorkerLost
    | WorkerExited
    | TaskEmitted
    | TaskFinished
    | TaskRaised
    | Committed
    | MemorySampled
    | Cancelled
)
