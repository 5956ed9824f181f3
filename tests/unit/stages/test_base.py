"""`with_` copies, names default, and a stage called outside a run behaves."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.tasks import DocumentBatch


class _Plain(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task):
        return task


@dataclass(frozen=True)
class _Frozen(ProcessingStage[DocumentBatch, DocumentBatch]):
    amount: int = 1

    def process(self, task):
        return task


CHANGES = {
    "name": "other",
    "resources": Resources(cpus=3),
    "batch_size": 7,
    "batch_items": 100,
    "batch_bytes": 1 << 20,
    "lanes": 3,
    "runtime_env": {"pip": ["x"]},
}


@pytest.mark.parametrize(("key", "value"), CHANGES.items())
@pytest.mark.parametrize("kind", [_Plain, _Frozen])
def test_with_returns_a_changed_copy(kind, key, value):
    stage = kind()
    before = getattr(stage, key)
    changed = stage.with_(**{key: value})

    assert getattr(changed, key) == value
    assert getattr(stage, key) == before
    assert type(changed) is kind


def test_with_changes_one_thing_and_keeps_the_others():
    changed = _Plain().with_(batch_size=7).with_(name="x").with_(num_workers=2)

    assert (changed.name, changed.batch_size, changed.num_workers()) == ("x", 7, 2)
    assert changed.with_(num_workers=None).num_workers() is None


def test_with_carries_the_specs_of_other_executors():
    changed = _Plain().with_(ray_stage_spec={"a": 1}, xenna_stage_spec={"b": 2})

    assert (changed.ray_stage_spec(), changed.xenna_stage_spec()) == ({"a": 1}, {"b": 2})


def test_a_copy_reports_to_a_context_of_its_own():
    stage = _Plain()
    stage.context.dropped["x"] = 1

    assert stage.with_().context.dropped == {}


def test_a_stage_without_a_name_is_called_like_its_class():
    assert _Plain().stage_name() == "_Plain"


def test_a_stage_can_be_called_like_a_function():
    batch = DocumentBatch("b", pa.table({"n": [1]}))

    assert _Plain()(batch) is batch


def test_a_stage_without_process_says_what_is_missing():
    class _Nothing(ProcessingStage[DocumentBatch, DocumentBatch]):
        name = "nothing"

    with pytest.raises(NotImplementedError, match=r"^nothing: a stage must define process or process_batch$"):
        _Nothing().process(DocumentBatch("b", pa.table({})))


def test_a_composite_processes_nothing_itself():
    with pytest.raises(ConfigError, match="a composite stage is decomposed before it runs"):
        JsonlReader("in/").process(None)


def test_a_composite_must_say_what_it_stands_for():
    class _Hollow(CompositeStage[DocumentBatch, DocumentBatch]):
        name = "hollow"

    with pytest.raises(NotImplementedError, match=r"^hollow: a composite stage must define decompose$"):
        _Hollow().decompose()


def test_a_readers_inner_stage_is_changed_by_its_name(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    reader = JsonlReader(str(tmp_path)).with_({"jsonl_reader": {"batch_size": 8}})

    assert [stage.batch_size for stage in reader.decompose_and_apply_with()] == [1, 8]
