"""What a directory of sentence-transformers says about its model: how tokens become one vector.

    modules.json                    the modules in order, each with a type and a folder
    sentence_bert_config.json       of the transformer: how many tokens it takes
    1_Pooling/config.json           mean, first token, last token, ... several are put end to end
    2_Dense/config.json, model.safetensors      a linear layer and what follows it
    (Normalize has no files)

The library is not needed for that. What is not known here is refused by name: a vector pooled in a way the model was
not trained for looks right and is not.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.pooling import WAYS, normalised
from gristmill.models.safetensors_file import read_tensors

MODULES = "modules.json"
_TRANSFORMER_CONFIG = "sentence_bert_config.json"
_WEIGHTS = "model.safetensors"
# The order in which they are put end to end, if a file of the older form names several.
_OLDER_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ACTIVATIONS = ("Identity", "Tanh", "ReLU")


@dataclass(frozen=True)
class Dense:
    """A linear layer after the pooling: `weight` is float32[out, in]."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32] | None
    activation: str

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32[N, out]."""
        made: NDArray[np.float32] = vectors @ self.weight.T
        if self.bias is not None:
            made += self.bias
        if self.activation == "Tanh":
            np.tanh(made, out=made)
        elif self.activation == "ReLU":
            np.maximum(made, 0, out=made)
        return made


Layer = Dense | None  # None brings vectors to length one


def apply_layers(vectors: NDArray[np.float32], layers: Iterable[Layer]) -> NDArray[np.float32]:
    """Return what the layers after the pooling make of float32[N, dim]."""
    for layer in layers:
        vectors = normalised(vectors) if layer is None else layer(vectors)
    return vectors


@dataclass(frozen=True)
class SentenceFiles:
    """How a model makes one vector of a text.

    `body` is the folder of the transformer, or of the table if `is_static`. `layers` are what follows the pooling: a
    layer, or None where vectors are brought to length one.
    """

    body: Path
    is_static: bool = False
    poolings: tuple[str, ...] = ("mean",)
    layers: tuple[Layer, ...] = ()
    max_length: int | None = None
    lower_case: bool = False


def read_sentence_files(directory: Path, *, who: str) -> SentenceFiles:
    """Return what the files of a model's directory say; raise ConfigError if they say nothing or something unknown."""
    modules = directory / MODULES
    if not modules.is_file():
        raise ConfigError(
            f"{who}: expected {MODULES} in {directory}, as sentence-transformers writes it; there is none. "
            "With use_sentence_transformer=False, embedding_pooling decides"
        )
    try:
        listed = [(str(entry["type"]).rpartition(".")[2], directory / str(entry["path"])) for entry in _list(modules)]
        return _of_modules(listed, who=who, where=modules)
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{who}: expected {modules} to be as sentence-transformers writes it; got {error!r}"
        ) from error


def _of_modules(listed: list[tuple[str, Path]], *, who: str, where: Path) -> SentenceFiles:
    kinds = [kind for kind, _ in listed]
    if not listed or kinds[0] not in ("Transformer", "StaticEmbedding"):
        raise ConfigError(f"{who}: expected Transformer or StaticEmbedding first in {where}; got {kinds}")
    body = listed[0][1]
    is_static = kinds[0] == "StaticEmbedding"
    rest = listed[1:]
    poolings: tuple[str, ...] = ("mean",)
    if not is_static:
        if kinds[1:2] != ["Pooling"]:
            raise ConfigError(f"{who}: expected Pooling after the transformer in {where}; got {kinds}")
        poolings = _poolings(rest.pop(0)[1] / "config.json", who=who)
    layers: list[Layer] = []
    for kind, folder in rest:
        if kind == "Normalize":
            layers.append(None)
        elif kind == "Dense":
            layers.append(_dense(folder, who=who))
        elif kind != "Dropout":  # which does nothing once a model is trained
            raise ConfigError(f"{who}: expected Pooling, Dense, Normalize or Dropout in {where}; got {kind}")
    config = body / _TRANSFORMER_CONFIG
    settings = _object(config) if config.is_file() and not is_static else {}
    length = settings.get("max_seq_length")
    return SentenceFiles(
        body,
        is_static,
        poolings,
        tuple(layers),
        length if isinstance(length, int) and length > 0 else None,
        lower_case=bool(settings.get("do_lower_case")),
    )


def _poolings(path: Path, *, who: str) -> tuple[str, ...]:
    settings = _object(path)
    given = settings.get("pooling_mode")
    if given is None:
        found = tuple(mode for key, mode in _OLDER_POOLING.items() if settings.get(key)) or ("mean",)
    else:
        found = (given,) if isinstance(given, str) else tuple(str(mode) for mode in cast("list[object]", given))
    for mode in found:
        if mode not in WAYS:
            raise ConfigError(f"{who}: expected a pooling of {tuple(WAYS)} in {path}; got {mode!r}")
    return found


def _dense(folder: Path, *, who: str) -> Dense:
    settings = _object(folder / "config.json")
    activation = str(settings.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise ConfigError(f"{who}: expected one of {_ACTIVATIONS} after the layer in {folder}; got {activation}")
    if not (folder / _WEIGHTS).is_file():
        raise ConfigError(f"{who}: expected {_WEIGHTS} in {folder}; there is none (pickled weights are not read)")
    tensors = read_tensors(folder / _WEIGHTS)
    weight = np.asarray(tensors["linear.weight"], np.float32)
    bias = tensors.get("linear.bias")
    return Dense(weight, None if bias is None else np.asarray(bias, np.float32), activation)


def _list(path: Path) -> list[Mapping[str, object]]:
    found = _json(path)
    if not isinstance(found, list):
        raise TypeError(f"{path} is not a list")
    return found


def _object(path: Path) -> Mapping[str, object]:
    found = _json(path)
    if not isinstance(found, dict):
        raise TypeError(f"{path} is not an object")
    return found


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: expected JSON; got {error}") from error
