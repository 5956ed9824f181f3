"""What the scheduler wants done. Names are imperative; executors carry them out in order and decide nothing."""

from enum import Enum

import msgspec

from gristmill.engine.events import Condemned, Crumb, Fact, Learnt, Output
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks import StagedFile

EMIT_CREDITS = 2  # outputs a streaming worker may be ahead of its grants


class Care(Enum):
    """How carefully a worker handles a task, rising with every failure."""

    NORMAL = 0  # an exception is reported and the task comes back
    ISOLATE = 1  # an exception is narrowed down to documents, which are quarantined; given up where none passes
    PATIENT = 2  # the same, however many fail: other documents have passed the stage
    STEP = 3  # the task killed its workers: one document at a time, each announced before it is touched
    CONDEMN = 4  # do not touch it: quarantine it whole


class Assignment(msgspec.Struct, frozen=True, array_like=True):
    """One task for a worker. `condemned` documents are quarantined unread; `skip` outputs are known already."""

    task: int
    item_id: str
    payload: object
    care: Care
    attempt: int
    condemned: tuple[Condemned, ...]
    cause: str  # why it is handled with care, for the quarantine record if all of it is condemned
    skip: int
    out_of_patience: bool = (
        False  # an error declared transient has lasted too long: from now on it counts as a document's
    )
    step_from: Crumb | None = None  # the document the last worker died at: those before it have been tried alone


class StartWorker(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Start a process for a group, with these GPUs of the node to itself (or its share of one)."""

    worker: int
    group: int
    node: int
    gpus: tuple[int, ...]
    learnt: Learnt = ()  # by earlier workers of the group


class DrainWorker(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Let a worker finish what it has, run its teardown, and end."""

    worker: int


class KillWorker(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """End a worker now."""

    worker: int
    reason: str


class SendTask(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Give tasks to a worker; it takes the calls in order, and the tasks of a call together."""

    worker: int
    calls: list[list[Assignment]]


class RecallTask(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Tell a worker to skip these tasks if it has not begun them. They are no longer its own, whatever it does."""

    worker: int
    tasks: tuple[int, ...]


class GrantEmit(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Allow a streaming worker one more output."""

    worker: int
    task: int


class PullSource(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Ask for `count` more partitions."""

    count: int


class ListAgain(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Answer with ListedAgain of this partition and attempt: what was made of it is lost and is made again."""

    root: int
    attempt: int


class Release(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A payload is no longer needed."""

    payload: object


class Commit(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Everything that descends from a source partition is done: record that, then report Committed."""

    root: int
    name: str
    outputs: tuple[Output, ...]
    counts: tuple[StageCounts, ...]
    side_files: tuple[StagedFile, ...]
    facts: tuple[Fact, ...]
    files: tuple[StagedFile, ...]


class Publish(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The commit is durable: give the files their final names."""

    root: int


class Warn(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Tell the user that a worker has been at one thing for a suspiciously long time: a task, its set-up or its end.

    `task` is -1, and `item_id` empty, where it is not a task. `others` more of its group are late with the same.
    """

    worker: int
    task: int
    item_id: str
    running_s: float
    others: int = 0
    doing: str = "task"  # or "set-up", "end"


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Say something to those who watch the run."""

    text: str


class Finish(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The run is over. `error` is empty when all is well.

    `evidence` are files, under their temporary names, with the documents that failed where a stage lets none pass.
    """

    outcome: str  # finished | stopped | failed | quarantine_limit | spending | broken | machine | inputs_changed
    error: str = ""
    evidence: tuple[StagedFile, ...] = ()


Command = (
    StartWorker
    | DrainWorker
    | KillWorker
    | SendTask
    | RecallTask
    | GrantEmit
    | PullSource
    | ListAgain
    | Release
    | Commit
    | Publish
    | Warn
    | Tell
    | Finish
)
