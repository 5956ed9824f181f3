"""Each class between a reader and a writer, on a tiny model with the files of a real one."""

import inspect
import json

import numpy as np
import pyarrow as pa
import pytest
from tests.jsonl_files import read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.models.runtime import ModelSource, open_runtime
from gristmill.models.tokenizer import open_tokenizer
from gristmill.pipeline import Pipeline
from gristmill.stages.math.classifiers import FineMathClassifier
from gristmill.stages.text import classifiers
from gristmill.stages.text.classifiers.models import COMPLEXITY_FIELDS
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter, ParquetWriter
from gristmill.stages.text.models.tokenizer import TokenReader
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import (
    WORDS,
    write_tiny_classifier,
    write_tiny_guard,
    write_tiny_prompt_classifier,
)

HERE = LocalExecutor(num_workers=0)
LABELS = ("High", "Medium", "Low")


def texts(number=60, seed=0, longest=40):
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice(WORDS, chance.integers(1, longest))) for _ in range(number)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return {
        "labels": str(write_tiny_classifier(root / "labels", labels=LABELS)),
        "eleven": str(write_tiny_classifier(root / "eleven", labels=[f"label {i}" for i in range(11)], seed=2)),
        "grade": str(write_tiny_classifier(root / "grade", labels=("LABEL_0",), seed=3)),
        "prompt": str(write_tiny_prompt_classifier(root / "prompt")),
        "guard": str(write_tiny_guard(root / "guard")),
    }


class FailsOnMultiplesOfSeven(TokenReader):
    """A stage that leaves tokens alone, so that they travel past it."""

    name = "fails_on_multiples_of_seven"

    def process(self, task):
        bad = [n for n in task.column("id").to_pylist() if n % 7 == 0]
        if bad:
            raise ValueError(f"cannot do {bad}")
        return task


# class, tiny model, columns it adds
CLASSES = {
    "QualityClassifier": ("labels", ["quality_pred"]),
    "DomainClassifier": ("labels", ["domain_pred"]),
    "MultilingualDomainClassifier": ("labels", ["multilingual_domain_pred"]),
    "ContentTypeClassifier": ("labels", ["content_pred"]),
    "FineWebEduClassifier": ("grade", [f"fineweb-edu-score-{k}" for k in ("label", "float", "int")]),
    "FineWebMixtralEduClassifier": ("grade", [f"fineweb-mixtral-edu-score-{k}" for k in ("label", "float", "int")]),
    "FineWebNemotronEduClassifier": ("grade", [f"fineweb-nemotron-edu-score-{k}" for k in ("label", "float", "int")]),
    "FineMathClassifier": ("grade", ["finemath_scores", "finemath_int_scores"]),
    "InstructionDataGuardClassifier": ("guard", ["is_poisoned", "instruction_data_guard_poisoning_score"]),
    "PromptTaskComplexityClassifier": ("prompt", list(COMPLEXITY_FIELDS)),
    "DistributedDataClassifier": ("eleven", ["preds"]),
}


def made(name, models, **options):
    model = models[CLASSES[name][0]]
    if name == "FineMathClassifier":
        return FineMathClassifier(model_path=model, **options)
    if name == "DistributedDataClassifier":
        return classifiers.DistributedDataClassifier(model_identifier=model, **options)
    return getattr(classifiers, name)(model_path=model, **options)


def run(directory, stages, lines):
    """Run stages over JSON lines; return the lines that were written."""
    (directory / "in").mkdir(parents=True)
    (directory / "in" / "a.jsonl").write_bytes(lines)
    (directory / "in" / "empty.jsonl").write_bytes(b"")
    whole = [JsonlReader(str(directory / "in")), *stages, JsonlWriter(str(directory / "out"))]
    result = Pipeline("p", stages=whole).run(HERE, quiet=True)
    return result, (directory / "out" / "a.jsonl").read_bytes().splitlines()


ODD = [b'{"id":1,"text":null}', b'{"id":2,"text":""}', b'{"id":3,"text":" \\n\\t"}', b'{"id":4}']
FULL = [
    b'{ "id": "00123" , "text" : "Good \\u0077ater \\ud83e\\udd8a" , "more":{"b":1,"a":[1.0,2]} }',
    b'{"id":6,"text":"the news' + b" page" * 2000 + b'"}',
    b'{"id":7,"text":"a\\u0000b \\ud800 c"}',
]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_between_reader_and_writer_adds_its_columns_and_leaves_the_rest(name, models, tmp_path):
    given = ODD + FULL
    result, lines = run(tmp_path, [made(name, models)], b"\n".join(given) + b"\n")

    assert (result.read, result.written, result.quarantined) == (7, 7, 0)
    columns = CLASSES[name][1]
    for before, after in zip(given, lines, strict=True):
        assert after.startswith(before.rstrip(b" }").rstrip())
        assert set(json.loads(after)) - set(json.loads(before)) == set(columns)
    for line in lines[: len(ODD)]:
        assert [json.loads(line)[column] for column in columns] == [None] * len(columns)
    for line in lines[len(ODD) :]:
        assert None not in [json.loads(line)[column] for column in columns]


@pytest.mark.parametrize("name", CLASSES)
def test_an_empty_batch_has_columns_of_the_same_types(name, models):
    def types(*given):
        batch = DocumentBatch("d", pa.table({"text": pa.array(given, pa.string())}))
        (task,) = Pipeline("p", stages=[made(name, models)]).run(HERE, initial_tasks=[batch], quiet=True)
        return {field.name: field.type for field in task.to_pyarrow().schema}

    assert types() == types("good news") == types(None) == types("good", None)
    assert list(types()) == ["text", *CLASSES[name][1]]


def test_labels_and_scores_are_those_of_a_plain_loop(models, tmp_path):
    documents = texts()
    stage = made("DistributedDataClassifier", models, score_field="scores", model_inference_batch_size=7)
    batch = DocumentBatch("d", pa.table({"text": documents}))
    (task,) = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch], quiet=True)
    source = ModelSource(models["eleven"])
    tokenizer, runtime = open_tokenizer(source), open_runtime(source, threads=1, head="sequence")
    for text, label, scores in zip(
        documents, task.column("preds").to_pylist(), task.column("scores").to_pylist(), strict=True
    ):
        ids = tokenizer.encode([text]).ids.astype(np.int64)[None]
        (logits,) = runtime.run(ids, np.ones_like(ids))
        expected = np.exp(logits[0] - logits.max()) / np.exp(logits[0] - logits.max()).sum()
        assert label == f"label {logits.argmax()}"
        assert scores == pytest.approx(expected.tolist(), abs=2e-6)
        assert scores == [round(score, 6) for score in scores]


def test_the_tenth_label_does_not_sort_before_the_second(models, tmp_path):
    config = json.loads((tmp_path.__class__(models["eleven"]) / "config.json").read_text())
    config.pop("label2id")  # what is left are texts as keys
    model = write_tiny_classifier(tmp_path / "m", labels=[f"label {i}" for i in range(11)], seed=2)
    shuffled = dict(sorted(config["id2label"].items()))
    assert list(shuffled)[2] == "10"
    (model / "config.json").write_text(json.dumps({**config, "id2label": shuffled}))
    batch = DocumentBatch("d", pa.table({"text": texts()}))
    labels = []
    for directory in (str(model), models["eleven"]):
        stage = classifiers.DistributedDataClassifier(model_identifier=directory)
        (task,) = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch], quiet=True)
        labels.append(task.column("preds").to_pylist())

    assert labels[0] == labels[1]
    assert len(set(labels[0])) > 3


def test_filter_by_keeps_what_is_named_and_says_why_the_rest_went(models, tmp_path):
    batch = DocumentBatch("d", pa.table({"text": [*texts(), None, ""]}))
    (task,) = Pipeline("p", stages=[made("QualityClassifier", models)]).run(HERE, initial_tasks=[batch], quiet=True)
    all_labels = task.column("quality_pred").to_pylist()
    stage = made("QualityClassifier", models, filter_by=["High", "Low"])
    result = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch], quiet=True)
    kept = result[0].column("quality_pred").to_pylist()

    assert kept == [label for label in all_labels if label in ("High", "Low")]
    assert result.dropped == {
        "quality_classifier_filter": {"no_prediction": 2, "other_label": all_labels.count("Medium")}
    }


def test_a_guard_can_be_filtered_by_what_it_says(models):
    batch = DocumentBatch("d", pa.table({"text": texts()}))
    stage = made("InstructionDataGuardClassifier", models, filter_by=[False])
    (task,) = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch], quiet=True)

    assert set(task.column("is_poisoned").to_pylist()) == {False}
    assert 0 < task.num_items < 60


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("QualityClassifier", ["high"], r"of \['High', 'Medium', 'Low'\]; got 'high'; did you mean 'High'"),
        ("QualityClassifier", "High", r"expected filter_by to be a list of labels; got 'High'. Write \['High'\]"),
        ("FineWebEduClassifier", ["LABEL_0"], "high_quality"),
        ("DistributedDataClassifier", ["lable 3"], "did you mean 'label 3'"),
        ("InstructionDataGuardClassifier", ["True"], r"\[False, True\]"),
        ("InstructionDataGuardClassifier", False, r"to be a list of labels; got False. Write \[False\]"),
    ],
)
def test_an_unknown_label_is_said_before_anything_runs(name, wanted, message, models):
    batch = DocumentBatch("d", pa.table({"text": ["a"]}))

    with pytest.raises(ConfigError, match=message):
        Pipeline("p", stages=[made(name, models, filter_by=wanted)]).plan(HERE, initial_tasks=[batch])


@pytest.mark.parametrize("name", [name for name in CLASSES if name.startswith(("Q", "FineWebE", "I", "Dist"))])
def test_a_filter_without_a_label_is_refused_and_not_taken_for_none(name, models):
    batch = DocumentBatch("d", pa.table({"text": ["a"]}))
    message = rf"^{name}: expected filter_by to name at least one label; got \[\], .* leave filter_by out$"

    with pytest.raises(ConfigError, match=message):
        Pipeline("p", stages=[made(name, models, filter_by=[])]).plan(HERE, initial_tasks=[batch])


@pytest.mark.parametrize("wanted", [["Open QA"], []], ids=["a label", "no label"])
def test_eleven_columns_cannot_be_filtered_by(wanted, models):
    with pytest.raises(ConfigError, match="expected no filter_by"):
        made("PromptTaskComplexityClassifier", models, filter_by=wanted)


def test_kept_tokens_are_taken_by_the_next_and_give_the_same(models):
    batch = DocumentBatch("d", pa.table({"text": [*texts(), None, " "]}))
    first = made("QualityClassifier", models, keep_tokens=True)
    second = made("ContentTypeClassifier", models, use_existing_tokens=True)
    plan = Pipeline("p", stages=[first, second]).plan(HERE, initial_tasks=[batch])
    (task,) = Pipeline("p", stages=[first, second]).run(HERE, initial_tasks=[batch], quiet=True)

    assert [name for name in plan.stage_names if "tokenizer" in name] == ["quality_classifier_tokenizer"]
    assert task.column("quality_pred").to_pylist() == task.column("content_pred").to_pylist()
    assert {"input_ids", "attention_mask"} <= set(task.get_columns())


def test_neighbours_that_agree_share_a_tokenizer_and_give_what_they_give_alone(models):
    batch = DocumentBatch("d", pa.table({"text": [*texts(), None, "good " * 4000]}))
    names = ["QualityClassifier", "ContentTypeClassifier"]
    stages = [made(name, models, mark_truncated=name.startswith("Content")) for name in names]
    stages.insert(1, made("FineWebEduClassifier", models, max_chars=6000, filter_by=["high_quality", "low_quality"]))
    plan = Pipeline("p", stages=stages).plan(HERE, initial_tasks=[batch])
    (together,) = Pipeline("p", stages=stages).run(HERE, initial_tasks=[batch], quiet=True)
    alone = batch
    for stage in stages:
        (alone,) = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[alone], quiet=True)

    assert [name for name in plan.stage_names if "tokenizer" in name] == ["quality_classifier_tokenizer"]
    assert together.to_pyarrow().equals(alone.to_pyarrow())
    assert together.column("content_pred_truncated").to_pylist()[-1] is True


def test_rejects_and_quarantine_show_no_columns_from_between_stages(models, tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": n, "text": text} for n, text in enumerate(texts(30))])
    stages = [
        JsonlReader(str(tmp_path / "in")),
        made("QualityClassifier", models, filter_by=["High"]),
        FailsOnMultiplesOfSeven(),
        made("ContentTypeClassifier", models),
        JsonlWriter(str(tmp_path / "out")),
    ]
    plan = Pipeline("p", stages=stages).plan(HERE)
    result = Pipeline("p", stages=stages).run(HERE, rejects_path=tmp_path / "rejects", max_quarantined=None, quiet=True)
    left = "".join(path.read_text() for path in (tmp_path / "out" / ".gristmill" / "quarantine").rglob("*.jsonl"))
    left += "".join(path.read_text() for path in (tmp_path / "rejects").rglob("*.jsonl"))

    assert [name for name in plan.stage_names if "tokenizer" in name] == ["quality_classifier_tokenizer"]
    assert result.quarantined > 0
    assert result.dropped_total > 0
    assert "other_label" in left
    assert "_gristmill_" not in left


def test_a_users_column_of_tokens_stays_as_it_is(models):
    own = pa.array([["mine"], None])
    batch = DocumentBatch("d", pa.table({"text": ["good", "bad"], "input_ids": own}))
    (task,) = Pipeline("p", stages=[made("QualityClassifier", models)]).run(HERE, initial_tasks=[batch], quiet=True)

    assert task.column("input_ids").to_pylist() == own.to_pylist()
    assert task.get_columns() == ["text", "input_ids", "quality_pred"]


def test_a_column_that_is_there_is_not_replaced(models, tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "good", "quality_pred": "mine"}])
    stages = [JsonlReader(str(tmp_path / "in")), made("QualityClassifier", models), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(ConfigError, match="expected no column 'quality_pred' yet"):
        Pipeline("p", stages=stages).run(HERE, quiet=True)


def test_the_model_sees_the_middle_of_a_long_document(models):
    middle = "science " * 100
    long = "good " * 5000 + middle + "good " * 5000
    batch = DocumentBatch("d", pa.table({"text": [long, long[len(long) // 2 - 30 : len(long) // 2 + 30]]}))
    stage = made("FineMathClassifier", models, center_crop_chars=30, mark_truncated=True)
    (task,) = Pipeline("p", stages=[stage]).run(HERE, initial_tasks=[batch], quiet=True)
    scores = task.column("finemath_scores").to_pylist()

    assert scores[0] == scores[1]
    assert task.column("finemath_scores_truncated").to_pylist() == [True, False]
    assert task.column("text").to_pylist()[0] == long


def test_parquet_keeps_its_types_and_gets_new_columns(models, tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    table = pa.table({"id": pa.array([1, 2], pa.int16()), "text": pa.array(["good", None], pa.large_string())})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    stages = [
        ParquetReader(str(tmp_path / "in")),
        made("FineWebEduClassifier", models),
        ParquetWriter(str(tmp_path / "out")),
    ]
    Pipeline("p", stages=stages).run(HERE, quiet=True)
    after = pq.read_table(next((tmp_path / "out").glob("*.parquet")))

    assert after.schema.field("id").type == pa.int16()
    assert after.column("text").to_pylist() == ["good", None]
    assert after.column("fineweb-edu-score-int").null_count == 1


def test_a_model_that_is_not_there_is_said_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "good"}])
    stages = [JsonlReader(str(tmp_path / "in")), classifiers.QualityClassifier(), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(ConfigError, match=r"^QualityClassifier: expected .*nvidia/quality-classifier-deberta"):
        Pipeline("p", stages=stages).plan()
    assert read_documents(tmp_path / "in") == [{"text": "good"}]
    assert not (tmp_path / "out").exists()


EXPECTED = {  # of each class: what it takes by position, with the defaults users know
    "QualityClassifier": {"cache_dir": None, "label_field": "quality_pred", "score_field": None, "max_chars": 6000},
    "DomainClassifier": {"max_chars": 2000, "model_inference_batch_size": 256},
    "FineWebEduClassifier": {"label_field": "fineweb-edu-score-label", "model_inference_batch_size": 256},
    "FineWebMixtralEduClassifier": {"model_inference_batch_size": 1024, "max_chars": None},
    "InstructionDataGuardClassifier": {"model_inference_batch_size": 64, "max_chars": None},
    "AegisClassifier": {"max_chars": 6000, "model_inference_batch_size": 64, "keep_raw_output": False},
    "PromptTaskComplexityClassifier": {"max_chars": None, "model_inference_batch_size": 256},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_defaults_are_those_users_know(name):
    parameters = inspect.signature(getattr(classifiers, name)).parameters

    assert {key: parameters[key].default for key in EXPECTED[name]} == EXPECTED[name]
    added = ("model_path", "device", "runtime", "max_batch_tokens", "offline", "mark_truncated")
    assert all(parameters[key].kind is inspect.Parameter.KEYWORD_ONLY for key in added)


def test_positions_are_those_users_know():
    order = list(inspect.signature(classifiers.QualityClassifier).parameters)[:11]

    assert order == [
        "cache_dir",
        "label_field",
        "score_field",
        "text_field",
        "filter_by",
        "max_chars",
        "sort_by_length",
        "model_inference_batch_size",
        "autocast",
        "keep_tokens",
        "use_existing_tokens",
    ]
    assert list(inspect.signature(classifiers.AegisClassifier).parameters)[:3] == [
        "aegis_variant",
        "cache_dir",
        "hf_token",
    ]


def test_an_unknown_variant_is_named():
    with pytest.raises(ConfigError, match="expected aegis_variant to be of"):
        classifiers.AegisClassifier("nvidia/Aegis-AI-Content-Safety-LlamaGuard-Defensive-2.0")
