"""What a model's config.json says, and the shapes of base models, for configs that leave them out.

Models saved by the hub's mixin (nvidia/quality-classifier-deberta and its sisters) have a config.json with the name of
their base model and their labels, but without the sizes of any layer. Those of the base models in question are here, as
data, so that the base model need not be downloaded only for its config.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from gristmill.errors import ConfigError

Config = dict[str, object]

DEFAULT_LENGTH = 512  # tokens, where a config says nothing: what the encoders in use have

# The config.json of the hub's repositories of these names, without what only training needs.
_DEBERTA_V3: Config = {
    "model_type": "deberta-v2",
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "layer_norm_eps": 1e-07,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 0,
    "vocab_size": 128100,
}
KNOWN: dict[str, Config] = {
    "microsoft/deberta-v3-base": _DEBERTA_V3,
    "microsoft/mdeberta-v3-base": {**_DEBERTA_V3, "vocab_size": 251000},
    "microsoft/deberta-v3-small": {**_DEBERTA_V3, "num_hidden_layers": 6},
    "microsoft/deberta-v3-large": {
        **_DEBERTA_V3,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
    },
}

# Position tables of these begin after the padding id: the positions up to it are lost.
_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer", "ibert", "esm"}


def read_config(directory: Path, *, elsewhere: Path | None = None) -> Config:
    """Return the config.json of a directory, or of another one if it has none; {} if neither has."""
    for place in (directory, elsewhere):
        if place is not None and (place / "config.json").is_file():
            return read_json(place / "config.json")
    return {}


def read_json(file: Path) -> Config:
    """Return the object in a JSON file."""
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: expected JSON; got {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: expected an object; got {type(config).__name__}")
    return config


def base_config(config: Mapping[str, object], directory: Path, *, who: str) -> Config:
    """Return the config with the sizes of layers in it: its own, that of its base model beside it, or a known one."""
    if "hidden_size" in config or "model_type" in config:
        return dict(config)
    base = config.get("base_model")
    if not isinstance(base, str):
        raise ConfigError(f"{who}: expected the sizes of layers, or a base_model, in {directory / 'config.json'}")
    for place in (directory / base, directory / base.rpartition("/")[2], directory / "base_model"):
        if (place / "config.json").is_file():
            return read_config(place)
    if base.lower() in KNOWN:
        return dict(KNOWN[base.lower()])
    raise ConfigError(
        f"{who}: expected base_model to be one of {', '.join(KNOWN)}, or its config.json in "
        f"{directory / base.rpartition('/')[2]}; got {base!r}"
    )


def _positions(config: Mapping[str, object]) -> int | None:
    for key in ("max_position_embeddings", "n_positions", "max_seq_len"):
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            offset = config.get("model_type") in _OFFSET_POSITIONS
            return value - (_id(config, "pad_token_id", 1) + 1 if offset else 0)
    return None


def max_length(config: Mapping[str, object]) -> int:
    """Return the most tokens a row may have, unless another number is asked for."""
    sizes = KNOWN.get(str(config.get("base_model")).lower(), config)
    return _positions(sizes) or DEFAULT_LENGTH


def takes_longer(config: Mapping[str, object]) -> bool:
    """Whether rows may be longer than `max_length`: positions are relative, so there is no table that ends there."""
    sizes = KNOWN.get(str(config.get("base_model")).lower(), config)
    return _positions(sizes) is None or (
        bool(sizes.get("relative_attention")) and sizes.get("position_biased_input") is False
    )


def pad_id(config: Mapping[str, object]) -> int:
    """Return the id that fills short rows."""
    return _id(config, "pad_token_id", 0)


def _id(config: Mapping[str, object], key: str, default: int) -> int:
    value = config.get(key)
    return value if isinstance(value, int) and value >= 0 else default


def labels(config: Mapping[str, object]) -> list[str]:
    """Return the labels in the order of the outputs.

    Sorted by number, from `label2id` or from `id2label`, whose keys as strings would put "10" before "2".
    """
    by_label, by_id = config.get("label2id"), config.get("id2label")
    if isinstance(by_label, Mapping) and by_label:
        return [str(label) for label, _ in sorted(by_label.items(), key=lambda pair: int(str(pair[1])))]
    if isinstance(by_id, Mapping):
        return [str(label) for _, label in sorted(by_id.items(), key=lambda pair: int(str(pair[0])))]
    return []
