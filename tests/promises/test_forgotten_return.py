"""A stage that gives back nothing is told from one that drops documents: a hint after the first of them."""

import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)


class Forgets(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Works, and does not say what came of it."""

    name = "forgets"

    def process(self, task):
        task.with_column("seen", task.column("text"))


class ForgetsBatches(Forgets):
    name = "forgets_batches"
    batch_size = 2

    def process_batch(self, tasks):
        return [self.process(task) for task in tasks]


class KeepsNone(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drops everything, and says so by an empty batch."""

    name = "keeps_none"

    def process(self, task):
        return task.slice(0, 0)


class KeepsSome(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drops some tasks by returning None, not the first."""

    name = "keeps_some"

    def process(self, task):
        return task if "0" in task.column("id").to_pylist() else None


@pytest.fixture
def corpus(tmp_path):
    for file in range(3):
        write_documents(tmp_path / "in" / f"{file}.jsonl", [{"id": f"{file}", "text": "a b"}] * 4)
    return tmp_path / "in"


def run(corpus, tmp_path, stage, executor=HERE):
    stages = [JsonlReader(str(corpus)), stage, JsonlWriter(str(tmp_path / "out"))]
    return Pipeline("p", stages=stages).run(executor, quiet=True)


def hints(result):
    return [message for message in result.messages if "return" in message]


@pytest.mark.parametrize("stage", [Forgets(), ForgetsBatches()])
def test_a_stage_that_forgets_to_return_is_named_once_with_a_hint(corpus, tmp_path, stage):
    result = run(corpus, tmp_path, stage)
    [hint] = hints(result)

    assert hint.startswith(f"stage {stage.name} returned None for all ")
    assert "is a `return` missing?" in hint
    assert (result.read, result.dropped_total, result.balanced) == (12, 12, True)


@pytest.mark.parametrize("stage", [KeepsNone(), KeepsSome(), ScoreFilter(WordCountFilter(100))])
def test_a_stage_that_drops_documents_is_not_suspected(corpus, tmp_path, stage):
    result = run(corpus, tmp_path, stage)

    assert result.dropped_total >= 8
    assert hints(result) == []


@pytest.mark.slow
def test_the_hint_comes_from_worker_processes_too(corpus, tmp_path):
    assert len(hints(run(corpus, tmp_path, Forgets(), LocalExecutor(num_workers=1)))) == 1
