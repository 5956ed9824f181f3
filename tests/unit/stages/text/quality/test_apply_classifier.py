"""A trained classifier scores documents as a stage and as a filter, and not at all if its directory was changed."""

import json
import pickle
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from tests.classifier_corpus import documents, write_classes

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, GristmillError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.quality import ApplyClassifier
from gristmill.tasks import DocumentBatch
from gristmill.workflows.thresholds import apply_rules, rules_of, score_pipeline
from gristmill.workflows.training import TrainClassifierWorkflow

INLINE = LocalExecutor(num_workers=0)
ODD = [None, "", " \n\t", "\u00a0\u2003", "\u00a0word", "</s>", "__label__hq", "\x00", "wörd 日本", "a" * 100_000]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trained")
    paths = write_classes(directory, documents(2000, seed=5))
    TrainClassifierWorkflow(*paths, str(directory / "model")).run(INLINE, quiet=True)
    return str(directory / "model")


def batch_of(texts, **columns):
    return DocumentBatch("b", pa.table({"text": pa.array(texts, pa.string()), **columns}))


def columns_of(batch, *names):
    return [batch.to_pyarrow()[name].to_pylist() for name in names]


def test_every_document_gets_a_score_and_keeps_its_text(model):
    texts = [text for text, _ in documents(200, seed=6)]
    batch = ApplyClassifier(model, label_field="label").process(batch_of(texts))
    kept, scores, labels = columns_of(batch, "text", "quality", "label")

    assert kept == texts
    assert all(0 < score < 1 for score in scores)
    assert labels == ["positive" if score >= 0.5 else "negative" for score in scores]
    assert scores == [round(score, 6) for score in scores]


def test_positive_documents_score_higher(model):
    rows = documents(400, seed=7)
    scores = np.array(ApplyClassifier(model).score_documents([text for text, _ in rows]))
    positive = np.array([flag for _, flag in rows])

    assert scores[positive].mean() > scores[~positive].mean() + 0.3


def test_odd_texts_are_null_or_scored_and_never_lost(model):
    batch = ApplyClassifier(model, label_field="label").process(batch_of(ODD))
    kept, scores, labels = columns_of(batch, "text", "quality", "label")

    assert kept == ODD
    assert [score is None for score in scores] == [True] * 4 + [False, True, False, True, False, False]
    assert [label is None for label in labels] == [score is None for score in scores]


def test_a_stage_and_a_filter_say_the_same(model):
    texts = [*ODD[1:], *(text for text, _ in documents(50, seed=8))]
    one_by_one = [ApplyClassifier(model).score_document(text) for text in texts]

    assert columns_of(ApplyClassifier(model).process(batch_of(texts)), "quality")[0] == one_by_one
    assert columns_of(Score(ApplyClassifier(model), "q").process(batch_of(texts)), "q")[0] == one_by_one


def test_a_document_does_not_depend_on_its_neighbours(model):
    texts = [text for text, _ in documents(60, seed=9)]
    together = columns_of(ApplyClassifier(model).process(batch_of(texts)), "quality")[0]
    alone = [columns_of(ApplyClassifier(model).process(batch_of([text])), "quality")[0][0] for text in texts]

    assert together == alone


@pytest.mark.parametrize("texts", [[], [None]], ids=["no-row", "a-null"])
def test_a_batch_without_texts_has_typed_columns(model, texts):
    table = ApplyClassifier(model, label_field="label").process(batch_of(texts)).to_pyarrow()

    assert (table.schema.field("quality").type, table.schema.field("label").type) == (pa.float64(), pa.string())
    assert len(table) == len(texts)


def test_a_column_of_something_else_is_refused_in_words(model):
    batch = DocumentBatch("b", pa.table({"text": [1, 2]}))
    with pytest.raises(GristmillError, match="apply_classifier: expected texts in 'text'; got int64"):
        ApplyClassifier(model).process(batch)


def test_it_travels_without_its_model(model):
    stage = ApplyClassifier(model)
    stage.setup()
    stage.process(batch_of(["some text"]))

    assert len(pickle.dumps(stage)) < 2000


# In pipelines


def write_input(directory, rows):
    directory.mkdir()
    lines = [json.dumps({"id": n, "text": text}) for n, (text, _) in enumerate(rows)]
    lines += ['{"id": "null", "text": null}', '{"id": "blank", "text": " "}']
    (directory / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return str(directory)


def test_workers_do_not_change_a_byte(model, tmp_path):
    source = write_input(tmp_path / "in", documents(300, seed=10))
    outputs = []
    for workers in (0, 2):
        output = tmp_path / f"o{workers}"
        stages = [JsonlReader(source, blocksize=9000), ApplyClassifier(model), JsonlWriter(str(output))]
        result = Pipeline("apply", stages=stages).run(LocalExecutor(num_workers=workers), quiet=True)
        assert (result.read, result.written) == (302, 302)
        outputs.append({path.name: path.read_bytes() for path in output.glob("*.jsonl")})

    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 2


def filtering(model, source, output, **options):
    judge = ApplyClassifier(model, **options)
    stages = [JsonlReader(source), ScoreFilter(judge, score_field="quality"), JsonlWriter(output)]
    return Pipeline("filter", stages=stages)


def test_as_a_filter_it_drops_and_says_why_in_rejects(model, tmp_path):
    source = write_input(tmp_path / "in", documents(100, seed=11))
    pipeline = filtering(model, source, str(tmp_path / "out"), min_score=0.6)
    result = pipeline.run(INLINE, quiet=True, rejects_path=str(tmp_path / "rejects"))
    kept = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    rejects = [json.loads(line) for path in result.rejects_files for line in Path(path).read_text().splitlines()]

    assert 0 < len(kept) < 102
    assert all(row["quality"] >= 0.6 for row in kept)
    assert len(kept) + len(rejects) == 102
    assert result.dropped == {"apply_classifier": {"apply_classifier": len(rejects) - 1, "null_text": 1}}
    thresholds = {row["reject_threshold"] for row in rejects if row["reject_reason"] == "apply_classifier"}
    assert thresholds == {"0.6 ≤ score"}


def test_thresholds_can_be_tried_on_its_scores(model, tmp_path):
    source = write_input(tmp_path / "in", documents(200, seed=12))
    pipeline = filtering(model, source, str(tmp_path / "out"))
    score_pipeline(pipeline, str(tmp_path / "scored")).run(INLINE, quiet=True)
    (rule,) = rules_of(pipeline)
    for least in (0.2, 0.8):
        told = apply_rules(str(tmp_path / "scored"), [rule.with_parameter("min_score", least)])
        run = filtering(model, source, str(tmp_path / f"out{least}"), min_score=least).run(INLINE, quiet=True)

        assert told.kept == run.written
        assert told.dropped() == run.dropped
    assert rule.threshold == "0.5 ≤ score"


@pytest.mark.parametrize("option", ["text_field", "score_field", "label_field"])
def test_columns_are_named_at_one_place_only(model, tmp_path, option):
    source = write_input(tmp_path / "in", documents(4))
    pipeline = filtering(model, source, str(tmp_path / "out"), **{option: "other"})
    with pytest.raises(GristmillError, match=f"expected no {option} where it is used as a filter"):
        pipeline.run(INLINE, quiet=True)


def run_stage(model, source, output, **options):
    stages = [JsonlReader(source), ApplyClassifier(model, **options), JsonlWriter(output)]
    return Pipeline("apply", stages=stages).run(INLINE, quiet=True)


def test_a_threshold_without_effect_is_refused_while_planning(model, tmp_path):
    source = write_input(tmp_path / "in", documents(4))
    with pytest.raises(ConfigError, match="expected no min_score, since this stage drops nothing"):
        run_stage(model, source, str(tmp_path / "out"), min_score=0.9)
    assert run_stage(model, source, str(tmp_path / "out"), min_score=0.9, label_field="label").written == 6


# Damaged directories


def change_card(directory, **changes):
    card = json.loads((directory / "card.json").read_text())
    (directory / "card.json").write_text(json.dumps({**card, **changes}))


def damage(directory, kind):
    if kind == "no-card":
        (directory / "card.json").unlink()
    elif kind == "half-a-card":
        (directory / "card.json").write_bytes((directory / "card.json").read_bytes()[:200])
    elif kind == "other-format":
        change_card(directory, format=2)
    elif kind == "falling-knots":
        change_card(directory, calibration={"log_odds": [0.0, 1.0], "probabilities": [0.9, 0.1]})
    elif kind == "no-knots":
        change_card(directory, calibration={"log_odds": [], "probabilities": []})
    elif kind == "other-calibration":
        change_card(directory, calibration={"log_odds": [-1.0, 1.0], "probabilities": [0.4, 0.6]})
    elif kind == "no-model":
        (directory / "model.bin").unlink()
    elif kind == "one-bit":
        content = bytearray((directory / "model.bin").read_bytes())
        content[-1] ^= 1
        (directory / "model.bin").write_bytes(content)
    elif kind == "no-rows":
        (directory / "rows.jsonl").unlink()
    else:
        shutil.rmtree(directory)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "no-directory",
            "expected model to be a directory that `gristmill train-classifier` has written; .* not a",
        ),
        ("no-card", r"no card\.json in it"),
        ("half-a-card", r"expected .*card\.json to be a card as train-classifier writes it; got"),
        ("other-format", "expected a card of format 1 in .*; got 2: train it again"),
        ("falling-knots", r"expected the calibration in .* to rise from 0 to 1"),
        ("no-knots", r"expected the calibration in .* to rise from 0 to 1"),
        ("other-calibration", "to give row 1 of its card the score .*, as when it was made; got"),
        ("no-model", r"expected .*model\.bin, which the card lists; No such file"),
        ("one-bit", r"expected .*model\.bin as it was when the model was made .*; it has changed"),
        ("no-rows", r"expected .*rows\.jsonl, which the card lists; No such file"),
    ],
)
def test_a_damaged_directory_is_told_while_planning(model, tmp_path, kind, said):
    directory = tmp_path / "model"
    shutil.copytree(model, directory)
    damage(directory, kind)
    source = write_input(tmp_path / "in", documents(4))

    with pytest.raises(ConfigError, match=said):
        run_stage(str(directory), source, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_model_that_was_replaced_since_the_plan_is_refused(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    stage = ApplyClassifier(str(tmp_path / "model"))
    change_card(tmp_path / "model", text_field="other")

    with pytest.raises(ConfigError, match="the run was planned with; it has been replaced"):
        stage.setup()


def test_a_changed_model_is_another_plan(model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    one = ApplyClassifier(str(tmp_path / "model"))
    change_card(tmp_path / "model", text_field="other")
    other = ApplyClassifier(str(tmp_path / "model"))

    assert one.get_config() != other.get_config()
    assert msgspec.to_builtins(one.get_config()["card"]) != other.get_config()["card"]


@pytest.mark.parametrize("least", [-0.1, 1.5])
def test_a_threshold_that_is_not_a_probability_is_refused(model, least):
    with pytest.raises(ConfigError, match="expected 0 ≤ min_score ≤ 1"):
        ApplyClassifier(model, min_score=least)
