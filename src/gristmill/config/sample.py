"""`first_documents`: a pipeline that runs on the first documents of its input only, for a quick trial.

The reading stages run here, one source partition after the other in the order of the input, and stop as soon as there
are enough documents; the rest of the pipeline then gets exactly these, under the names of their partitions. So a sample
is the same every time, and of a large input only the beginning is read. Lines that are not documents are quarantined
as in a full run, including those after the last document taken if they were in the part that was read.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import msgspec

from gristmill.errors import ConfigError
from gristmill.stages.base import AnyStage, AnyTask, CompositeStage, ProcessingStage
from gristmill.stages.context import Completer, CompletesRecords, StageContext
from gristmill.storage.file_system import file_system
from gristmill.tasks import Batch, FileGroupTask, Task
from gristmill.tasks.batch import divided

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

AnyBatch = Batch[object]


@dataclass
class _Part:
    """What was read of one source partition, and what its readers reported."""

    name: str
    batches: list[AnyBatch] = field(default_factory=list)
    contexts: list[StageContext] = field(default_factory=list)  # of its readers, in order


class _FirstDocuments(ProcessingStage[FileGroupTask, AnyBatch]):
    """Gives out what was read already, so that the books of the trial are kept as those of any run."""

    name = "first_documents"

    def __init__(self, parts: list[_Part], readers: list[AnyStage]) -> None:
        self._taken = {part.name: part for part in parts}
        self._readers = readers
        self._known_columns = _columns(readers)

    def columns(self) -> list[str] | None:
        return self._known_columns

    def partitions(self) -> list[AnyBatch]:
        tasks = [FileGroupTask("sample", partition_name=name) for name in self._taken]
        return cast("list[AnyBatch]", tasks)  # the source tasks of the stage after this one

    def process(self, task: FileGroupTask) -> AnyBatch | list[AnyBatch]:
        part = self._taken[task.partition_name]
        for reader, context in enumerate(part.contexts):
            self.context.quarantined += context.quarantined
            for fact in context.facts:
                self.context.note_fact((reader, msgspec.Raw(fact)))
        return part.batches[0] if len(part.batches) == 1 else part.batches  # a list would number the output files

    def completer(self, facts: Iterable[bytes]) -> Completer:
        """Have each reader complete the records with the facts that it noted."""
        noted: dict[int, list[bytes]] = {}
        for reader, fact in map(_fact.decode, facts):
            noted.setdefault(reader, []).append(bytes(fact))
        readers = [(self._readers[number], own) for number, own in noted.items()]
        completers = [reader.completer(own) for reader, own in readers if isinstance(reader, CompletesRecords)]
        # All of them are called, not only up to the first that changes something.
        return lambda entry: sum(complete(entry) for complete in completers) > 0


_fact = msgspec.json.Decoder(tuple[int, msgspec.Raw])


def first_documents(pipeline: "Pipeline", number: int) -> "Pipeline":
    """Return a pipeline that starts from the first `number` documents instead of reading its input."""
    from gristmill.pipeline import Pipeline

    stages = [stage for each in pipeline.stages for stage in _flat(each)]
    listed = stages[0].partitions() if stages else None
    if listed is None:
        raise ConfigError(f"pipeline {pipeline.name!r}: expected a reader as the first stage, to sample what it reads")
    parts: list[_Part] = []
    wanted, readers = number, 1
    for index, partition in enumerate(listed):
        if not wanted:
            break
        name = partition.partition_name if isinstance(partition, FileGroupTask) else ""
        part = _Part(name or f"part-{index:05d}")
        for batch, depth in _descend(partition, stages, 1):
            readers = depth
            part.batches.append(batch if batch.num_items <= wanted else divided(batch, range(wanted)))
            wanted -= part.batches[-1].num_items
            if not wanted:
                break
        part.contexts = _take_contexts(stages)
        parts.append(part)
    source = _FirstDocuments(parts, stages[:readers])
    # Twice: the first stage of a pipeline lists its parts while the plan is made, and that is all its work.
    rest = [source, source, *stages[readers:]]
    return Pipeline(name=pipeline.name, description=pipeline.description, stages=rest)


def check_holds_no_full_run(run_dir: str) -> None:
    """Refuse to put a trial where a full run is: a trial starts over, which removes the files of what was there."""
    try:
        name = f"{run_dir.rstrip('/')}/header.json"
        with file_system(name).open_read(name) as file:
            header = json.loads(file.read())
        is_sample = _FirstDocuments.name in (name for name, _ in header["stages"])
    except FileNotFoundError:
        return
    except (ValueError, TypeError, LookupError, RecursionError):  # damaged: what it was is unknown
        is_sample = False
    if not is_sample:
        raise ConfigError(
            f"--sample: expected an output directory without a full run; {run_dir} holds one, and its files would be "
            "removed. Choose another --output for the trial, or discard that run with --fresh"
        )


def _flat(stage: AnyStage) -> Iterator[AnyStage]:
    if isinstance(stage, CompositeStage):
        for inner in stage.decompose_and_apply_with():
            yield from _flat(inner)
    else:
        yield stage


def _columns(readers: list[AnyStage]) -> list[str] | None:
    known = [columns for stage in readers if (columns := stage.columns()) is not None]
    return known[-1] if known else None


def _descend(task: AnyTask, stages: list[AnyStage], position: int) -> Iterator[tuple[AnyBatch, int]]:
    """Yield the batches of documents a task leads to, with the number of stages they have passed."""
    if isinstance(task, Batch):
        yield task, position
    elif position < len(stages):
        outputs = stages[position].process(task)
        if outputs is None:
            return
        for output in [outputs] if isinstance(outputs, Task) else outputs:
            yield from _descend(output, stages, position + 1)


def _take_contexts(stages: list[AnyStage]) -> list[StageContext]:
    contexts = [stage.context for stage in stages]
    for stage in stages:
        stage.context = StageContext()
    return contexts
