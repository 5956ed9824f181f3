"""A user's script, checked by `make check` with mypy in strict mode: pipelines of our stages and their own pass."""

from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modifiers import Modify
from gristmill.stages.text.modifiers.unicode import UnicodeReformatter
from gristmill.tasks import DocumentBatch


class Mine(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task: DocumentBatch) -> DocumentBatch | None:
        return task


class Longer(DocumentFilter[int]):
    def score_document(self, text: str) -> int:
        return len(text)

    def keep_document(self, score: int) -> bool:
        return score > 3


p = Pipeline(
    "x",
    stages=[
        JsonlReader("in"),
        ScoreFilter(WordCountFilter(1)),
        ScoreFilter(Longer()),
        Modify(UnicodeReformatter()),
        Mine(),
        JsonlWriter("out"),
    ],
)
p.add_stage(ScoreFilter([WordCountFilter(1), Longer()]))
p.add_stage(Mine().with_(name="b"))
result = p.run()
print(result.read, result[0])
