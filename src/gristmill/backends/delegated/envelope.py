"""What travels: a task on its way through the other engine, and the reports about it. Plain data, no behaviour."""

from dataclasses import dataclass
from typing import NamedTuple

from gristmill.engine.commands import Care
from gristmill.engine.events import Condemned, Crumb, Fact, Learnt
from gristmill.engine.plan import AnyTask
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks import StagedFile
from gristmill.tasks.serialization import dump, dumped_size, load, write_into


class Envelope(NamedTuple):
    """A task, packed. `root` is the source partition it comes from."""

    root: int
    item_id: str
    header: bytes
    body: bytes


def pack(root: int, item_id: str, task: AnyTask) -> Envelope:
    """Pack a task for another process."""
    parts = dump(task)
    if isinstance(parts[1], bytes):
        return Envelope(root, item_id, parts[0], parts[1])
    body = bytearray(dumped_size(parts))
    write_into(parts, memoryview(body))
    return Envelope(root, item_id, parts[0], bytes(body))


def unpack(envelope: Envelope) -> AnyTask:
    """Make the task again."""
    return load(envelope.header, envelope.body)


class Ticket(NamedTuple):
    """How a worker has to handle a task, given what became of earlier attempts."""

    care: Care = Care.NORMAL
    attempt: int = 0
    condemned: tuple[Condemned, ...] = ()
    cause: str = ""
    pause_s: float = 0.0
    out_of_patience: bool = False  # an error declared transient has lasted too long
    given_up: bool = False  # not to be tried again: its input has changed, or the run stops
    step_from: Crumb | None = None  # documents before this one have been tried alone


@dataclass(frozen=True)
class Receipt:
    """A task is done in a group. `outputs` tasks go on to the next."""

    group: int
    root: int
    item_id: str
    outputs: int
    counts: tuple[StageCounts, ...]
    files: tuple[StagedFile, ...]
    side_files: tuple[StagedFile, ...]
    facts: tuple[Fact, ...]
    learnt: Learnt = ()
    passed: tuple[str, ...] = ()  # stages that some document of it has passed
    given_up: str = ""  # why nothing that comes of its partition counts: the input is not what was planned
    final: tuple[tuple[str, object], ...] = ()  # item and reference of tasks that leave the pipeline, if wanted
    useful_s: float = 0.0  # how long a worker worked on it
