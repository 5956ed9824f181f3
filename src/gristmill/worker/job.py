"""What a worker is given to do, and what became of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gristmill.engine.commands import Care
from gristmill.engine.events import Condemned, Crumb, Fact
from gristmill.engine.faults import Fault
from gristmill.engine.plan import AnyTask
from gristmill.metrics.observation_parts import Part
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.context import NOTHING, Observation
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import StagedFile

if TYPE_CHECKING:  # loads numpy
    from gristmill.worker.measuring import Windows

Result = AnyTask | list[AnyTask] | Iterator[AnyTask] | None  # of one call of a stage with one task


class RunSettings(msgspec.Struct, frozen=True):
    """What every worker of a run knows."""

    session: str = ""
    rejects_path: str | None = None
    quarantine_path: str | None = None
    durable: bool = False  # files to disk before they are reported
    memory_limit: int = 0  # bytes for all processes together; 0 if not set
    most_bad: int | None = None  # documents that may fail in the whole run, if that is a number
    # How to reach rejects and quarantine, where they are on a store.
    side_options: tuple[StorageOptions | None, StorageOptions | None] = (None, None)
    stages_before: int = 0  # in earlier segments of the run: rejects of all of them lie in one directory
    observation: Observation = NOTHING
    measures_path: str | None = None  # where what was measured is kept; reached as the quarantine is
    log_format: str = ""  # of the driver; "" where a worker has it from its environment

    def __repr__(self) -> str:
        return f"RunSettings(session={self.session!r})"  # options may hold passwords


class Job(NamedTuple):
    """One task to run. `item_id` names what is made of it."""

    item_id: str
    task: AnyTask
    care: Care = Care.NORMAL
    attempt: int = 0
    condemned: tuple[Condemned, ...] = ()
    cause: str = ""
    out_of_patience: bool = False
    step_from: Crumb | None = None  # documents before this one have been tried alone, and have passed

    def blames_documents(self, fault: Fault) -> bool:
        """Whether a failure is followed up to single documents; any other ends the attempt."""
        return fault is Fault.DOCUMENT or (fault is Fault.TRANSIENT and self.out_of_patience)


class Place(NamedTuple):
    """A stage, as records about documents name it."""

    name: str
    number: int


class Observed(NamedTuple):
    """What was recorded in one call, and the examples known when it was over; None if nothing can be learnt from it."""

    part: Part
    windows: "Windows | None" = None
    version: int = 0  # of what was known before


class JobResult(msgspec.Struct, eq=False):
    """What became of a task."""

    counts: tuple[StageCounts, ...]
    outputs: list[tuple[str, AnyTask]] = []  # each result gets its own
    files: list[StagedFile] = []  # written by stages, to be published with the commit
    side_files: list[StagedFile] = []
    facts: list[Fact] = []
    notes: dict[tuple[int, str], int] = {}  # side files so far, by stage and item
    learnt: dict[str, float] = {}  # by stage and name
    useful_s: float = 0.0
    attempt: str = ""
    observed: list[Observed] = []  # about documents, to be written when the job is done
    turns: int = 0  # calls made with care so far: what a crumb's `turn` counts


class JobFailure(msgspec.Struct):
    """A stage raised on a task."""

    stage: str
    error: str
    fault: Fault
    divisible: bool = False  # it holds documents, and will be taken apart
