"""Tiny models for tests: real files, real libraries, a few kilobytes, made in milliseconds without torch.

    write_tiny_classifier(directory, labels=("High", "Medium", "Low"))
    write_tiny_encoder(directory, width=16)
    write_tiny_static(directory, width=16)
    write_tiny_prompt_classifier(directory)
    write_tiny_guard(directory)

Each directory has what a model from a hub has: model.onnx, config.json, tokenizer.json. The weights come from a seed:
the answers mean nothing and are always the same. `FakeRuntime` is not a model: it answers by a formula, and runs
out of memory where it is told to.

An ONNX file is a protobuf message. The few fields that are needed are written here by hand: the package that writes
them is large, and a dozen lines suffice.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import OutOfMemory
from gristmill.models.heads import DIMENSIONS, TASK_TYPE

__all__ = [
    "write_tiny_classifier",
    "write_tiny_encoder",
    "write_tiny_guard",
    "write_tiny_prompt_classifier",
    "write_tiny_static",
    "write_tiny_tokenizer",
]

_SENTENCES = (
    "the a of and to in is it on as with for was by that this be are at from or an not have has had but all can more "
    "when there out up one what about which their if will each how them then many some so these would other into make "
    "like him time two look write go see number no way could people my than first water been call who oil its now find "
    "long down day did get come made may part good bad news science sport health money music game law food page click"
)
WORDS = tuple(_SENTENCES.split())
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PAD, UNK, CLS, SEP = range(4)
MAX_POSITIONS = 512


class FakeRuntime:
    """Answers with the mean of a row's ids, once for each of `outputs`; keeps the shape of every batch it was given.

    A batch of more than `max_rows` rows, or with more than `max_tokens` padded tokens, does not fit.
    """

    device = "cpu"
    max_length = MAX_POSITIONS
    pad_id = PAD

    def __init__(self, *, max_rows: int | None = None, max_tokens: int | None = None, outputs: int = 1) -> None:
        self.max_rows, self.max_tokens, self.outputs = max_rows, max_tokens, outputs
        self.shapes: list[tuple[int, int]] = []  # of those that fitted
        self.failed: list[tuple[int, int]] = []
        self.is_closed = False

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        rows, longest = input_ids.shape
        too_many = self.max_rows is not None and rows > self.max_rows
        too_long = self.max_tokens is not None and rows * longest > self.max_tokens
        (self.failed if too_many or too_long else self.shapes).append((rows, longest))
        if too_many or too_long:
            raise OutOfMemory(f"FakeRuntime: {rows} rows of {longest} tokens do not fit")
        means = (input_ids * attention_mask).sum(axis=1) / attention_mask.sum(axis=1)
        return tuple(means.astype(np.float32)[:, None] for _ in range(self.outputs))

    def close(self) -> None:
        self.is_closed = True


def write_tiny_classifier(
    directory: Path | str, *, labels: Sequence[str] = ("High", "Medium", "Low"), width: int = 16, seed: int = 0
) -> Path:
    """Write a classifier whose logits are a linear function of the mean over a text's token vectors."""
    files = _directory(directory, width)
    chance = np.random.default_rng(seed)
    weights = _encoder_weights(chance, width) | {
        "fc": chance.standard_normal((width, len(labels))).astype(np.float32) * 4,
        "bias": chance.standard_normal(len(labels)).astype(np.float32),
    }
    nodes = [*_ENCODER, *_MEAN, ("MatMul", ["mean", "fc"], ["scores"], {}), ("Add", ["scores", "bias"], ["logits"], {})]
    write_onnx(files / "model.onnx", nodes, weights, outputs={"logits": ("rows", len(labels))})
    label2id = {label: number for number, label in enumerate(labels)}
    _add_to_config(files, {"label2id": label2id, "id2label": {str(n): label for label, n in label2id.items()}})
    return files


def write_tiny_guard(directory: Path | str, *, width: int = 16, seed: int = 0) -> Path:
    """Write a model with one output between 0 and 1."""
    files = _directory(directory, width)
    chance = np.random.default_rng(seed)
    weights = _encoder_weights(chance, width) | {"fc": chance.standard_normal((width, 1)).astype(np.float32) * 4}
    nodes = [
        *_ENCODER,
        *_MEAN,
        ("MatMul", ["mean", "fc"], ["scores"], {}),
        ("Sigmoid", ["scores"], ["probability"], {}),
    ]
    write_onnx(files / "model.onnx", nodes, weights, outputs={"probability": ("rows", 1)})
    return files


def write_tiny_prompt_classifier(directory: Path | str, *, width: int = 16, seed: int = 0) -> Path:
    """Write a model with eight heads, and a config that says what their classes weigh."""
    files = _directory(directory, width)
    chance = np.random.default_rng(seed)
    weights = _encoder_weights(chance, width)
    nodes, outputs, sizes = [*_ENCODER, *_MEAN], {}, {TASK_TYPE: 5, **dict.fromkeys(DIMENSIONS, 3)}
    for number, size in enumerate(sizes.values()):
        weights[f"fc_{number}"] = chance.standard_normal((width, size)).astype(np.float32) * 4
        nodes.append(("MatMul", ["mean", f"fc_{number}"], [f"logits_{number}"], {}))
        outputs[f"logits_{number}"] = ("rows", size)
    write_onnx(files / "model.onnx", nodes, weights, outputs=outputs)
    tasks = ("Open QA", "Summarization", "Code Generation", "Brainstorming", "Other")
    maps = {
        "target_sizes": sizes,
        "task_type_map": {str(number): task for number, task in enumerate(tasks)},
        "weights_map": {name: [2, 1, 0] for name in DIMENSIONS},
        "divisor_map": dict.fromkeys(DIMENSIONS, 2),
    }
    _add_to_config(files, maps)
    return files


def write_tiny_encoder(directory: Path | str, *, width: int = 16, seed: int = 0, normalize: bool = True) -> Path:
    """Write an encoder with the pooling files of sentence-transformers beside it: the mean, normalised on request."""
    files = _directory(directory, width)
    weights = _encoder_weights(np.random.default_rng(seed), width)
    nodes = [*_ENCODER, ("Identity", ["hidden"], ["last_hidden_state"], {})]
    write_onnx(files / "model.onnx", nodes, weights, outputs={"last_hidden_state": ("rows", "tokens", width)})
    modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}]
    modules += [{"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    modules += [{"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}] * normalize
    (files / "modules.json").write_text(json.dumps(modules))
    (files / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (files / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (files / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 128, "do_lower_case": False}))
    return files


def write_tiny_static(directory: Path | str, *, width: int = 16, seed: int = 0, normalize: bool = True) -> Path:
    """Write a static model as sentence-transformers does: a vector for each word of a tokenizer, and their mean."""
    files = Path(directory)
    files.mkdir(parents=True, exist_ok=True)
    write_tiny_tokenizer(files)
    table = np.random.default_rng(seed).standard_normal((len(SPECIAL) + len(WORDS), width)).astype(np.float32)
    write_safetensors(files / "model.safetensors", {"embedding.weight": table})
    modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.StaticEmbedding"}]
    modules += [{"idx": 1, "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}] * normalize
    (files / "modules.json").write_text(json.dumps(modules))
    return files


_SAFETENSORS_TYPES = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64"}


def write_safetensors(file: Path, tensors: Mapping[str, NDArray[np.generic]]) -> None:
    """Write tensors in the format that is named after them."""
    header, data = {}, b""
    for name, values in tensors.items():
        packed = values.tobytes()
        kind = _SAFETENSORS_TYPES[str(values.dtype)]
        header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


# hidden = tanh(vector of the token + vector of its position)
_ENCODER: list["Node"] = [
    ("Gather", ["embeddings", "input_ids"], ["vectors"], {}),
    ("Shape", ["input_ids"], ["shape"], {}),
    ("Gather", ["shape", "one"], ["length"], {}),
    ("Range", ["zero", "length", "one"], ["places"], {}),
    ("Gather", ["positions", "places"], ["place_vectors"], {}),
    ("Add", ["vectors", "place_vectors"], ["sums"], {}),
    ("Tanh", ["sums"], ["hidden"], {}),
]
# mean = that over the tokens of a row, without padding
_MEAN: list["Node"] = [
    ("Cast", ["attention_mask"], ["mask"], {"to": 1}),
    ("Unsqueeze", ["mask", "last_axis"], ["mask_3d"], {}),
    ("Mul", ["hidden", "mask_3d"], ["seen"], {}),
    ("ReduceSum", ["seen", "middle_axis"], ["total"], {"keepdims": 0}),
    ("ReduceSum", ["mask", "middle_axis"], ["count"], {"keepdims": 1}),
    ("Div", ["total", "count"], ["mean"], {}),
]


def _encoder_weights(chance: np.random.Generator, width: int) -> dict[str, NDArray[np.generic]]:
    return {
        "embeddings": chance.standard_normal((len(SPECIAL) + len(WORDS), width)).astype(np.float32),
        "positions": chance.standard_normal((MAX_POSITIONS, width)).astype(np.float32) / 8,
        "zero": np.array(0),
        "one": np.array(1),
        "last_axis": np.array([2]),
        "middle_axis": np.array([1]),
    }


def _directory(directory: Path | str, width: int) -> Path:
    files = Path(directory)
    files.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "bert",
        "hidden_size": width,
        "max_position_embeddings": MAX_POSITIONS,
        "pad_token_id": PAD,
        "vocab_size": len(SPECIAL) + len(WORDS),
    }
    (files / "config.json").write_text(json.dumps(config))
    write_tiny_tokenizer(files)
    return files


def _add_to_config(files: Path, more: Mapping[str, object]) -> None:
    config = json.loads((files / "config.json").read_text())
    (files / "config.json").write_text(json.dumps(config | more))


def write_tiny_tokenizer(directory: Path | str, words: Iterable[str] = WORDS) -> None:
    """Write a tokenizer of whole words in lower case: [CLS] text [SEP], and [UNK] for whatever is not known."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *words])}
    pieces = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pieces += [{"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": token, **flags} for number, token in enumerate(SPECIAL)],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": pieces,
            "pair": [*pieces, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    settings = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    Path(directory, "tokenizer.json").write_text(json.dumps(tokenizer))
    Path(directory, "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": int(1e30)}))


# ONNX: ModelProto { ir_version 1, opset_import 8, graph 7 { node 1, name 2, initializer 5, input 11, output 12 } }

Node = tuple[str, list[str], list[str], Mapping[str, int]]  # operator, inputs, outputs, attributes
_ELEMENT_TYPES = {"f": 1, "i": 7}  # float and int64
IR_VERSION, OPSET = 8, 17


def write_onnx(
    file: Path,
    nodes: Sequence[Node],
    weights: Mapping[str, NDArray[np.generic]],
    *,
    outputs: Mapping[str, tuple[int | str, ...]],
) -> None:
    """Write a model with the inputs input_ids and attention_mask [rows, tokens]."""
    graph = b"".join(_message(1, _node(*node)) for node in nodes) + _text(2, "tiny")
    graph += b"".join(_message(5, _tensor(name, values)) for name, values in weights.items())
    for name in ("input_ids", "attention_mask"):
        graph += _message(11, _value(name, 7, ("rows", "tokens")))
    graph += b"".join(_message(12, _value(name, 1, shape)) for name, shape in outputs.items())
    opset = _text(1, "") + _number(2, OPSET)
    file.write_bytes(_number(1, IR_VERSION) + _message(8, opset) + _message(7, graph))


def _node(operator: str, inputs: list[str], outputs: list[str], attributes: Mapping[str, int]) -> bytes:
    packed = b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in outputs)
    packed += _text(4, operator)
    for name, value in attributes.items():  # AttributeProto: name 1, i 3, type 20 (2 is INT)
        packed += _message(5, _text(1, name) + _number(3, value) + _number(20, 2))
    return packed


def _tensor(name: str, values: NDArray[np.generic]) -> bytes:
    little = values.astype(values.dtype.newbyteorder("<"))
    packed = b"".join(_number(1, size) for size in values.shape) + _number(2, _ELEMENT_TYPES[values.dtype.kind])
    return packed + _text(8, name) + _message(9, little.tobytes())


def _value(name: str, element_type: int, shape: tuple[int | str, ...]) -> bytes:
    sizes = (_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    tensor = _number(1, element_type) + _message(2, b"".join(_message(1, size) for size in sizes))
    return _text(1, name) + _message(2, _message(1, tensor))


def _varint(value: int) -> bytes:
    packed = bytearray()
    while value >= 0x80:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*packed, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
