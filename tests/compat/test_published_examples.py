"""Code published for another package runs when the package name in it is changed.

Each test is an example as people copy it: imports inside, relative paths, no executor unless the example shows one.
"""

import pytest
from tests.jsonl_files import read_documents, write_documents

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A working directory with three documents below input/."""
    monkeypatch.chdir(tmp_path)
    documents = [{"id": "a", "text": "one two three"}, {"id": "b", "text": "four"}, {"id": "c", "text": "five six"}]
    write_documents(tmp_path / "input" / "part.jsonl", documents)
    return tmp_path


def test_the_first_pipeline(work):
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.io import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter

    pipeline = Pipeline(name="my_pipeline", description="Process text documents")
    pipeline.add_stage(JsonlReader(file_paths="input/"))
    pipeline.add_stage(JsonlWriter(path="output/"))
    pipeline.run()

    assert (work / "output" / "part.jsonl").read_bytes() == (work / "input" / "part.jsonl").read_bytes()


def test_stages_that_declare_resources(work):
    from gristmill.pipeline import Pipeline
    from gristmill.stages.core import ProcessingStage
    from gristmill.stages.function_definitions import processing_stage
    from gristmill.stages.resources import Resources
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter
    from gristmill.tasks import DocumentBatch

    class TokenizerStage(ProcessingStage[DocumentBatch, DocumentBatch]):
        name: str = "TokenizerStage"
        resources: Resources = Resources(cpus=1.0)  # CPU-only — no GPU needed

        def __init__(self):
            super().__init__()

        def process(self, task: DocumentBatch) -> DocumentBatch:
            df = task.to_pandas()
            df["num_tokens"] = df["text"].str.split().str.len()
            return DocumentBatch(task.dataset_name, df)

    @processing_stage(name="custom_filter", resources=Resources(cpus=1))
    def custom_filter_stage(task: DocumentBatch) -> DocumentBatch:
        df = task.to_pandas()
        return DocumentBatch(dataset_name=task.dataset_name, data=df[df["num_tokens"] > 1])

    pipeline = Pipeline(name="resources")
    pipeline.add_stage(JsonlReader(file_paths="input/"))
    pipeline.add_stage(TokenizerStage())
    pipeline.add_stage(custom_filter_stage)
    pipeline.add_stage(JsonlWriter(path="output/"))
    pipeline.run()

    assert read_documents(work / "output") == [
        {"id": "a", "text": "one two three", "num_tokens": 3},
        {"id": "c", "text": "five six", "num_tokens": 2},
    ]


def test_a_model_stage_with_part_of_a_gpu_and_a_batch_size(work):
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.core import ProcessingStage
    from gristmill.stages.resources import Resources
    from gristmill.stages.text.io.reader import JsonlReader
    from gristmill.stages.text.io.writer import JsonlWriter
    from gristmill.tasks import DocumentBatch

    class ModelStage(ProcessingStage[DocumentBatch, DocumentBatch]):
        name: str = "ModelStage"

        def __init__(self, model_path: str):
            super().__init__()
            self.model_path = model_path

        def setup(self, worker_metadata=None):
            self.model = str.upper

        def process(self, task: DocumentBatch) -> DocumentBatch:
            df = task.to_pandas()
            df["answer"] = [self.model(text) for text in df["text"]]
            return DocumentBatch(task.dataset_name, df)

    model_stage = ModelStage(model_path="path/to/model").with_(resources=Resources(gpus=0.25)).with_(batch_size=128)
    pipeline = Pipeline(name="model")
    pipeline.add_stage(JsonlReader(file_paths="input/", files_per_partition=50))
    pipeline.add_stage(model_stage)
    pipeline.add_stage(JsonlWriter(path="output/"))
    executor = LocalExecutor(gpus=1, gpu_memory_gb=80, execution_mode="streaming", autoscale_interval_s=180)
    pipeline.run(executor=executor)

    assert [d["answer"] for d in read_documents(work / "output")] == ["ONE TWO THREE", "FOUR", "FIVE SIX"]


def test_tasks_made_from_nothing_and_a_task_type_of_ones_own():
    from dataclasses import dataclass, field

    import pandas as pd

    from gristmill.pipeline import Pipeline
    from gristmill.stages.base import ProcessingStage
    from gristmill.tasks import EmptyTask, Task

    @dataclass
    class SentenceTask(Task[pd.DataFrame]):
        data: pd.DataFrame = field(default_factory=pd.DataFrame)

        @property
        def num_items(self) -> int:
            return len(self.data)

        def validate(self) -> bool:
            return "sentence" in self.data.columns

    class SentenceCreationStage(ProcessingStage[EmptyTask, SentenceTask]):
        name = "sentence_creation"

        def inputs(self):
            return [], []

        def outputs(self):
            return ["data"], ["sentence"]

        def process(self, _: EmptyTask) -> list[SentenceTask]:
            frames = [pd.DataFrame({"sentence": [f"number {i}", f"again {i}"]}) for i in range(3)]
            return [SentenceTask(dataset_name="made", data=frame) for frame in frames]

    @dataclass
    class WordCountStage(ProcessingStage[SentenceTask, SentenceTask]):
        column: str = "words"
        name: str = "word_count_stage"

        def inputs(self):
            return ["data"], ["sentence"]

        def outputs(self):
            return ["data"], [self.column]

        def process(self, task: SentenceTask) -> SentenceTask:
            task.data[self.column] = task.data["sentence"].str.split().str.len()
            return task

    pipeline = Pipeline(name="sentences", stages=[SentenceCreationStage(), WordCountStage()])
    results = pipeline.run()

    assert len(results) == 3
    assert all(task.validate() for task in results)
    assert pd.concat([task.data for task in results])["words"].tolist() == [2] * 6
    assert [task.data["sentence"].iloc[0] for task in results] == ["number 0", "number 1", "number 2"]
    assert (results.read, results.written, results.dropped_total) == (6, 6, 0)
