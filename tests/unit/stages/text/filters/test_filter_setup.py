"""Filters with a model fetch it once per machine and load it once in every worker, before the first document."""

from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.tasks import DocumentBatch


class ModelFilter(DocumentFilter[int]):
    """Adds what its files hold to the length of a text."""

    def __init__(self, directory):
        self.directory = str(directory)

    def model_check_or_download(self):
        with (Path(self.directory) / "model").open("a") as file:
            file.write("1")

    def load_model(self):
        self.model = int((Path(self.directory) / "model").read_text())

    def load_tokenizer(self):
        self.tokenizer = 10

    def score_document(self, text):
        return len(text) + self.model + self.tokenizer

    def keep_document(self, score):
        return score > self.model


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_is_fetched_once_and_there_when_documents_come(workers, tmp_path):
    judge = ModelFilter(tmp_path)
    stages = [Score(judge, "a"), ScoreFilter(judge, score_field="b"), Filter(judge, "a")]
    tasks = [DocumentBatch("test", pa.table({"text": ["xxx"]})) for _ in range(3)]
    # Three stages use the filter, so its files are looked for three times.
    expected = 3 + 111 + 10

    result = Pipeline("models", stages=stages).run(LocalExecutor(num_workers=workers), initial_tasks=tasks)

    assert (tmp_path / "model").read_text() == "111"
    assert [task.column("b").to_pylist() for task in result] == [[expected]] * 3


@pytest.mark.parametrize("make", [ScoreFilter, lambda judge: Score(judge, "n"), lambda judge: Filter(judge, "n")])
def test_only_a_filter_with_files_makes_a_run_look_for_them(make, tmp_path):
    assert not make(WordCountFilter()).wants_node_setup()
    assert make(ModelFilter(tmp_path)).wants_node_setup()


def test_a_filter_may_score_many_documents_at_a_time():
    class Ranks(DocumentFilter[int]):
        score_type = pa.int64()

        def score_documents(self, texts):
            return list(range(len(texts)))

        def keep_document(self, score):
            return score != 1

    kept = ScoreFilter(Ranks(), score_field="rank").process(DocumentBatch("t", pa.table({"text": ["a", "b", "c"]})))

    assert kept.column("rank").to_pylist() == [0, 2]
