"""What a model's directory says about pooling is read as it is written, and what is not known is refused by name."""

import json

import numpy as np
import pytest

from gristmill.errors import ConfigError, ReadError
from gristmill.models.safetensors_file import read_tensors
from gristmill.models.sentence_files import apply_layers, read_sentence_files
from gristmill.testing.tiny_models import write_safetensors

TRANSFORMER = ("", "sentence_transformers.models.Transformer")
POOLING = ("1_Pooling", "sentence_transformers.models.Pooling")
NORMALIZE = ("2_Normalize", "sentence_transformers.models.Normalize")
DENSE = ("2_Dense", "sentence_transformers.models.Dense")


def write(directory, *modules, pooling=None, **files):
    entries = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(modules)]
    (directory / "modules.json").write_text(json.dumps(entries))
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling or {"pooling_mode_mean_tokens": True}))
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    return read_sentence_files(directory, who="Who")


def write_dense(directory, *, activation="torch.nn.modules.linear.Identity", bias=True):
    folder = directory / "2_Dense"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"in_features": 2, "activation_function": activation}))
    weight = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    tensors = {"linear.weight": weight} | ({"linear.bias": np.array([1, 1, -50], np.float32)} if bias else {})
    write_safetensors(folder / "model.safetensors", tensors)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, ("mean",)),
        ({"pooling_mode_lasttoken": True}, ("lasttoken",)),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, ("max", "mean")),
        ({"pooling_mode": "weightedmean", "embedding_dimension": 3}, ("weightedmean",)),
        ({"pooling_mode": ["mean", "cls"]}, ("mean", "cls")),
        ({"word_embedding_dimension": 3}, ("mean",)),
    ],
)
def test_both_forms_of_the_pooling_file_are_read(tmp_path, pooling, expected):
    assert write(tmp_path, TRANSFORMER, POOLING, pooling=pooling).poolings == expected


def test_length_and_case_come_from_the_transformers_own_file(tmp_path):
    config = {"max_seq_length": 256, "do_lower_case": True}
    found = write(tmp_path, TRANSFORMER, POOLING, NORMALIZE, sentence_bert_config=config)

    assert (found.max_length, found.lower_case, found.layers) == (256, True, (None,))


def test_layers_behind_the_pooling_are_applied_in_their_order(tmp_path):
    write_dense(tmp_path)
    found = write(tmp_path, TRANSFORMER, POOLING, DENSE, NORMALIZE)
    vectors = apply_layers(np.array([[1, 1]], np.float32), found.layers)

    plain = np.array([4, 8, -39])
    np.testing.assert_allclose(vectors, [plain / np.linalg.norm(plain)], rtol=1e-6)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("torch.nn.modules.activation.Tanh", np.tanh([3, 7, 11])), ("torch.nn.modules.activation.ReLU", [3, 7, 11])],
)
def test_a_layer_ends_in_its_activation(tmp_path, activation, expected):
    write_dense(tmp_path, activation=activation, bias=False)
    [layer] = write(tmp_path, TRANSFORMER, POOLING, DENSE).layers

    np.testing.assert_allclose(layer(np.array([[1, 1], [-1, -1]], np.float32))[0], expected, rtol=1e-6)
    if "ReLU" in activation:
        assert layer(np.array([[-1, -1]], np.float32)).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    ("modules", "pooling", "named"),
    [
        ([TRANSFORMER, POOLING, ("2_LSTM", "sentence_transformers.models.LSTM")], None, "LSTM"),
        ([TRANSFORMER, NORMALIZE], None, "Pooling"),
        ([("", "sentence_transformers.models.CLIPModel"), POOLING], None, "CLIPModel"),
        ([], None, "Transformer"),
        ([TRANSFORMER, POOLING], {"pooling_mode": "median"}, "median"),
        ([TRANSFORMER, POOLING], ["mean"], "not an object"),
    ],
)
def test_what_is_not_known_is_refused_by_name(tmp_path, modules, pooling, named):
    with pytest.raises(ConfigError, match=named):
        write(tmp_path, *modules, pooling=pooling)


def test_an_activation_that_is_not_known_is_refused(tmp_path):
    write_dense(tmp_path, activation="torch.nn.modules.activation.SELU")
    with pytest.raises(ConfigError, match="SELU"):
        write(tmp_path, TRANSFORMER, POOLING, DENSE)


@pytest.mark.parametrize("content", ["{}", "[3]", "[{}]", "not JSON", "[{"])
def test_a_modules_file_that_is_something_else_is_an_error_in_words(tmp_path, content):
    (tmp_path / "modules.json").write_text(content)
    with pytest.raises(ConfigError, match="expected"):
        read_sentence_files(tmp_path, who="Who")


def test_without_the_files_the_message_says_what_to_do_instead(tmp_path):
    with pytest.raises(ConfigError, match="use_sentence_transformer=False"):
        read_sentence_files(tmp_path, who="Who")


def test_tensors_are_those_the_library_would_read(tmp_path):
    tensors = {
        "a": np.arange(6, dtype=np.float16).reshape(2, 3),
        "b": np.array(7.5, np.float64),
        "c": np.zeros((0, 4), np.float32),
        "d": np.array([-1, 1 << 40]),
    }
    write_safetensors(tmp_path / "t.safetensors", tensors)
    found = read_tensors(tmp_path / "t.safetensors")

    assert {name: (value.dtype, value.shape, value.tolist()) for name, value in found.items()} == {
        name: (value.dtype, value.shape, value.tolist()) for name, value in tensors.items()
    }


def test_bfloat16_is_widened_without_rounding(tmp_path):
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}
    )
    halves = (np.array([1.5, -2.0, 1e30], np.float32).view(np.uint32) >> 16).astype("<u2")
    path = tmp_path / "t.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + halves.tobytes())

    np.testing.assert_allclose(read_tensors(path)["x"], [1.5, -2.0, 1e30], rtol=1 / 128)


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_a_file_that_is_cut_off_is_an_error_in_words(tmp_path, cut):
    path = tmp_path / "t.safetensors"
    write_safetensors(path, {"a": np.zeros((4, 4), np.float32)})
    path.write_bytes(path.read_bytes()[:cut])

    with pytest.raises(ReadError, match="expected a safetensors file"):
        read_tensors(path)
