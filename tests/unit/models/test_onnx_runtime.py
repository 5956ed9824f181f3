"""A real model in ONNX Runtime: what it takes, answers, refuses, and how it runs out of memory."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from gristmill.errors import ConfigError, OutOfMemory
from gristmill.kernels.token_batches import pad_rows
from gristmill.models.onnx_runtime import operators
from gristmill.models.runtime import ModelSource, open_runtime
from gristmill.models.tokenizer import open_tokenizer
from gristmill.testing.tiny_models import write_onnx, write_tiny_classifier, write_tiny_encoder

TEXTS = ["The water is good", "click on this page for more news", "bad", "one two time people could find oil now"]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return ModelSource(str(write_tiny_classifier(tmp_path_factory.mktemp("classifier"))), who="Tiny")


def batch(source, texts, side="right"):
    tokens = open_tokenizer(source).encode(texts)
    return pad_rows(tokens.ids, tokens.offsets, np.arange(len(texts)), pad_id=0, side=side)


def test_a_batch_gives_the_logits_of_each_row(classifier):
    runtime = open_runtime(classifier, threads=1, head="cls_softmax")
    (together,) = runtime.run(*batch(classifier, TEXTS))
    alone = np.concatenate([runtime.run(*batch(classifier, [text]))[0] for text in TEXTS])

    assert together.shape == (4, 3)
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert (runtime.device, runtime.max_length, runtime.pad_id) == ("cpu", 512, 0)


def test_an_encoder_answers_with_its_last_hidden_state(tmp_path):
    source = ModelSource(str(write_tiny_encoder(tmp_path, width=8)))
    (hidden,) = open_runtime(source, threads=1, head="encoder").run(*batch(source, TEXTS[:2]))

    assert hidden.shape == (2, 9, 8)


def test_a_batch_without_room_is_out_of_memory_and_the_session_works_on(tmp_path):
    """The real error of ONNX Runtime: an array larger than any machine's memory is asked for."""
    script = tmp_path / "script.py"
    source = ModelSource(str(write_tiny_encoder(tmp_path / "model", width=16)))
    script.write_text(OUT_OF_MEMORY)
    command = [sys.executable, script, pickle.dumps(source).hex()]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.stdout.split("\n")[:2] == [
        "ONNX Runtime on cpu: 40000 rows of 500 tokens do not fit",
        "(2, 500, 16)",
    ], done.stderr


OUT_OF_MEMORY = """
import pickle, resource, sys
import numpy as np
from gristmill.errors import OutOfMemory
from gristmill.models.runtime import open_runtime

runtime = open_runtime(pickle.loads(bytes.fromhex(sys.argv[1])), threads=1, head="encoder")
ids = np.zeros((40_000, 500), np.int64)  # 160 MB, and the vectors 1.3 GB
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600_000_000, used + 600_000_000))
try:
    runtime.run(ids, ids)
except OutOfMemory as error:
    print(error)
print(runtime.run(ids[:2], ids[:2])[0].shape)
"""


def test_dynamic_quantisation_is_refused_unless_allowed(tmp_path):
    nodes = [
        ("Cast", ["input_ids"], ["numbers"], {"to": 1}),
        ("DynamicQuantizeLinear", ["numbers"], ["small", "scale", "zero_point"], {}),
        ("DequantizeLinear", ["small", "scale", "zero_point"], ["logits"], {}),
    ]
    write_onnx(tmp_path / "model.onnx", nodes, {}, outputs={"logits": ("rows", "tokens")})
    source = ModelSource(str(tmp_path), who="QualityClassifier")
    allowed = ModelSource(str(tmp_path), who="QualityClassifier", allow_batch_dependent=True)

    assert operators(tmp_path / "model.onnx") == {"Cast", "DynamicQuantizeLinear", "DequantizeLinear"}
    with pytest.raises(
        ConfigError, match=r"^QualityClassifier: .* dynamically quantised .*allow_batch_dependent=True$"
    ):
        open_runtime(source, threads=1, head="sequence")
    ids = np.array([[0, 1, 3]])
    assert open_runtime(allowed, threads=1, head="sequence").run(ids, ids)[0].shape == (1, 3)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x0b\xff\xff"])
def test_a_file_that_is_not_a_model_is_said_to_be_none(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)

    with pytest.raises(ConfigError, match=r"^model: expected an ONNX model in .*model\.onnx; got: "):
        open_runtime(ModelSource(str(tmp_path)), threads=1, head="sequence")


def test_a_pickle_is_refused_with_the_reason(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")

    with pytest.raises(ConfigError, match=r"got pytorch_model\.bin, a pickle, .*allow_pickle=True$"):
        open_runtime(ModelSource(str(tmp_path)), threads=1, head="sequence")


def test_a_directory_without_weights_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"^model: expected \.safetensors or \.onnx in .*; found neither$"):
        open_runtime(ModelSource(str(tmp_path)), threads=1, head="sequence")


def test_several_models_in_one_directory_are_not_guessed_between(tmp_path):
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")

    with pytest.raises(ConfigError, match=r"expected model\.onnx or one \.onnx file in .*; got a\.onnx, b\.onnx$"):
        open_runtime(ModelSource(str(tmp_path)), threads=1, head="sequence")


def test_a_device_that_is_not_there_is_refused_with_those_that_are(classifier):
    with pytest.raises(ConfigError, match=r"^Tiny: expected device to be 'auto' or one of \['cpu'\]; got 'cuda'$"):
        open_runtime(classifier, device="cuda", threads=1, head="cls_softmax")


def test_eight_outputs_are_expected_of_eight_heads(classifier):
    with pytest.raises(ConfigError, match=r"^Tiny: expected 8 outputs in .*; got logits$"):
        open_runtime(classifier, threads=1, head="multi_head")


def write_guard(directory, outputs, last=("Sigmoid",), axes=(1,)):
    """A graph that answers with the sum of a row's ids, under the names given."""
    nodes = [("Cast", ["input_ids"], ["numbers"], {"to": 1})]
    nodes += [("ReduceSum", ["numbers", "axes"], ["sum"], {"keepdims": 1})]
    nodes += [(operator, ["sum"], [name], {}) for name in outputs for operator in last]
    shapes = dict.fromkeys(outputs, ("rows", "width"))
    directory.mkdir(exist_ok=True)
    write_onnx(directory / "model.onnx", nodes, {"axes": np.array(axes)}, outputs=shapes)
    return ModelSource(str(directory), who="Guard")


@pytest.mark.parametrize("outputs", [["score"], ["logits", "probability"]], ids=["the only one", "by its name"])
def test_a_guard_answers_with_its_probability(outputs, tmp_path):
    source = write_guard(tmp_path, outputs)
    ids = np.array([[0, 0], [1, 1]])
    (found,) = open_runtime(source, threads=1, head="poison_guard").run(ids, ids)

    np.testing.assert_allclose(found, [[0.5], [1 / (1 + np.exp(-2))]], atol=1e-6)


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        (["logits"], {}, r"expected the output 'probability' \[rows, 1\] in .*; got logits \[rows, 1\]$"),
        (["a", "b"], {}, r"expected the output 'probability' .*; got a \[rows, 1\], b \[rows, 1\]$"),
        (["score"], {"axes": (0,)}, r"expected one probability for each of 4 rows; got the shape \(1, 4\)$"),
        (["probability"], {"last": ("Identity",)}, r"probabilities from 0 to 1; got 6 to 54\. Export .* its sigmoid$"),
    ],
    ids=["logits", "two outputs", "another shape", "no sigmoid"],
)
def test_a_graph_that_is_not_a_guard_is_refused_before_it_is_asked(outputs, options, message, tmp_path):
    with pytest.raises(ConfigError, match=rf"^Guard: .*{message}"):
        open_runtime(write_guard(tmp_path, outputs, **options), threads=1, head="poison_guard")


def test_a_graph_is_not_asked_to_go_on_writing(classifier):
    with pytest.raises(
        ConfigError, match=r"^Tiny: expected \.safetensors, with runtime='torch' where there is both; got "
    ):
        open_runtime(classifier, threads=1, head="generate")


def test_an_encoder_is_not_taken_for_a_classifier(tmp_path):
    source = ModelSource(str(write_tiny_encoder(tmp_path, width=8)), who="Tiny")

    with pytest.raises(
        ConfigError, match=r"^Tiny: expected an output \[rows, labels\] in .*; got last_hidden_state \["
    ):
        open_runtime(source, threads=1, head="sequence")


def test_other_errors_of_the_library_are_left_as_they_are(classifier):
    runtime = open_runtime(classifier, threads=1, head="cls_softmax")
    ids = np.full((1, 3), 10**6)

    with pytest.raises(Exception, match="indices element out of data bounds") as raised:
        runtime.run(ids, ids)
    assert not isinstance(raised.value, OutOfMemory)


def test_a_config_that_is_not_json_is_told(tmp_path):
    directory = write_tiny_classifier(tmp_path)
    (directory / "config.json").write_text("{")

    with pytest.raises(ConfigError, match=r"config\.json: expected JSON; got "):
        open_runtime(ModelSource(str(directory)), threads=1, head="cls_softmax")


def test_a_model_without_a_config_takes_it_from_where_its_tokenizer_is(tmp_path):
    whole, bare = write_tiny_encoder(tmp_path / "whole"), write_tiny_encoder(tmp_path / "bare")
    config = json.loads((whole / "config.json").read_text())
    (whole / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 64}))
    (bare / "config.json").unlink()
    source = ModelSource(str(bare), tokenizer_identifier=str(whole))

    assert open_runtime(source, threads=1, head="encoder").max_length == 64
