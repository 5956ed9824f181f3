"""A batch made from a frame gives that frame back, sees every change to it, and is Arrow again when a stage returns."""

import copy
import json
import pickle

import pandas as pd
import pyarrow as pa
import pytest

from gristmill import DocumentBatch, JsonlReader, LocalExecutor, Pipeline, ScoreFilter, WordCountFilter
from gristmill.errors import StageBroken, StageError
from gristmill.stages.function_decorators import processing_stage
from gristmill.tasks.json_lines import JsonLines

INLINE, PROCESSES = LocalExecutor(num_workers=0), LocalExecutor(num_workers=1)


def frame():
    return pd.DataFrame({"text": ["one", "two words"], "n": [1, 2]})


@pytest.fixture
def batch():
    return DocumentBatch("made", frame())


def columns(batch):
    return batch.to_pyarrow().to_pydict()


def test_the_frame_comes_back_and_is_asked_as_frames_are(batch):
    assert batch.data is batch.data
    assert len(batch.data) == batch.num_items == 2
    assert batch.data.head(1)["text"].tolist() == ["one"]
    assert batch.data.copy().equals(frame())
    assert batch.get_columns() == list(batch.data.columns)


def test_a_column_set_in_place_is_in_the_batch(batch):
    batch.data["long"] = batch.data["text"].str.len() > 4
    batch.data.loc[0, "n"] = 7

    assert columns(batch) == {"text": ["one", "two words"], "n": [7, 2], "long": [False, True]}


def test_a_change_is_seen_whatever_was_asked_before(batch):
    held = batch.data
    assert batch.num_items == 2
    assert batch.get_columns() == ["text", "n"]
    held["x"] = "y"
    held.loc[2] = ["three", 3, "z"]

    assert columns(batch) == {"text": ["one", "two words", "three"], "n": [1, 2, 3], "x": ["y", "y", "z"]}
    assert batch.num_items == 3
    assert batch.nbytes > 0


def test_after_it_was_settled_the_old_frame_changes_nothing_and_a_new_one_is_given(batch):
    held = batch.data
    batch.settle()
    held["x"] = 1
    batch.data["y"] = 2

    assert list(columns(batch)) == ["text", "n", "y"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_does_not_share_the_frame(batch, copied):
    other = copied(batch)
    other.data["x"] = 1

    assert list(columns(batch)) == ["text", "n"]
    assert list(columns(other)) == ["text", "n", "x"]


@pytest.mark.parametrize(
    "derive",
    [
        lambda b: b.filter([True, False]),
        lambda b: b.take([0]),
        lambda b: b.slice(0, 1),
        lambda b: b.with_column("m", pa.array([1, 2])).slice(0, 1),
        lambda b: DocumentBatch.concat([b.slice(0, 1)]),
        lambda b: b.select(["text", "n"]).slice(0, 1),
        lambda b: b.with_data(b.data.iloc[:1]),
    ],
)
def test_what_is_derived_gives_frames_too_and_leaves_the_first_alone(batch, derive):
    batch.data["n"] += 1
    derived = derive(batch)
    derived.data["x"] = 0

    assert derived.data["text"].tolist() == ["one"]
    assert derived.column("n").to_pylist() == [2]
    assert list(columns(batch)) == ["text", "n"]


def test_a_batch_of_arrow_stays_one_until_it_is_given_a_frame():
    batch = DocumentBatch("read", pa.table({"n": [1]}))
    assert isinstance(batch.data, pa.Table)
    batch.data = pd.DataFrame({"n": [1, 2]})
    batch.data["m"] = 3
    assert columns(batch) == {"n": [1, 2], "m": [3, 3]}


def test_lines_of_unchanged_fields_survive_a_frame_that_was_changed_in_place():
    lines = JsonLines(pa.array([b'{"big": 12345678901234567890123, "t": "a"}\n'], pa.large_binary()))
    batch = DocumentBatch.from_lines("read", lines)
    batch.data = batch.to_pandas()
    batch.data["new"] = 1
    batch.settle()

    line = batch.json_lines({})[0]
    assert b"12345678901234567890123" in line
    assert json.loads(line)["new"] == 1


def test_two_columns_of_one_name_are_refused_at_once(batch):
    with pytest.raises(StageError, match="expected column names to differ; got 'a' 2 times"):
        DocumentBatch("x", pd.DataFrame([[1, 2]], columns=["a", "a"]))
    batch.data.columns = ["a", "a"]
    with pytest.raises(StageError, match="expected column names to differ"):
        batch.settle()


def test_an_attribute_nobody_has_is_missing_as_anywhere(batch):
    with pytest.raises(AttributeError, match="'DocumentBatch' object has no attribute 'nothing'"):
        batch.nothing  # noqa: B018


@processing_stage(name="in_place")
def in_place(task: DocumentBatch) -> DocumentBatch:
    assert task.num_items
    task.data["words"] = task.data["text"].str.split().str.len()
    return task


@processing_stage(name="again")
def again(task: DocumentBatch) -> DocumentBatch:
    held = task.data
    assert task.num_items == len(held)
    held["twice"] = held["words"] * 2
    return task


@pytest.mark.slow
@pytest.mark.parametrize("executor", [INLINE, PROCESSES], ids=["inline", "processes"])
def test_stages_that_change_a_frame_in_place_run_anywhere(executor):
    given = frame()
    stages = [in_place, ScoreFilter(WordCountFilter(min_words=2), score_field="count"), again.with_(name="own")]
    result = Pipeline("frames", stages=stages).run(executor, initial_tasks=[DocumentBatch("made", given)], quiet=True)

    assert (result.read, result.written) == (2, 1)
    assert result[0].data.to_dict("records") == [{"text": "two words", "n": 2, "words": 2, "count": 2, "twice": 4}]
    assert list(given.columns) == ["text", "n"]


@processing_stage(name="breaks")
def breaks(task: DocumentBatch) -> DocumentBatch:
    task.data["x"] = [object() if text == "one" else 1 for text in task.data["text"]]
    return task


def test_a_frame_that_cannot_be_taken_back_blames_its_document():
    result = Pipeline("bad", stages=[breaks]).run(
        INLINE, initial_tasks=[DocumentBatch("made", frame())], max_quarantined=None, quiet=True
    )
    assert (result.written, result.quarantined) == (1, 1)


@pytest.mark.slow
def test_a_table_that_is_used_as_a_frame_is_answered_with_what_to_write(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n' * 3)
    with pytest.raises(StageBroken, match=r"task\.data is an Arrow table here: take df = task\.to_pandas\(\)"):
        Pipeline("bad", stages=[JsonlReader(str(tmp_path)), in_place]).run(INLINE, quiet=True)
