"""Every form of stage people write works: properties, dataclasses, batches, lists, None, composites."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch, EmptyTask

HERE = LocalExecutor(num_workers=0)


def numbers(*values):
    return DocumentBatch("numbers", pa.table({"n": pa.array(values, pa.int64())}))


def run(*stages, tasks):
    return Pipeline("forms", stages=list(stages)).run(HERE, initial_tasks=tasks)


def values(result):
    return [task.to_pyarrow()["n"].to_pylist() for task in result]


class NamedByProperty(ProcessingStage[DocumentBatch, DocumentBatch]):
    @property
    def name(self):
        return "by_property"

    @property
    def resources(self):
        return Resources(cpus=0.5)

    @property
    def batch_size(self):
        return 4

    def process(self, task):
        return task


def test_name_resources_and_batch_size_may_be_properties():
    plan = Pipeline("p", stages=[NamedByProperty()]).plan(HERE, initial_tasks=[numbers(1)])

    assert plan.stage_names == ("by_property",)
    assert plan.groups[0].resources == Resources(cpus=0.5)
    assert plan.groups[0].batch_size == 4


def test_with_replaces_what_a_property_gives():
    changed = NamedByProperty().with_(name="other", resources=Resources(cpus=2), batch_size=9)

    assert (changed.name, changed.resources, changed.batch_size) == ("other", Resources(cpus=2), 9)
    assert NamedByProperty().name == "by_property"


def test_two_stages_named_by_one_property_are_numbered():
    plan = Pipeline("p", stages=[NamedByProperty(), NamedByProperty()]).plan(HERE, initial_tasks=[numbers(1)])

    assert plan.stage_names == ("by_property", "by_property_2")


@dataclass
class AddNumber(ProcessingStage[DocumentBatch, DocumentBatch]):
    amount: int = 1
    name: str = "add_number"
    batch_size: int = 3

    def __post_init__(self):
        super().__init__()

    def process(self, task):
        table = task.to_pyarrow()
        return task.with_data(table.set_column(0, "n", pa.array([n + self.amount for n in table["n"].to_pylist()])))


def test_a_dataclass_is_a_stage_and_its_fields_are_its_parameters():
    result = run(AddNumber(), AddNumber(amount=10), tasks=[numbers(1, 2)])

    assert values(result) == [[12, 13]]
    assert list(result.stage_metrics) == ["add_number", "add_number_2"]


class Positive(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "positive"
    batch_size = 8

    def process_batch(self, tasks):
        kept = [task.filter(pa.array([n > 0 for n in task.to_pyarrow()["n"].to_pylist()])) for task in tasks]
        return [task if task.num_items else None for task in kept]


def test_an_aligned_process_batch_keeps_which_input_became_which_output():
    result = run(Positive(), tasks=[numbers(-1, 1), numbers(-2), numbers(2, 3)])

    assert values(result) == [[1], [2, 3]]
    assert result.dropped == {"positive": {"positive": 2}}
    assert (result.read, result.written) == (5, 3)


class TwiceFlat(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Returns all outputs of all inputs in one list, which says nothing about which is whose."""

    name = "twice_flat"
    batch_size = 8

    def process_batch(self, tasks):
        return [task.slice(i, 1) for task in tasks for i in range(task.num_items)]


def test_a_flat_process_batch_gives_the_same_documents_and_balanced_books():
    result = run(TwiceFlat(), tasks=[numbers(1, 2), numbers(3, 4)])

    assert values(result) == [[1], [2], [3], [4]]
    assert (result.read, result.written, result.balanced) == (4, 4, True)


class HalvesOrNothing(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "halves"

    def process(self, task):
        if task.num_items < 2:
            return None
        middle = task.num_items // 2
        return [task.slice(0, middle), task.slice(middle)]


def test_a_stage_returns_a_list_or_none():
    result = run(HalvesOrNothing(), tasks=[numbers(1, 2, 3), numbers(4)])

    assert values(result) == [[1], [2, 3]]
    assert result.dropped == {"halves": {"halves": 1}}


def test_ids_derive_from_the_source_and_outputs_inherit_metadata_and_history():
    given = numbers(1, 2, 3)
    given._metadata["source"] = "here"
    first, second = run(AddNumber(), HalvesOrNothing(), tasks=[given])

    assert (first.task_id, second.task_id) == ("part-00000.0000", "part-00000.0001")
    assert first._metadata["source"] == second._metadata["source"] == "here"
    assert [perf.stage_name for perf in first._stage_perf] == ["add_number", "halves"]
    assert first._stage_perf[0].num_items_processed == 3


class NewFrame(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Builds a batch without carrying anything over, as many examples do."""

    name = "new_frame"

    def process(self, task):
        return DocumentBatch(dataset_name=task.dataset_name, data=task.to_pandas())


def test_a_batch_built_from_a_frame_inherits_what_its_maker_forgot():
    given = numbers(1)
    given._metadata["source"] = "here"
    (task,) = run(AddNumber(), NewFrame(), tasks=[given])

    assert task._metadata == {"source": "here"}
    assert [perf.stage_name for perf in task._stage_perf] == ["add_number", "new_frame"]


class CountToThree(ProcessingStage[EmptyTask, DocumentBatch]):
    name = "count_to_three"

    def process(self, task):
        assert isinstance(task, EmptyTask)
        return [numbers(i) for i in (1, 2, 3)]


def test_the_first_stage_may_make_tasks_from_nothing():
    assert values(run(CountToThree(), tasks=None)) == [[1], [2], [3]]


class AddTwice(CompositeStage[DocumentBatch, DocumentBatch]):
    name = "add_twice"

    def decompose(self):
        return [AddNumber(name="first"), AddNumber(name="second")]


class AddThrice(CompositeStage[DocumentBatch, DocumentBatch]):
    name = "add_thrice"

    def decompose(self):
        return [AddTwice(), AddNumber(name="third")]


def test_composites_may_hold_composites():
    result = run(AddThrice(), tasks=[numbers(0)])

    assert values(result) == [[3]]
    assert list(result.stage_metrics) == ["first", "second", "third"]


def test_with_on_a_composite_changes_the_inner_stage_of_a_copy():
    composite = AddTwice()
    changed = composite.with_({"second": {"name": "renamed", "batch_size": 7}})

    assert [stage.name for stage in changed.decompose_and_apply_with()] == ["first", "renamed"]
    assert [stage.batch_size for stage in changed.decompose_and_apply_with()] == [3, 7]
    assert [stage.name for stage in composite.decompose_and_apply_with()] == ["first", "second"]


def test_with_on_a_composite_names_the_nearest_inner_stage():
    composite = AddTwice().with_({"secnd": {"batch_size": 7}})

    with pytest.raises(ValueError, match=r"^add_twice.with_: expected one of .*; did you mean 'second'\?$"):
        composite.decompose_and_apply_with()


@processing_stage(name="custom_filter", resources=Resources(cpus=1), batch_size=2)
def custom_filter(task: DocumentBatch) -> DocumentBatch:
    """Keep even numbers."""
    return task.filter(pa.array([n % 2 == 0 for n in task.to_pyarrow()["n"].to_pylist()]))


def test_a_decorated_function_is_a_stage():
    assert (custom_filter.name, custom_filter.resources, custom_filter.batch_size) == (
        "custom_filter",
        Resources(cpus=1),
        2,
    )
    assert values(run(custom_filter, tasks=[numbers(1, 2, 4)])) == [[2, 4]]
    assert custom_filter(numbers(1, 2)).num_items == 1


class WithoutInit(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Never calls the constructor of its base."""

    name = "without_init"

    def __init__(self, step):
        self.step = step

    def process(self, task):
        return task


def test_a_stage_need_not_call_the_constructor_of_its_base():
    assert values(run(WithoutInit(2).with_(batch_size=4), tasks=[numbers(1)])) == [[1]]


def test_the_same_pipeline_runs_again_and_gives_the_same():
    pipeline = Pipeline("again", stages=[CountToThree(), AddNumber()])
    before = [dict(vars(stage)) for stage in pipeline.stages]

    assert values(pipeline.run(HERE)) == values(pipeline.run(executor=HERE)) == [[2], [3], [4]]
    assert [dict(vars(stage)) for stage in pipeline.stages] == before
