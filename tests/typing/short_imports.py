"""The short imports are typed: a checker knows the classes, and a misspelt name is an error."""

from gristmill import DocumentBatch, JsonlReader, Pipeline, ProcessingStage
from gristmill import JsonReader as Misspelt  # type: ignore[attr-defined]  # mypy complains here if it is not one

print(Misspelt)


class Mine(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task: DocumentBatch) -> DocumentBatch:
        return task


read: int = Pipeline("x", stages=[JsonlReader("in"), Mine()]).run().read
