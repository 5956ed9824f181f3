"""A pipeline compiles to a plan, or says what is wrong with it before anything starts."""

import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import Sources, compile_chain, unique_names
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.filters import Filter, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask

BATCH = DocumentBatch("b", pa.table({"text": ["a"]}))


class _Pass(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task):
        return task


class _Pair(CompositeStage[DocumentBatch, DocumentBatch]):
    name = "pair"

    def decompose(self):
        return [_Pass().with_(name="left"), _Pass().with_(name="right")]


def compiled(*stages, tasks=(BATCH,)):
    return compile_chain("p", list(stages), list(tasks))


@pytest.fixture
def source(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": 1, "text": "a b"}])
    write_documents(tmp_path / "in" / "b.jsonl", [{"id": 2, "text": "c d"}])
    return tmp_path / "in"


def test_composites_are_replaced_by_their_parts():
    assert compiled(_Pair()).stage_names == ("left", "right")


def test_the_plan_lists_partitions_inputs_and_outputs(source, tmp_path):
    out = str(tmp_path / "out")
    plan = compile_chain("p", [JsonlReader(str(source)), JsonlWriter(out)], None)

    assert plan.source_names == ("a", "b")
    assert plan.source_stage == "file_partitioning"
    assert [path.rpartition("/")[2] for path, _, _ in plan.inputs] == ["a.jsonl", "b.jsonl"]
    assert plan.output_directories == (out,)
    assert plan.ends_in_writer


def test_a_pipeline_without_input_starts_from_one_empty_task():
    (task,) = compile_chain("p", [_Pass()], None).sources

    assert isinstance(task, EmptyTask)


def test_repeats_of_a_default_name_are_numbered():
    stages = [_Pass(), _Pass(), _Pass().with_(name="_Pass_2"), _Pass()]

    assert unique_names(stages) == ["_Pass", "_Pass_3", "_Pass_2", "_Pass_4"]


def test_a_filter_used_twice_is_numbered():
    stages = [ScoreFilter(WordCountFilter()), ScoreFilter(WordCountFilter(), text_field="title"), Filter(bool, "x")]

    assert unique_names(stages) == ["word_count", "word_count_2", "filter_x"]


def test_a_name_given_twice_is_numbered_and_the_first_keeps_it():
    stages = [_Pass(), _Pass().with_(name="same"), _Pass().with_(name="same"), _Pass().with_(name="_Pass")]

    assert unique_names(stages) == ["_Pass_2", "same", "same_2", "_Pass"]


def test_two_writers_of_one_directory_are_an_error(source, tmp_path):
    out = str(tmp_path / "out")
    stages = [JsonlReader(str(source)), JsonlWriter(out).with_(name="one"), JsonlWriter(out + "/").with_(name="two")]

    with pytest.raises(ConfigError, match=r"^two: expected an output directory of its own; one writes to"):
        compile_chain("p", stages, None)


def test_no_stage_is_an_error():
    with pytest.raises(ConfigError, match=r"^pipeline 'p': expected at least one stage; got none$"):
        compiled()


def test_a_stage_that_does_nothing_is_an_error():
    class _Idle(ProcessingStage[DocumentBatch, DocumentBatch]):
        name = "idle"

    with pytest.raises(ConfigError, match=r"^idle: expected a stage with process or process_batch; it has neither$"):
        compiled(_Idle())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": -1}, "expected batch_size ≥ 1; got -1"),
        ({"num_workers": 0}, "expected num_workers ≥ 1 or None; got 0"),
    ],
)
def test_impossible_numbers_are_errors(changes, message):
    with pytest.raises(ConfigError, match=message):
        compiled(_Pass().with_(**changes))


@pytest.mark.parametrize(
    ("names", "clash"), [(["a", "b", "a"], "0 and 2 are both 'a'"), (["part-00001", ""], "0 and 1")]
)
def test_two_initial_tasks_of_one_name_are_refused(names, clash):
    tasks = [FileGroupTask("d", ["x"], partition_name=name) for name in names]
    with pytest.raises(ConfigError, match=rf"^initial_tasks: expected a partition_name .*; tasks {clash}"):
        Sources.of(tasks)


def test_initial_tasks_must_be_tasks():
    with pytest.raises(ConfigError, match=r"^initial_tasks: expected tasks; got 'input/'$"):
        compiled(_Pass(), tasks=["input/"])


@pytest.mark.parametrize("add", [lambda p, s: p.add_stage(s), lambda p, s: Pipeline("p", stages=[s])])
def test_a_class_instead_of_a_stage_is_an_error_with_a_hint(add):
    with pytest.raises(ConfigError, match=r"expected a ProcessingStage; got .*did you forget to call it\?$"):
        add(Pipeline("p"), _Pass)


def test_no_matching_file_is_an_error_that_says_where(tmp_path):
    with pytest.raises(NoInputError, match="nothing-here"):
        Pipeline("p", stages=[JsonlReader(str(tmp_path / "nothing-here")), _Pass()]).plan()


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (Resources(gpus=1), "expected 1 GPUs for a worker; got no GPU"),
        (Resources(gpu_memory_gb=10), "expected 10 GB of GPU memory for a worker; got no GPU"),
    ],
)
def test_a_gpu_that_is_not_there_is_an_error(resources, message):
    pipeline = Pipeline("p", stages=[_Pass().with_(resources=resources)])

    with pytest.raises(ConfigError, match=message):
        pipeline.plan(LocalExecutor(gpus=0), initial_tasks=[BATCH])


@pytest.mark.parametrize(
    ("resources", "fits"),
    [
        (Resources(gpus=2), True),
        (Resources(gpus=3), False),
        (Resources(gpus=0.25), True),
        (Resources(gpu_memory_gb=24), True),
        (Resources(gpu_memory_gb=25), False),
    ],
)
def test_declared_gpus_are_what_a_stage_may_ask_for(resources, fits):
    pipeline = Pipeline("p", stages=[_Pass().with_(resources=resources)])
    executor = LocalExecutor(gpus=2, gpu_memory_gb=24)

    if fits:
        assert pipeline.plan(executor, initial_tasks=[BATCH]).groups[0].resources == resources
    else:
        with pytest.raises(ConfigError, match="got GPU 0 with 24 GB, GPU 1 with 24 GB"):
            pipeline.plan(executor, initial_tasks=[BATCH])


def test_an_output_directory_with_inputs_in_it_is_refused(source):
    with pytest.raises(ConfigError, match="expected one without inputs in it"):
        compile_chain("p", [JsonlReader(str(source / "a.jsonl")), JsonlWriter(str(source))], None)


def test_an_output_directory_inside_the_input_is_refused(source):
    with pytest.raises(ConfigError, match="the next run would read this one's output"):
        compile_chain("p", [JsonlReader(str(source)), JsonlWriter(str(source / "out"))], None)


def test_an_output_directory_the_reader_never_looks_into_is_fine(source):
    plan = compile_chain("p", [JsonlReader(str(source)), JsonlWriter(str(source / "_out"))], None)

    assert len(plan.inputs) == 2
