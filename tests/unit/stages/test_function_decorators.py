"""`@processing_stage` makes a stage of a function of one task, and of nothing else."""

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch

BATCH = DocumentBatch("b", pa.table({"n": [1, 2]}))


def test_name_resources_batch_size_and_docstring_are_taken_over():
    @processing_stage(name="first", resources={"cpus": 2.0}, batch_size=4)
    def stage(task: DocumentBatch) -> DocumentBatch:
        """Keep the first."""
        return task.slice(0, 1)

    assert (stage.name, stage.resources, stage.batch_size) == ("first", Resources(cpus=2.0), 4)
    assert stage.__doc__ == "Keep the first."
    assert stage.process(BATCH).num_items == 1


def test_the_defaults_are_one_cpu_and_one_task():
    stage = processing_stage(name="same")(lambda task: task)

    assert (stage.resources, stage.batch_size) == (Resources(cpus=1.0), 1)


@pytest.mark.parametrize("function", [lambda: None, lambda a, b: None])
def test_a_function_of_another_number_of_tasks_is_refused(function):
    with pytest.raises(ConfigError, match=r"^@processing_stage 'wrong': expected a function of one task; got"):
        processing_stage(name="wrong")(function)


def test_parentheses_forgotten_are_an_error():
    with pytest.raises(TypeError):
        processing_stage(lambda task: task)
