"""`Observer`: what a worker records about the documents of a task, as a file that is published with its partition.

What stages measured and dropped in one call is counted in one go, when the call is over and its results count: nothing
is recorded of a trial, or of an attempt that failed. The file of a task is a side file, like rejects: it is named in
the ledger line of the partition or has not happened. How values are counted and examples chosen is in `tallying.py`,
which is loaded when there is something to count.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gristmill.metrics.observation_files import SUFFIX, encode_parts
from gristmill.metrics.observation_parts import Part, packed
from gristmill.metrics.observations import Observations
from gristmill.stages.context import Observation, StageContext
from gristmill.stages.measured import Gone
from gristmill.storage.atomic_write import explained, force_file, stage_file
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import Batch, StagedFile
from gristmill.worker.job import Observed, Place
from gristmill.worker.slicing import Slicer

if TYPE_CHECKING:
    from gristmill.worker.tallying import Tallying

MOST_PARTS = 64  # of a file, before they are added up

Reported = tuple[Place, StageContext]


class Observer:
    """Records what the stages of one group report."""

    def __init__(self, observation: Observation, directory: str, options: StorageOptions | None) -> None:
        self._observation = observation
        self._directory = directory.rstrip("/")
        self._options = options
        self._made: Tallying | None = None

    @property
    def _tallying(self) -> "Tallying":
        if self._made is None:
            from gristmill.worker.tallying import Tallying

            self._made = Tallying(is_full=self._observation.level == "full")
        return self._made

    def observe(self, reported: Sequence[Reported]) -> Observed | None:
        """Return what was reported in one call, by all its stages."""
        measured = [(place, one) for place, context in reported for one in context.measured or ()]
        gone = [(place, one) for place, context in reported for one in context.gone or ()]
        if not measured and not gone:
            return None
        observed = self._tallying.tally(measured, gone)
        slicer = Slicer(self._observation.slices)
        batch: Batch[Any] | None = None
        for place, one in gone:
            of = one.of if isinstance(one.of, Batch) else one.of.batch
            if of is not batch:  # mostly it is the same as for the one before
                batch, is_sliced = of, slicer.slices_of(of)
            if is_sliced:
                slicer.drop(of, one.rows, place.name, one.reason)
        observed.part.slices = slicer.slices()
        return observed

    def observe_written(self, batch: object, gone: Iterable[Gone] | None = None) -> Observed | None:
        """Return what is recorded of documents that leave the pipeline at its end; `gone` did not get that far."""
        slicer = Slicer(self._observation.slices)
        if isinstance(batch, Batch):
            lost = {int(row) for one in gone or () for row in one.rows}
            slicer.write(batch, [row for row in range(batch.num_items) if row not in lost] if lost else None)
        slices = slicer.slices()
        return Observed(Part(slices=slices)) if slices else None

    def write(self, observed: list[Observed], name: str, context: StageContext) -> StagedFile:
        """Write what was recorded of a task. Like quarantine it is for its user only, unless the run is shared."""
        final = f"{self._directory}/{name}{SUFFIX}"
        with explained(final):
            temporary = context.staging_path(self._directory, f"{name}{SUFFIX}") or final
            content = encode_parts([one.part for one in observed])
            written = stage_file(temporary, [content], storage_options=self._options)
            if context.durable:
                force_file(written.path)
        if self._made is not None:
            self._made.recorded.expect(final, observed)
        # Counted as 0 documents, so that a search for records of documents in side files skips it.
        return StagedFile(written.path, final, written.num_bytes, 0, written.checksum)


def fewer(observed: list[Observed]) -> list[Observed]:
    """The same observations in one part, if there are many."""
    if len(observed) <= MOST_PARTS:
        return observed
    total = Observations()
    for one in observed:
        total.add(one.part.unpacked())
    return [Observed(packed(total))]
