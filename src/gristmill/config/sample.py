"""`first_documents`: a pipeline that runs on the first documents of its input only, for a quick trial.

The reading stages run here, one partition after the other in the order of the input, and stop as soon as there are
enough documents; the rest of the pipeline then gets exactly these. So a sample is the same every time, and of a large
input only the beginning is read. Lines a reader cannot parse are passed over and are not in the books of the trial.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from gristmill.errors import ConfigError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.tasks import DocumentBatch, EmptyTask, Task

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

AnyTask = Task[object]
Stage = ProcessingStage[AnyTask, AnyTask]


def first_documents(pipeline: "Pipeline", number: int) -> tuple["Pipeline", list[AnyTask]]:
    """Return the pipeline without its reading stages, and the first `number` documents to start it from."""
    from gristmill.pipeline import Pipeline

    stages = [stage for each in pipeline.stages for stage in _flat(each)]
    batches: list[AnyTask] = []
    wanted, readers = number, 0
    for batch, depth in _documents(stages):
        readers = depth
        batches.append(cast("AnyTask", batch.slice(0, wanted)))
        wanted -= min(wanted, batch.num_items)
        if not wanted:
            break
    if not batches:
        raise ConfigError(f"pipeline {pipeline.name!r}: expected documents to sample; the input has none")
    rest = Pipeline(name=pipeline.name, description=pipeline.description, stages=stages[readers:])
    return rest, batches


def _flat(stage: Stage) -> Iterator[Stage]:
    if isinstance(stage, CompositeStage):
        for inner in stage.decompose_and_apply_with():
            yield from _flat(inner)
    else:
        yield stage


def _documents(stages: list[Stage]) -> Iterator[tuple[DocumentBatch, int]]:
    """Yield the first batches of documents with the number of stages they have passed."""
    listed = stages[0].partitions() if stages else None
    sources, first = (listed, 1) if listed is not None else ([cast("AnyTask", EmptyTask())], 0)
    for source in sources:
        yield from _descend(source, stages, first)


def _descend(task: AnyTask, stages: list[Stage], position: int) -> Iterator[tuple[DocumentBatch, int]]:
    if isinstance(task, DocumentBatch):
        yield task, position
    elif position < len(stages):
        outputs = stages[position].process(task)
        if outputs is None:
            return
        for output in [outputs] if isinstance(outputs, Task) else outputs:
            yield from _descend(output, stages, position + 1)
