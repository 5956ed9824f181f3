"""Tokens to answers: every document comes out in its place, and memory that runs out costs none."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.pipeline import Pipeline
from gristmill.stages.resources import Resources
from gristmill.stages.text.models import ModelStage, TokenizerStage
from gristmill.stages.text.models.model import MAY_DIFFER
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import FakeRuntime, write_tiny_classifier

HERE = LocalExecutor(num_workers=0)


@dataclass
class MeanOfIdsStage(ModelStage):
    """The mean of a document's ids, by a runtime that fits `fits` rows and `fits_tokens` padded tokens."""

    fits: int | None = None
    fits_tokens: int | None = None
    answers: ClassVar[dict] = {"mean": pa.float32()}

    def open_model(self):
        return FakeRuntime(max_rows=self.fits, max_tokens=self.fits_tokens)

    def answer_types(self):
        return self.answers

    def answer_columns(self, values):
        return {"mean": from_numbers(values[0][:, 0].astype(np.float32))}


class NotANumberStage(MeanOfIdsStage):
    def open_model(self):
        class Runtime(FakeRuntime):
            def run(self, input_ids, attention_mask):
                (means,) = super().run(input_ids, attention_mask)
                means[(input_ids == 66).any(axis=1)] = np.nan
                return (means,)

        return Runtime()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_tiny_classifier(tmp_path_factory.mktemp("model")))


def batch(*lists, **more):
    columns = {"text": [f"t{i}" for i in range(len(lists))], "input_ids": pa.array(lists, pa.list_(pa.int32())), **more}
    return DocumentBatch("d", pa.table(columns))


def means(*lists):
    return [None if not ids else pytest.approx(sum(ids) / len(ids)) for ids in lists]


def random_lists(number, seed=0, longest=30):
    chance = np.random.default_rng(seed)
    return [chance.integers(4, 60, chance.integers(1, longest)).tolist() for _ in range(number)]


def test_answers_stand_where_the_documents_are_and_tokens_are_gone(model):
    lists = [[5, 6, 7], None, [9], [], [4] * 20, [8, 10]]
    made = MeanOfIdsStage(model, model_inference_batch_size=2).process(batch(*lists))

    assert made.column("mean").to_pylist() == means(*lists)
    assert made.get_columns() == ["text", "mean"]
    assert made.column("text").to_pylist() == [f"t{i}" for i in range(6)]


@pytest.mark.parametrize("lists", [[], [None], [None, [], None]])
def test_where_there_is_nothing_to_ask_columns_have_their_type(model, lists):
    made = MeanOfIdsStage(model).process(batch(*lists))

    assert made.column("mean").type == pa.float32()
    assert made.column("mean").to_pylist() == [None] * len(lists)


def test_batches_are_bounded_in_rows_and_in_padded_tokens_and_sorted(model):
    stage = MeanOfIdsStage(model, model_inference_batch_size=8, max_batch_tokens=64)
    stage.process(batch(*random_lists(100)))
    rows, longest = np.array(stage._runtime.shapes).T

    assert rows.max() == 8
    assert (rows * longest)[rows > 1].max() <= 64
    assert longest.tolist() == sorted(longest)


def test_unsorted_batches_keep_the_order_and_the_same_answers(model):
    lists = random_lists(50)
    plain = MeanOfIdsStage(model, has_seq_order=False, model_inference_batch_size=10)

    assert plain.process(batch(*lists)).column("mean").to_pylist() == means(*lists)
    assert plain._runtime.shapes[0][1] == max(map(len, lists[:10]))


def test_memory_for_16_rows_costs_no_document_and_settles_at_16(model):
    lists = random_lists(300)
    stage = MeanOfIdsStage(model, fits=16, max_batch_tokens=100_000)
    made = stage.process(batch(*lists))

    assert made.column("mean").to_pylist() == means(*lists)
    assert stage._limits.rows == 16
    assert stage.context.own_counts.counted == {"oom": 4, MAY_DIFFER: 300}  # 256, 128, 64 and 32 rows did not fit
    assert stage.context.learnt["batch_rows"] == 16
    assert {rows for rows, _ in stage._runtime.shapes} <= set(range(1, 17))


def test_a_worker_that_starts_later_begins_at_what_was_learnt(model):
    later = MeanOfIdsStage(model, fits=16, max_batch_tokens=100_000)
    later.setup(WorkerMetadata(learnt={"batch_rows": 16.0, "batch_tokens": 6_250.0}))
    later.process(batch(*random_lists(100)))

    assert later._runtime.failed == []
    assert later._runtime.shapes[0][0] == 16


def test_memory_for_few_tokens_settles_too(model):
    lists = random_lists(200)
    stage = MeanOfIdsStage(model, fits_tokens=100, max_batch_tokens=1600)
    made = stage.process(batch(*lists))

    assert made.column("mean").to_pylist() == means(*lists)
    assert 30 <= stage._limits.tokens <= 100


def test_a_document_that_does_not_fit_alone_is_quarantined_with_its_tokens(model, tmp_path):
    lists = [[5, 6], list(range(4, 54)), [7], None]
    stage = MeanOfIdsStage(model, fits_tokens=30)
    result = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch(*lists)], max_quarantined=None, quiet=True)
    (made,) = result

    assert made.column("text").to_pylist() == ["t0", "t2", "t3"]
    assert made.column("mean").to_pylist() == means(lists[0], lists[2], None)
    assert (result.quarantined, result.written) == (1, 3)


def test_what_is_said_of_it(model):
    stage = MeanOfIdsStage(model, fits_tokens=30)
    stage.process(batch([5, 6], list(range(4, 54))))
    (record,) = stage.context.quarantined

    assert (record.kind, record.row) == ("OutOfMemory", 1)
    assert "50 tokens that do not fit alone" in record.error
    assert json.loads(record.document) == {"text": "t1"}


def test_an_answer_that_is_not_a_number_is_an_error_of_its_document_alone(model):
    lists = [[5, 6], [7, 66], [8], [9, 10, 11]]
    result = Pipeline("p", stages=[NotANumberStage(model)]).run(
        HERE, initial_tasks=[batch(*lists)], max_quarantined=None, quiet=True
    )

    assert (result.quarantined, result.written) == (1, 3)
    assert result[0].column("text").to_pylist() == ["t0", "t2", "t3"]


def test_documents_left_by_one_that_fails_are_batched_as_if_it_had_not_been_there(model):
    """So none of them is counted as one whose score may differ: that is for memory only."""
    lists = random_lists(60)
    stage = NotANumberStage(model, model_inference_batch_size=7)
    asked = []
    for given in (lists, [*lists[:30], [7, 66], *lists[30:]]):
        runtime = stage.open_model()
        opened = stage.with_()
        opened.open_model = lambda runtime=runtime: runtime
        result = Pipeline("p", stages=[opened]).run(
            HERE, initial_tasks=[batch(*given)], max_quarantined=None, quiet=True
        )
        asked.append((runtime.shapes[-9:], result[0].column("mean").to_pylist()))
        assert MAY_DIFFER not in result.counts["not_a_number_stage"].counted

    assert result.quarantined == 1
    assert [rows for rows, _ in asked[0][0]] == [7] * 8 + [4]
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("options", "gpus", "lines"),
    [({}, 0, 1), ({}, 1, 0), ({"device": "cpu"}, 1, 1), ({"autocast": False}, 0, 0)],
    ids=["no gpu", "a gpu", "a gpu left alone", "without autocast"],
)
def test_one_line_for_debugging_says_where_autocast_has_no_effect(options, gpus, lines, model, caplog):
    executor = LocalExecutor(num_workers=1, gpus=gpus, gpu_memory_gb=24 if gpus else None)
    stage = MeanOfIdsStage(model, **options)
    with caplog.at_level("DEBUG", logger="gristmill"):
        Pipeline("p", stages=[stage]).plan(executor, initial_tasks=[batch([4, 5])])

    said = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert said == [("DEBUG", "mean_of_ids_stage: autocast has no effect on a CPU")] * lines


def test_existing_tokens_are_taken_padded_or_not_and_stay(model):
    ids = [[5, 6, 0, 0], [0, 0, 7, 8], [9], [0, 0], None]
    mask = [[1, 1, 0, 0], [0, 0, 1, 1], [1], [0, 0], None]
    given = batch(*ids, attention_mask=pa.array(mask, pa.list_(pa.int64())))
    made = MeanOfIdsStage(model, use_existing_tokens=True).process(given)

    assert made.column("mean").to_pylist() == means([5, 6], [7, 8], [9], None, None)
    assert made.column("input_ids").to_pylist() == ids
    assert made.column("attention_mask").to_pylist() == mask


def test_existing_tokens_are_cut_to_what_the_model_takes(model):
    given = batch([4] * 10 + [50] * 10, attention_mask=[[1] * 20])
    made = MeanOfIdsStage(model, use_existing_tokens=True, max_seq_length=10).process(given)

    assert made.column("mean").to_pylist() == [4.0]


def test_lists_of_other_lengths_than_their_mask_are_refused(model):
    stage = MeanOfIdsStage(model, use_existing_tokens=True)

    with pytest.raises(StageError, match="to have lists of the same lengths"):
        stage.process(batch([4, 5], attention_mask=[[1]]))


def test_a_column_that_holds_no_tokens_is_named(model):
    given = DocumentBatch("d", pa.table({"input_ids": ["a b"]}))

    with pytest.raises(StageError, match="expected 'input_ids' to hold lists of token ids; got string"):
        MeanOfIdsStage(model).process(given)


def test_kept_tokens_have_the_names_users_know(model):
    lists = [[5, 6], None]
    stage = MeanOfIdsStage(model, tokens_field="_between", keep_tokens=True)
    given = DocumentBatch("d", pa.table({"_between": pa.array(lists, pa.list_(pa.int32()))}))
    made = stage.process(given)

    assert made.get_columns() == ["mean", "input_ids", "attention_mask"]
    assert made.column("input_ids").to_pylist() == lists
    assert made.column("attention_mask").to_pylist() == [[1, 1], None]


def test_what_was_cut_is_null_where_there_is_no_answer(model):
    stage = MeanOfIdsStage(model, truncated_from="_cut", truncated_field="mean_truncated")
    made = stage.process(batch([5], None, [6], _cut=[True, True, False]))

    assert made.column("mean_truncated").to_pylist() == [True, None, False]
    assert made.get_columns() == ["text", "mean", "mean_truncated"]


def test_tokenizer_and_model_run_apart_and_the_model_on_what_there_is(model):
    stages = [TokenizerStage(model), MeanOfIdsStage(model)]
    given = [DocumentBatch("d", pa.table({"text": ["good news"]}))]
    plans = [Pipeline("p", stages=stages).plan(LocalExecutor(gpus=gpus), initial_tasks=given) for gpus in (0, 1)]

    assert [len(plan.groups) for plan in plans] == [2, 2]
    assert [plan.groups[1].resources for plan in plans] == [Resources(cpus=1.0), Resources(cpus=1.0, gpus=1.0)]
    on_cpu = Pipeline("p", stages=[stages[0], MeanOfIdsStage(model, device="cpu")])
    assert on_cpu.plan(LocalExecutor(gpus=1), initial_tasks=given).groups[1].resources == Resources(cpus=1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model_inference_batch_size": 0}, "model_inference_batch_size to be a whole number ≥ 1; got 0"),
        ({"max_batch_tokens": -1}, "max_batch_tokens"),
        ({"padding_side": "middle"}, 'padding_side "left" or "right"; got'),
    ],
)
def test_a_wrong_parameter_of_a_model_is_named(model, wrong, message):
    with pytest.raises(ConfigError, match=message):
        MeanOfIdsStage(model, **wrong)


def test_rows_longer_than_the_model_takes_are_refused_while_planning(model):
    stages = [TokenizerStage(model, max_seq_length=1024), MeanOfIdsStage(model, max_seq_length=1024)]

    with pytest.raises(ConfigError, match="expected max_seq_length ≤ 512"):
        Pipeline("p", stages=stages).plan(HERE, initial_tasks=[DocumentBatch("d", pa.table({"text": ["a"]}))])


@pytest.mark.parametrize(
    ("resources", "device", "asked"),
    [
        (Resources(cpus=4), "auto", "cpu"),
        (Resources(cpus=1, gpus=1), "auto", "auto"),
        (Resources(cpus=1), "cuda", "cuda"),
        (None, "auto", "auto"),
    ],
    ids=["cpus", "gpu", "named", "by-hand"],
)
def test_a_worker_without_a_gpu_takes_none_that_it_can_see(model, monkeypatch, resources, device, asked):
    found = []
    monkeypatch.setattr("gristmill.models.runtime.open_runtime", lambda source, **given: found.append(given["device"]))
    ModelStage(model, device=device).with_(resources=resources).open_model()

    assert found == [asked]
