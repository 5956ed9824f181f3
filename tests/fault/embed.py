"""The program that is killed while it embeds: `python -m tests.fault.embed INPUT MODEL OUTPUT`."""

import sys

from tests.fault.hold import pass_when_free

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.io import JsonlReader, ParquetWriter
from gristmill.tasks import DocumentBatch


class WaitBehindTheModel(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Stands still where a test wants the program to be hit."""

    name = "wait_behind_the_model"

    def process(self, task):
        pass_when_free()
        return task


def run(source, model, output, *, workers=2):
    stages = [JsonlReader(str(source)), EmbeddingCreatorStage(str(model)), WaitBehindTheModel()]
    pipeline = Pipeline("embed", stages=[*stages, ParquetWriter(str(output))])
    return pipeline.run(LocalExecutor(num_workers=workers))


if __name__ == "__main__":
    run(*sys.argv[1:4])
