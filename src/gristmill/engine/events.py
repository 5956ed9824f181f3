"""What happened, told to the scheduler by an executor. Names are in the past tense; all are frozen data.

`payload` is opaque here: the executor put it in and gets it back in commands (a descriptor of shared memory, an object
reference, the task itself). Structs rather than dataclasses because a run makes tens of thousands a second.
"""

from typing import NamedTuple

import msgspec

from gristmill.engine.faults import Fault
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks import StagedFile

Learnt = tuple[tuple[str, float], ...]  # "stage/name" and a value; not opened here either, but the smallest is kept
Fact = tuple[str, bytes]  # the stage that noted it, and what, as JSON: carried and sorted here, never opened


class Output(msgspec.Struct, frozen=True, array_like=True):
    """One task a worker made. `index` counts the outputs of one input task."""

    index: int
    item_id: str
    num_bytes: int
    payload: object
    num_items: int = 1


class Crumb(NamedTuple):
    """Where a worker was when it was last heard of: stage of the group, and rows of that stage's input.

    A task may become several on its way through the stages of a group, and each of them has rows of its own. `turn`
    tells them apart: it counts the calls that were made for the task, stage after stage, in the order they are made.
    """

    stage: int
    first_row: int
    end_row: int
    turn: int = 0


Condemned = tuple[Crumb, str]  # a document that is left out, and how the workers that held it ended


class Ticked(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The executor's clock. Seconds from an arbitrary origin, never going back."""

    now: float


class NodeJoined(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A machine may be used: its CPUs, the memory of each of its GPUs (GB), and bytes of memory for data."""

    node: int
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int


class NodeLost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A machine is gone with all its workers."""

    node: int


class SourceItem(msgspec.Struct, frozen=True, array_like=True):
    """One source partition."""

    index: int
    name: str
    num_bytes: int
    payload: object


class SourceListed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The next partitions, in answer to PullSource. If there are none, SourceExhausted is the answer."""

    items: tuple[SourceItem, ...]


class ListedAgain(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A partition that starts over, in answer to ListAgain."""

    item: SourceItem
    attempt: int


class SourceExhausted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """There are no more partitions."""


class WorkerReady(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker has finished its set-up and waits for tasks."""

    worker: int
    setup_s: float = 0.0


class WorkerSetupFailed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A stage's set-up raised; the worker has ended."""

    worker: int
    error: str


class WorkerLost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker died, or was killed. `crumb` says what it was doing."""

    worker: int
    cause: str
    crumb: Crumb | None = None


class WorkerExited(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker has ended through no fault of what it was doing: it was told to drain, or its server died."""

    worker: int


class TaskEmitted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A task that streams has made one more output and goes on."""

    worker: int
    task: int
    output: Output


class TaskStepped(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A call has come a step further, to another stage or another document: its deadline starts again.

    `unhurried`: the stage it has come to has no deadline, though others of its group have one.
    """

    worker: int
    task: int
    unhurried: bool = False


class TaskFinished(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A task is done. `counts` has one entry for each stage of the group, or none if no document was in it.

    `files` are what writers wrote; `side_files` hold rejected and quarantined documents; `facts` are the stages' own.
    """

    worker: int
    task: int
    outputs: tuple[Output, ...]
    useful_s: float
    counts: tuple[StageCounts, ...]
    side_files: tuple[StagedFile, ...] = ()
    facts: tuple[Fact, ...] = ()
    files: tuple[StagedFile, ...] = ()
    learnt: Learnt = ()


class TaskRaised(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A task's stage raised, and whose fault that is.

    `divisible`: it holds documents and will be taken apart, so what it has streamed so far will not come again.
    """

    worker: int
    task: int
    stage: str
    error: str
    fault: Fault = Fault.DOCUMENT
    divisible: bool = False


class Committed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A root's record is in the ledger and on disk."""

    root: int


class OutputsLost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A root cannot be committed: final tasks of it were on a machine that is gone. Its outputs have been let go."""

    root: int


class MemorySampled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The most memory a worker has held so far."""

    worker: int
    rss_bytes: int


class Cancelled(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The user wants the run to stop."""

    reason: str = "cancelled"


Event = (
    Ticked
    | NodeJoined
    | NodeLost
    | SourceListed
    | ListedAgain
    | SourceExhausted
    | WorkerReady
    | WorkerSetupFailed
    | WorkerLost
    | WorkerExited
    | TaskEmitted
    | TaskStepped
    | TaskFinished
    | TaskRaised
    | Committed
    | OutputsLost
    | MemorySampled
    | Cancelled
)
