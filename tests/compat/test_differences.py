"""What scripts for NeMo Curator do beside the documented calls works here too, or is refused with what to write."""

import importlib
import json
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill import DocumentBatch, FastTextLangId, JsonlReader, JsonlWriter, LocalExecutor, Pipeline, ScoreFilter
from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage, get_stage_class
from gristmill.stages.client_partitioning import ClientPartitioningStage
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.text.deduplication.removal import TextDuplicatesRemovalStage
from gristmill.stages.text.deduplication.removal_workflow import TextDuplicatesRemovalWorkflow
from gristmill.stages.text.filters.heuristic.code import TokenizerFertilityFilter
from gristmill.stages.text.modules import DocumentJoiner
from gristmill.tasks import EmptyTask, FileGroupTask, StagePerfStats, Task
from gristmill.tasks.utils import TaskPerfUtils

HERE = LocalExecutor(num_workers=0)

DOORS = {
    "gristmill.utils.performance_utils": ["StagePerfStats"],
    "gristmill.tasks.utils": ["TaskPerfUtils"],
    "gristmill.tasks": ["SentinelTask", "NoneTask", "FailedTask", "_EmptyTask"],
    "gristmill.stages.text.utils.constants": ["regex_url"],
    "gristmill.stages.client_partitioning": ["ClientPartitioningStage"],
    "gristmill.stages.text.deduplication.removal": ["TextDuplicatesRemovalStage"],
    "gristmill.stages.text.filters": ["WordCountFilter", "FastTextLangId", "AlphaFilter", "TokenCountFilter"],
    "gristmill.stages.text.filters.heuristic.repetition": ["RepeatingTopNGramsFilter"],
    "gristmill.stages.text.modules": ["Score", "Filter", "ScoreFilter", "Modify"],
    "gristmill.backends.experimental.ray_data": ["RayDataExecutor"],
    "gristmill.backends.experimental.ray_actor_pool": ["RayActorPoolExecutor"],
}


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents = [{"id": name, "text": text} for name, text in (("a", "one"), ("b", "two"), ("c", "three"))]
    write_documents(tmp_path / "raw" / "part.jsonl", documents)
    return tmp_path


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in DOORS.items() for name in names])
def test_a_name_is_where_scripts_look_for_it(path, name):
    assert getattr(importlib.import_module(path), name)


@pytest.mark.parametrize("path", ["gristmill.stages.text.filters", "gristmill.stages.text.modules"])
def test_a_door_to_other_places_has_nothing_but_what_is_there(path):
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchFilter'"):
        importlib.import_module(path).NoSuchFilter  # noqa: B018


class Mine(ProcessingStage[DocumentBatch, DocumentBatch]):
    def __init__(self, name="mine"):
        self.name = name

    def inputs(self):
        return {DocumentBatch: (["data"], ["text"]), FileGroupTask: (["data"], [])}

    def outputs(self):
        return ["data"], ["x"]

    def ray_stage_spec(self):
        return {"is_actor_stage": True, "max_calls": 3}

    def num_workers(self):
        return 3

    def process(self, task: DocumentBatch) -> list[DocumentBatch]:
        return [task]


def batch():
    return DocumentBatch(task_id="mine_1", dataset_name="d", data=pd.DataFrame({"text": ["a"]}))


def test_inputs_by_type_of_task_are_understood():
    stage, table = Mine(), DocumentBatch("d", pa.table({"other": [1]}))

    assert "reads" not in Pipeline("p", stages=[stage]).describe()
    assert stage.input_spec_for_task(batch()) == (["data"], ["text"])
    assert stage.input_spec_for_task(EmptyTask()) == ([], [])
    assert [stage.validate_input(task) for task in (batch(), table)] == [True, False]


def test_a_stage_says_where_it_stands():
    reader, _ = JsonlReader("raw").decompose()
    asked = [(s.is_source_stage(), s.is_sink_stage(), s.is_fanout_stage()) for s in (reader, JsonlWriter("o"), Mine())]

    assert asked == [(True, False, True), (False, True, False), (False, False, True)]


def test_what_with_says_is_added_to_what_a_stage_says_itself():
    changed = Mine().with_(ray_stage_spec={"max_calls": 1}, xenna_stage_spec={"a": 1}, num_workers=5)

    assert changed.ray_stage_spec() == {"is_actor_stage": True, "max_calls": 1}
    assert changed.xenna_stage_spec() == {"a": 1}
    assert (changed.num_workers(), changed.with_(num_workers=None).num_workers(), Mine().num_workers()) == (5, None, 3)


def test_one_stage_twice_is_numbered_also_if_its_constructor_names_it():
    plan = Pipeline("p", stages=[Mine(), Mine()]).plan(HERE, initial_tasks=[batch()])
    assert plan.stage_names == ("mine", "mine_2")


def test_files_can_be_listed_by_themselves(raw):
    (task,) = Pipeline("list", stages=[FilePartitioningStage("raw")]).run(HERE, quiet=True)

    assert (task.dataset_name, task._metadata["partition_index"]) == ("raw", 0)
    assert [path.rpartition("/")[2] for path in task.data] == ["part.jsonl"]
    assert FilePartitioningStage("raw").resources.cpus == 0.5


def test_files_may_be_listed_in_a_file(raw):
    write_documents(raw / "raw" / "other.jsonl", [{"id": "z", "text": "z"}])
    (raw / "list.json").write_text(json.dumps(["other.jsonl"]))
    (task,) = ClientPartitioningStage("raw", input_list_json_path="list.json").partitions()
    assert [path.rpartition("/")[2] for path in task.data] == ["other.jsonl"]
    (raw / "list.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"expected 'list\.json' to hold a JSON list of paths; got {}"):
        ClientPartitioningStage("raw", input_list_json_path="list.json").partitions()


@pytest.mark.slow
@pytest.mark.parametrize("as_directory", [False, True])
def test_documents_are_removed_by_ids_that_were_made_elsewhere(raw, as_directory):
    ids = raw / "ids" / "part.0.parquet"
    ids.parent.mkdir()
    pd.DataFrame({"id": ["b", "z"]}).to_parquet(ids)
    workflow = TextDuplicatesRemovalWorkflow(
        *("raw", str(ids.parent if as_directory else ids), "kept"),
        input_filetype="jsonl", output_filetype="jsonl", id_field="id", duplicate_id_field="id",
    )  # fmt: skip
    assert workflow.run(HERE).get_metadata("num_duplicates_removed") == 1
    assert [document["id"] for document in read_documents(raw / "kept")] == ["a", "c"]


def test_what_is_missing_for_a_removal_is_named(raw):
    pd.DataFrame({"_curator_dedup_id": [1]}).to_parquet("ids.parquet")
    options = {"input_filetype": "jsonl", "output_filetype": "jsonl"}
    with pytest.raises(ConfigError, match=r"such as 'part-0:17'; got \['1'\]\. Ids that another tool has numbered"):
        TextDuplicatesRemovalWorkflow(
            "raw", "ids.parquet", "o", duplicate_id_field="_curator_dedup_id", **options
        ).run()
    with pytest.raises(ConfigError, match=r"expected a column 'id' of ids; got \['_curator_dedup_id'\]"):
        TextDuplicatesRemovalWorkflow("raw", "ids.parquet", "o", id_field="id", **options).run()
    with pytest.raises(ConfigError, match="expected a column 'nid' of ids"):
        Pipeline("p", stages=[TextDuplicatesRemovalStage("ids.parquet", "id", "nid")]).plan(HERE, [batch()])


@pytest.mark.slow
def test_an_executor_takes_stages_and_tasks(raw):
    assert [len(task.data) for task in HERE.execute([Mine()], [batch()])] == [1]
    assert HERE.execute([*JsonlReader("raw").decompose()], initial_tasks=None).read == 3
    assert len(HERE.execute(stages=[FilePartitioningStage("raw")], initial_tasks=[EmptyTask])) == 1


def test_an_error_is_of_the_type_a_script_would_catch(raw):
    with pytest.raises(NotImplementedError, match="got 'append'"):
        JsonlWriter("o", mode="append")
    (raw / "full").mkdir()
    (raw / "full" / "x.jsonl").touch()
    with pytest.raises(FileExistsError, match=r"expected .*full' to have no files"):
        Pipeline("p", stages=[JsonlReader("raw"), JsonlWriter("full", mode="error")]).run(HERE, quiet=True)
    with pytest.raises(FileNotFoundError):
        Pipeline("p", stages=[JsonlReader("nowhere"), JsonlWriter("o")]).run(HERE)
    with pytest.raises(ValueError, match="files_per_partition or blocksize, not both"):
        JsonlReader("raw", files_per_partition=1, blocksize="1MB").decompose()


@pytest.mark.parametrize("judge", [FastTextLangId("no.bin"), TokenizerFertilityFilter("no.model")])
def test_a_model_file_is_looked_for_when_the_run_is_planned_and_not_before(judge):
    stage = pickle.loads(pickle.dumps(ScoreFilter(judge)))
    with pytest.raises(ConfigError, match=r"got 'no\.(bin|model)'"):
        Pipeline("p", stages=[stage]).plan(HERE, initial_tasks=[batch()])


@processing_stage(name="shout_it")
def shout(task: DocumentBatch) -> DocumentBatch:
    task.data["text"] = task.data["text"].str.upper()
    return task


def test_small_things_are_as_they_are_there():
    again = get_stage_class("shout_it")()

    assert again.process(batch()).data["text"].tolist() == ["A"]
    assert issubclass(get_stage_class("shout_it"), ProcessingStage)
    assert EmptyTask().task_id == "0"
    assert Task(dataset_name="d", data=1, task_id="x").task_id == "x"
    assert DocumentJoiner().inputs() == (["data"], ["text", "segment_id", "id"])
    assert DocumentJoiner().outputs() == (["data"], ["text"])


def test_read_kwargs_that_have_a_parameter_here_name_it():
    with pytest.raises(ConfigError, match=r"got 'columns'; that is fields here$"):
        JsonlReader("raw", read_kwargs={"columns": ["a"]})
    JsonlReader("raw", read_kwargs={"dtype_backend": "pyarrow", "compression": "infer"})


def test_what_stages_noted_on_tasks_is_gathered():
    tasks = [DocumentBatch("d", pa.table({"n": [1]})) for _ in range(2)]
    for number, task in enumerate(tasks):
        task.add_stage_perf(StagePerfStats("s", process_time=number + 1.0, custom_metrics={"k": 2.0}))
    found = TaskPerfUtils.collect_stage_metrics({"p": tasks})
    summed = TaskPerfUtils.aggregate_task_metrics(tasks, prefix="run")

    assert found["s"]["process_time"].tolist() == [1.0, 2.0]
    assert found["s"]["custom.k"].dtype == np.float64
    assert (summed["run_s_process_time_sum"], summed["run_s_process_time_mean"]) == (3.0, 1.5)
    assert TaskPerfUtils.collect_stage_metrics(None) == {}
