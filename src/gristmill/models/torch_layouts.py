"""Weights in files become torch modules. With torch_runtime.py, the one place that imports torch and transformers.

Standard layouts (a sequence classifier, an encoder, a language model) are loaded by transformers itself. Those of the
hub's mixin are loaded here: one file holds the encoder and what stands on it, and its config has no layer sizes. Other
tools download and initialise the base model to get them, only to overwrite every weight of it; here the sizes come from
`known_configs`, the modules are made on the device `meta`, which allocates nothing, and the tensors of the file are put
in their place.

Weights that are missing would stay random, and weights that are left over belong to another model: either is an error
that names them.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.errors import ConfigError, require
from gristmill.models.heads import DIMENSIONS, TASK_TYPE
from gristmill.models.known_configs import Config, base_config, labels
from gristmill.models.runtime import (
    GENERATED_TOKENS,
    NOTHING,
    PICKLED,
    Head,
    ModelSource,
    locate_adapter,
    locate_base,
)
from gristmill.models.weights import weight_files

State = dict[str, Any]  # names to tensors
Forward = Callable[..., tuple[Any, ...]]  # input_ids, attention_mask -> outputs

MULTI_HEAD_BASE = "microsoft/deberta-v3-base"  # the card of the one such model names it; its config does not
GUARD_LAYERS = ("input_layer", "hidden_layer_0", "hidden_layer_1", "hidden_layer_2")
COMPUTED = (".position_ids", ".token_type_ids", ".inv_freq")  # older versions stored what newer ones compute
NAMES_SHOWN = 4


def build(source: ModelSource, directory: Path, config: Mapping[str, object], head: Head) -> tuple[Any, Forward]:
    """Return a module with the weights of a directory in it, and what runs it."""
    if head == "cls_softmax":
        return _cls_softmax(source, directory, config)
    if head == "multi_head":
        return _multi_head(source, directory, config)
    if head == "poison_guard":
        return _poison_guard(source, directory)
    if head == "generate":
        return _generate(source, directory)
    kind = "AutoModel" if head == "encoder" else "AutoModelForSequenceClassification"
    module = standard(source, directory, kind)
    if head == "encoder":
        return module, lambda ids, mask: (module(input_ids=ids, attention_mask=mask).last_hidden_state,)
    if head == "regression" and module.config.num_labels != 1:
        raise ConfigError(
            f"{source.who}: expected a model with one output in {directory}; got {module.config.num_labels}"
        )
    return module, lambda ids, mask: (module(input_ids=ids, attention_mask=mask).logits,)


def _cls_softmax(source: ModelSource, directory: Path, config: Mapping[str, object]) -> tuple[Any, Forward]:
    torch = require("torch", extra="torch")
    sizes = base_config(config, directory, who=source.who)
    count = len(labels(config))
    state = read_weights(source, directory)
    if not count and "fc.weight" in state:
        count = len(state["fc.weight"])
    with torch.device("meta"):
        encoder = _encoder(sizes)
        module = torch.nn.ModuleDict({"model": encoder, "fc": torch.nn.Linear(encoder.config.hidden_size, count)})
    put_in_place(module, state, directory, who=source.who)
    return module, lambda ids, mask: (module["fc"](_hidden(module["model"], ids, mask)[:, 0]),)


def _multi_head(source: ModelSource, directory: Path, config: Mapping[str, object]) -> tuple[Any, Forward]:
    torch = require("torch", extra="torch")
    targets = config.get("target_sizes")
    order = (TASK_TYPE, *DIMENSIONS)  # by name: the config may have been written sorted
    if not isinstance(targets, Mapping) or not targets.keys() >= set(order):
        raise ConfigError(
            f"{source.who}: expected target_sizes of {', '.join(order)} in {directory / 'config.json'}; got {targets!r}"
        )
    sizes = base_config({"base_model": MULTI_HEAD_BASE, **config}, directory, who=source.who)
    with torch.device("meta"):
        encoder = _encoder(sizes)
        width = encoder.config.hidden_size
        heads = {
            f"head_{number}": torch.nn.ModuleDict({"fc": torch.nn.Linear(width, int(size))})
            for number, size in enumerate(targets[name] for name in order)
        }
        module = torch.nn.ModuleDict({"backbone": encoder, **heads})
    put_in_place(module, read_weights(source, directory), directory, who=source.who)

    def forward(ids: Any, mask: Any) -> tuple[Any, ...]:
        hidden, seen = _hidden(module["backbone"], ids, mask), mask.unsqueeze(-1)
        mean = (hidden * seen).sum(dim=1) / seen.sum(dim=1).clamp(min=1)
        return tuple(module[name]["fc"](mean) for name in heads)

    return module, forward


def _encoder(sizes: Config) -> Any:
    transformers = require("transformers", extra="torch")
    kind = str(sizes.get("model_type"))
    known = transformers.AutoConfig.for_model(
        kind, **{key: value for key, value in sizes.items() if key != "model_type"}
    )
    return transformers.AutoModel.from_config(known)


def _hidden(encoder: Any, ids: Any, mask: Any) -> Any:
    return encoder(input_ids=ids, attention_mask=mask).last_hidden_state


# From files to tensors


def read_weights(source: ModelSource, directory: Path) -> State:
    """Return all tensors of the safetensors files of a directory, or of its pickles if that is allowed."""
    names = [file.name for file in directory.iterdir()]
    tensors = [name for name in weight_files(names, ".safetensors") if name.endswith(".safetensors")]
    if tensors or not source.allow_pickle:
        load = require("safetensors.torch", extra="torch").load_file
        return {name: tensor for file in tensors for name, tensor in load(directory / file).items()}
    torch = require("torch", extra="torch")
    state: State = {}
    for file in (file for ending in PICKLED for file in sorted(directory.glob(f"*{ending}"))):
        loaded = torch.load(file, map_location="cpu", weights_only=True)
        state |= loaded.get("state_dict", loaded) if isinstance(loaded, dict) else {}
    return state


def put_in_place(module: Any, state: State, directory: Path, *, who: str) -> None:
    """Give a module on the device `meta` its tensors, and make those buffers that are computed and not stored."""
    torch = require("torch", extra="torch")
    wanted = module.state_dict().keys()
    given = {name: tensor for name, tensor in state.items() if name in wanted or not name.endswith(COMPUTED)}
    check_names(wanted, given, directory, who=who)
    wrong = [name for name in given if given[name].shape != module.state_dict()[name].shape]
    if wrong:
        shapes = (f"{name} is {_shape(given[name])}, not {_shape(module.state_dict()[name])}" for name in wrong)
        raise ConfigError(f"{who}: the weights in {directory} do not have the sizes its config says: {_some(shapes)}")
    module.load_state_dict(given, strict=True, assign=True)
    for name, buffer in list(module.named_buffers()):
        if buffer.is_meta:
            _make_buffer(torch, module, name, buffer, who=who)


def check_names(wanted: Collection[str], given: Collection[str], directory: Path, *, who: str) -> None:
    """Raise ConfigError if weights are missing or left over, and say what kind of model it looks like."""
    missing, left = sorted(set(wanted) - set(given)), sorted(set(given) - set(wanted))
    if not missing and not left:
        return
    lacks = f"lacks {_some(missing)}" if missing else ""
    has = f"has {_some(left)}" if left else ""
    hint = ""
    if "fc.weight" in missing and any(name.startswith("classifier.") for name in left):
        hint = ": this is an AutoModelForSequenceClassification; use DistributedDataClassifier(head='sequence')"
    elif any(name.startswith("classifier.") for name in missing) and "fc.weight" in left:
        hint = ": this was saved by the hub's mixin; use DistributedDataClassifier(head='cls_softmax')"
    raise ConfigError(f"{who}: the model in {directory} {' and '.join(filter(None, [lacks, has]))}{hint}")


def _some(names: Iterable[str]) -> str:
    """List a few, those of the outermost modules first: by them a layout is recognised."""
    listed = sorted(names, key=lambda name: (name.count("."), name))
    more = f" and {len(listed) - NAMES_SHOWN} more" if len(listed) > NAMES_SHOWN else ""
    return ", ".join(listed[:NAMES_SHOWN]) + more


def _shape(tensor: Any) -> str:
    return "×".join(map(str, tensor.shape))


def _make_buffer(torch: Any, module: Any, name: str, buffer: Any, *, who: str) -> None:
    owner_name, _, own = name.rpartition(".")
    owner = module.get_submodule(owner_name)
    if own == "position_ids":
        made = torch.arange(buffer.shape[-1]).expand(buffer.shape).clone()
    elif own == "token_type_ids":
        made = torch.zeros(buffer.shape, dtype=torch.long)
    elif own.endswith("inv_freq") and hasattr(owner, "config"):
        made = getattr(type(owner)(owner.config), own)  # frequencies of rotary positions: computed from the config
    else:
        raise ConfigError(
            f"{who}: expected a model whose buffers can be computed; {name} of {type(owner).__name__} cannot"
        )
    owner.register_buffer(own, made, persistent=False)


def standard(source: ModelSource, directory: Path, kind: str, **options: object) -> Any:
    """Return a model that transformers knows, from a directory and nowhere else, with every weight accounted for."""
    transformers = require("transformers", extra="torch")
    transformers.logging.set_verbosity_error()  # it warns of what is an error here
    transformers.logging.disable_progress_bar()
    module, info = getattr(transformers, kind).from_pretrained(
        str(directory),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=None if source.allow_pickle else True,
        output_loading_info=True,
        **options,
    )
    missing = set(info["missing_keys"])
    left = {name for name in info["unexpected_keys"] if not name.endswith(COMPUTED)}
    if kind == "AutoModel":  # the last hidden state is asked for: what stands on the encoder does not matter
        missing = {name for name in missing if "pooler" not in name}
        left = set()
    check_names(missing, left, directory, who=source.who)
    if info.get("mismatched_keys"):
        names = _some(sorted(str(each[0]) for each in info["mismatched_keys"]))
        raise ConfigError(f"{source.who}: the weights in {directory} do not have the sizes its config says: {names}")
    return module


# A language model with an adapter: Aegis, and the guard that looks at its last layer


def adapted(source: ModelSource, base: Path, adapter: Path | None, kind: str = "AutoModelForCausalLM") -> Any:
    """Return a language model, with the low-rank changes of an adapter added to its weights.

    W + scale · B A, once and for all: the same function as keeping them apart, without a package for it, and as fast as
    the model without an adapter.
    """
    module = standard(source, base, kind, dtype="auto")
    if adapter is None:
        return module
    torch = require("torch", extra="torch")
    settings = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    _check_adapter(settings, adapter, who=source.who)
    rank = int(settings["r"])
    scale = float(settings["lora_alpha"]) / (float(np.sqrt(rank)) if settings.get("use_rslora") else rank)
    state = read_weights(source, adapter)
    pairs = _lora_pairs(state, adapter, who=source.who)
    with torch.no_grad():
        for name, (a, b) in pairs.items():
            try:
                weight = module.get_submodule(name).weight
            except AttributeError:
                raise ConfigError(
                    f"{source.who}: the adapter in {adapter} changes {name}, which {base} does not have"
                ) from None
            change = (b.float() @ a.float()) * scale
            weight += (change.T if settings.get("fan_in_fan_out") else change).to(weight.dtype)
    return module


def _check_adapter(settings: Mapping[str, object], adapter: Path, *, who: str) -> None:
    if settings.get("peft_type") != "LORA" or settings.get("use_dora") or settings.get("modules_to_save"):
        raise ConfigError(
            f"{who}: expected a LoRA adapter without extra modules in {adapter}; got {settings.get('peft_type')}, "
            f"use_dora={settings.get('use_dora')}, modules_to_save={settings.get('modules_to_save')}"
        )
    if settings.get("rank_pattern") or settings.get("alpha_pattern") or settings.get("bias", "none") != "none":
        raise ConfigError(f"{who}: expected an adapter of one rank and without biases in {adapter}")


def _lora_pairs(state: State, adapter: Path, *, who: str) -> dict[str, tuple[Any, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, tensor in state.items():
        module, _, rest = name.removeprefix("base_model.model.").partition(".lora_")
        part = rest.partition(".")[0]
        if part not in ("A", "B"):
            raise ConfigError(f"{who}: expected weights named lora_A and lora_B in {adapter}; got {name}")
        found.setdefault(module, {})[part] = tensor
    incomplete = [module for module, parts in found.items() if len(parts) != 2]
    if incomplete or not found:
        raise ConfigError(f"{who}: expected pairs of lora_A and lora_B in {adapter}; got {_some(incomplete) or 'none'}")
    return {module: (parts["A"], parts["B"]) for module, parts in found.items()}


def _generate(source: ModelSource, directory: Path) -> tuple[Any, Forward]:
    """Return a language model that goes on from a prompt, always with the likeliest token.

    What it has generated is found by its place after the prompt. Looking for the prompt in the decoded text and cutting
    it off fails wherever decoding does not give back the very same characters.
    """
    torch = require("torch", extra="torch")
    has_base = source.base_identifier is not None
    module = adapted(source, locate_base(source), directory) if has_base else adapted(source, directory, None)
    ends = module.config.eos_token_id
    ends = set(ends) if isinstance(ends, list | tuple) else {ends}
    padding = module.config.pad_token_id or 0

    def forward(ids: Any, mask: Any) -> tuple[Any, ...]:
        settings = {"max_new_tokens": GENERATED_TOKENS, "do_sample": False, "pad_token_id": padding}
        generated = module.generate(input_ids=ids, attention_mask=mask, **settings)[:, ids.shape[1] :]
        answers = torch.full((len(ids), GENERATED_TOKENS), float(NOTHING))
        for row, line in enumerate(generated.tolist()):
            until = next((place for place, each in enumerate(line) if each in ends), len(line))
            answers[row, :until] = torch.tensor(line[:until], dtype=torch.float32)
        return (answers,)

    return module, forward


def _poison_guard(source: ModelSource, directory: Path) -> tuple[Any, Forward]:
    """Return the guard: a small network on the last layer's state of the last token of a prompt."""
    torch = require("torch", extra="torch")
    language_model = adapted(source, locate_base(source), locate_adapter(source)).model
    state = read_weights(source, directory)
    check_names(
        [f"{name}.{part}" for name in GUARD_LAYERS for part in ("weight", "bias")], state, directory, who=source.who
    )
    width, expected = language_model.config.hidden_size, state["input_layer.weight"].shape[1]
    if expected != width:
        raise ConfigError(f"{source.who}: expected a language model of width {expected}; got {width}")
    with torch.device("meta"):
        shapes = {name: reversed(state[f"{name}.weight"].shape) for name in GUARD_LAYERS}
        guard = torch.nn.ModuleDict({name: torch.nn.Linear(*shape) for name, shape in shapes.items()})
    put_in_place(guard, state, directory, who=source.who)
    module = torch.nn.ModuleDict({"language_model": language_model, "guard": guard})

    def forward(ids: Any, mask: Any) -> tuple[Any, ...]:
        hidden = _hidden(language_model, ids, mask)
        last = mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)
        state = hidden[torch.arange(len(hidden)), last].to(guard["input_layer"].weight.dtype)
        state = torch.nn.functional.normalize(state, dim=-1)
        for name in GUARD_LAYERS[:-1]:
            state = torch.relu(guard[name](state))
        return (torch.sigmoid(guard[GUARD_LAYERS[-1]](state)),)

    return module, forward
