"""The eleven classes on models as torch saves them, with the file layouts of the real ones."""

import json
import shutil

import pytest
from tests.tiny_torch_models import LABELS, documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.math.classifiers import FineMathClassifier
from gristmill.stages.text import classifiers
from gristmill.stages.text.classifiers.models import COMPLEXITY_FIELDS
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # torch and transformers warn of themselves

HERE = LocalExecutor(num_workers=0)
EDU = {
    "FineWebEduClassifier": "fineweb-edu-score",
    "FineWebMixtralEduClassifier": "fineweb-mixtral-edu-score",
    "FineWebNemotronEduClassifier": "fineweb-nemotron-edu-score",
}
# class, tiny model, columns it adds
CLASSES = {
    "QualityClassifier": ("mixin", ["quality_pred"]),
    "DomainClassifier": ("mixin", ["domain_pred"]),
    "MultilingualDomainClassifier": ("mixin", ["multilingual_domain_pred"]),
    "ContentTypeClassifier": ("mixin", ["content_pred"]),
    **{name: ("regression", [f"{field}-{kind}" for kind in ("label", "float", "int")]) for name, field in EDU.items()},
    "FineMathClassifier": ("regression", ["finemath_scores", "finemath_int_scores"]),
    "AegisClassifier": ("adapter", ["aegis_pred", "_aegis_raw_pred"]),
    "InstructionDataGuardClassifier": ("guard", ["is_poisoned", "instruction_data_guard_poisoning_score"]),
    "PromptTaskComplexityClassifier": ("prompt_heads", list(COMPLEXITY_FIELDS)),
}


def made(name, models):
    path = {"model_path": str(getattr(models, CLASSES[name][0]).directory)}
    base = {"base_model_path": str(models.llama.directory)}
    if name == "FineMathClassifier":
        return FineMathClassifier(**path)
    if name == "AegisClassifier":
        return classifiers.AegisClassifier(**path, **base, keep_raw_output=True, prompt="river {document} stone")
    if name == "InstructionDataGuardClassifier":
        return classifiers.InstructionDataGuardClassifier(**path, **base, adapter_path=str(models.adapter.directory))
    options = {"model_inference_batch_size": 64, "max_chars": 3000} if name == "QualityClassifier" else {}
    return getattr(classifiers, name)(**path, **options)


def run(directory, stage, lines):
    (directory / "in").mkdir()
    (directory / "in" / "a.jsonl").write_bytes(lines)
    (directory / "in" / "empty.jsonl").write_bytes(b"")
    stages = [JsonlReader(str(directory / "in")), stage, JsonlWriter(str(directory / "out"))]
    result = Pipeline("p", stages=stages).run(HERE, quiet=True)
    return result, (directory / "out" / "a.jsonl").read_bytes().splitlines()


ODD = [b'{"id":1,"text":null}', b'{"id":2,"text":""}', b'{"id":3,"text":" \\n\\t"}', b'{"id":4}']


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_runs_on_files_laid_out_like_the_real_ones(name, tiny_models, tmp_path):
    full = [json.dumps({"id": n, "text": text}).encode() for n, text in enumerate(documents(8))]
    given = [*ODD, *full, b'{"id": "00123" , "text" : "river\\u0020stone \\ud83e\\udd8a" }']
    result, lines = run(tmp_path, made(name, tiny_models), b"\n".join(given) + b"\n")
    columns = CLASSES[name][1]

    assert (result.read, result.written, result.quarantined) == (len(given), len(given), 0)
    for before, after in zip(given, lines, strict=True):
        assert after.startswith(before.rstrip(b" }").rstrip())
        assert set(json.loads(after)) - set(json.loads(before)) == set(columns)
        answers = [json.loads(after)[column] for column in columns]
        assert (answers == [None] * len(columns)) if before in ODD else (None not in answers)


def test_labels_are_those_of_the_module_that_was_saved(tiny_models, tmp_path):
    import torch

    from gristmill.models.runtime import ModelSource
    from gristmill.models.tokenizer import open_tokenizer

    texts = documents(40)
    stage = classifiers.QualityClassifier(model_path=str(tiny_models.mixin.directory), score_field="scores")
    _, lines = run(tmp_path, stage, "".join(json.dumps({"text": text}) + "\n" for text in texts).encode())
    tokenizer = open_tokenizer(ModelSource(str(tiny_models.mixin.directory)))
    for text, line in zip(texts, lines, strict=True):
        ids = torch.tensor(tokenizer.encode([text]).ids)[None].long()
        with torch.inference_mode():
            expected = tiny_models.mixin.reference(ids, torch.ones_like(ids))[0]
        assert json.loads(line)["quality_pred"] == LABELS[int(expected.argmax())]
        assert json.loads(line)["scores"] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_guard_answers_the_same_however_rows_are_padded(tiny_models, tmp_path):
    texts = documents(12)
    scores = []
    for number, rows in enumerate((1, 12)):
        (tmp_path / str(number)).mkdir()
        stage = made("InstructionDataGuardClassifier", tiny_models)
        stage.model_inference_batch_size = rows
        lines = run(tmp_path / str(number), stage, "".join(json.dumps({"text": t}) + "\n" for t in texts).encode())[1]
        scores.append([json.loads(line)["instruction_data_guard_poisoning_score"] for line in lines])

    assert scores[0] == pytest.approx(scores[1], abs=2e-6)
    assert len(set(scores[0])) > 1


@pytest.mark.parametrize("place", [".", "onnx"])
def test_a_guard_in_one_onnx_file_scores_as_its_three_directories_do(place, tiny_models, tmp_path):
    texts = documents(12)
    exported = tiny_models.as_onnx(tiny_models.whole_guard, ["probability"], "whole_guard")
    shutil.copytree(exported, tmp_path / "model")
    (tmp_path / "model" / place).mkdir(exist_ok=True)
    (tmp_path / "model" / "model.onnx").rename(tmp_path / "model" / place / "model.onnx")
    whole = classifiers.InstructionDataGuardClassifier(model_path=str(tmp_path / "model"), runtime="onnx")
    scores, flags = [], []
    for number, stage in enumerate((whole, made("InstructionDataGuardClassifier", tiny_models))):
        (tmp_path / str(number)).mkdir()
        lines = run(tmp_path / str(number), stage, "".join(json.dumps({"text": t}) + "\n" for t in texts).encode())[1]
        scores.append([json.loads(line)["instruction_data_guard_poisoning_score"] for line in lines])
        flags.append([json.loads(line)["is_poisoned"] for line in lines])

    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert flags[0] == flags[1]
    assert len(set(scores[0])) > 1


def test_a_guard_for_torch_needs_its_language_model_though_there_is_an_onnx_file(tiny_models, tmp_path):
    shutil.copytree(tiny_models.guard.directory, tmp_path / "model")
    (tmp_path / "model" / "model.onnx").write_bytes(b"not to be opened")
    (tmp_path / "torch").mkdir()
    stage = made("InstructionDataGuardClassifier", tiny_models)
    stage.model_path, stage.runtime = str(tmp_path / "model"), "torch"
    _, (line,) = run(tmp_path / "torch", stage, b'{"text":"river stone"}\n')

    assert 0 < json.loads(line)["instruction_data_guard_poisoning_score"] < 1
