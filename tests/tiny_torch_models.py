"""Tiny models as torch saves them, with the file layouts of the real ones: for tests that have torch.

Each is built once per session and loaded through the way of the real one. Beside the files, `reference` is the module
they were saved from, which says what a loaded one has to answer.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

LABELS = [f"label {number}" for number in range(11)]  # more than ten: "10" must not sort before "2"
TARGETS = {
    "task_type": 12,
    "creativity_scope": 3,
    "reasoning": 2,
    "contextual_knowledge": 2,
    "number_of_few_shots": 6,
    "domain_knowledge": 4,
    "no_label_reason": 1,
    "constraint_ct": 2,
}
PROMPT_CONFIG = {
    "target_sizes": TARGETS,
    "task_type_map": {str(number): f"task {number}" for number in range(12)},
    "weights_map": {
        "creativity_scope": [2, 1, 0],
        "reasoning": [0, 1],
        "contextual_knowledge": [0, 1],
        "number_of_few_shots": [0, 1, 2, 3, 4, 5],
        "domain_knowledge": [3, 1, 2, 0],
        "no_label_reason": [0],
        "constraint_ct": [1, 0],
    },
    "divisor_map": dict.fromkeys(list(TARGETS)[1:], 1) | {"creativity_scope": 2, "domain_knowledge": 3},
}
SPREAD = 0.1  # of random weights: five times the usual, or every text would get about the same answer
BASE = "tests/tiny-deberta"
WORDS = "river stone market winter paper engine garden letter morning window music science history village ocean"


def documents(count: int = 200) -> list[str]:
    """Return texts of many lengths, the same in every session."""
    import random

    chance, words = random.Random(7), WORDS.split()
    return [" ".join(chance.choice(words) for _ in range(chance.randint(1, 60))) + "." for _ in range(count)]


@dataclass(frozen=True)
class Saved:
    """A directory with a model, and the module it was saved from."""

    directory: Path
    reference: Any


class TinyModels:
    """All of them, below one directory; each is made when it is first asked for."""

    def __init__(self, root: Path) -> None:
        import torch

        self.root = root
        torch.manual_seed(0)

    def tokenizer(self, directory: Path, *, prefix: str = "[CLS]", suffix: str | None = "[SEP]") -> int:
        """Write a tokenizer of word pieces that was trained on the documents; return the size of its vocabulary."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        trained = Tokenizer(models.Unigram())
        trained.pre_tokenizer = pre_tokenizers.Metaspace()
        trained.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=special, unk_token="[UNK]", show_progress=False
        )
        trained.train_from_iterator(documents(), trainer)
        pieces = [prefix, "$A", *([suffix] if suffix else [])]
        trained.post_processor = processors.TemplateProcessing(
            single=" ".join(pieces), special_tokens=[(name, special.index(name)) for name in pieces if name != "$A"]
        )
        directory.mkdir(parents=True, exist_ok=True)
        trained.save(str(directory / "tokenizer.json"))
        settings = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 10**30, "eos_token": "[SEP]"}
        (directory / "tokenizer_config.json").write_text(json.dumps(settings))
        return int(trained.get_vocab_size())

    def _deberta(self, vocabulary: int) -> Any:
        from transformers import DebertaV2Config, DebertaV2Model

        config = DebertaV2Config(
            vocab_size=vocabulary,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            initializer_range=SPREAD,
            max_position_embeddings=512,
            relative_attention=True,
            position_buckets=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
            type_vocab_size=0,
            layer_norm_eps=1e-7,
        )
        return DebertaV2Model(config).eval()

    @cached_property
    def mixin(self) -> Saved:
        """A DeBERTa with a linear layer on its first token, saved by the hub's mixin: no layer sizes in its config."""
        import torch
        from huggingface_hub import PyTorchModelHubMixin

        directory = self.root / "mixin"
        encoder = self._deberta(self.tokenizer(directory))
        outside = {"base_model": BASE, "fc_dropout": 0.2}
        outside["id2label"] = {str(number): label for number, label in enumerate(LABELS)}
        outside["label2id"] = {label: number for number, label in enumerate(LABELS)}

        class TinyQualityModel(torch.nn.Module, PyTorchModelHubMixin):
            def __init__(self, config: dict[str, Any]) -> None:
                super().__init__()
                self.model = encoder
                self.dropout = torch.nn.Dropout(config["fc_dropout"])
                self.fc = torch.nn.Linear(64, len(config["id2label"]))

            def forward(self, ids: Any, mask: Any) -> Any:
                hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
                return torch.softmax(self.fc(self.dropout(hidden))[:, 0, :], dim=1)

        model = TinyQualityModel(outside).eval()
        torch.nn.init.normal_(model.fc.weight, std=0.5)
        model.save_pretrained(directory, config=outside)
        (directory / "tiny-deberta").mkdir(exist_ok=True)
        encoder.config.save_pretrained(directory / "tiny-deberta")
        return Saved(directory, model)

    @cached_property
    def prompt_heads(self) -> Saved:
        """A DeBERTa with eight heads on the mean of its tokens, saved by the hub's mixin."""
        import torch
        from huggingface_hub import PyTorchModelHubMixin

        directory = self.root / "prompt"
        encoder = self._deberta(self.tokenizer(directory))

        class TinyHead(torch.nn.Module):
            def __init__(self, size: int) -> None:
                super().__init__()
                self.fc = torch.nn.Linear(64, size)
                torch.nn.init.normal_(self.fc.weight, std=0.5)

        class TinyPromptModel(torch.nn.Module, PyTorchModelHubMixin):
            def __init__(self, target_sizes: dict[str, int]) -> None:
                super().__init__()
                self.backbone = encoder
                for number, size in enumerate(target_sizes.values()):
                    self.add_module(f"head_{number}", TinyHead(size))

            def forward(self, ids: Any, mask: Any) -> tuple[Any, ...]:
                hidden = self.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
                seen = mask.unsqueeze(-1).float()
                mean = (hidden * seen).sum(1) / seen.sum(1)
                return tuple(getattr(self, f"head_{number}").fc(mean) for number in range(len(TARGETS)))

        model = TinyPromptModel(TARGETS).eval()
        model.save_pretrained(directory, config={**PROMPT_CONFIG, "base_model": BASE})
        (directory / "tiny-deberta").mkdir(exist_ok=True)
        encoder.config.save_pretrained(directory / "tiny-deberta")
        return Saved(directory, model)

    def _bert(self, vocabulary: int, **more: Any) -> Any:
        from transformers import BertConfig

        return BertConfig(
            vocab_size=vocabulary,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            initializer_range=SPREAD,
            max_position_embeddings=128,
            **more,
        )

    @cached_property
    def regression(self) -> Saved:
        """A BERT with one output, as AutoModelForSequenceClassification saves it."""
        import torch
        from transformers import BertForSequenceClassification

        directory = self.root / "regression"
        model = BertForSequenceClassification(self._bert(self.tokenizer(directory), num_labels=1)).eval()
        torch.nn.init.normal_(model.classifier.weight, std=2.0)
        torch.nn.init.constant_(model.classifier.bias, 2.5)
        model.save_pretrained(directory)
        return Saved(directory, model)

    @cached_property
    def sequence(self) -> Saved:
        """A BERT with eleven labels, as AutoModelForSequenceClassification saves it."""
        import torch
        from transformers import BertForSequenceClassification

        directory = self.root / "sequence"
        named = {"id2label": dict(enumerate(LABELS)), "label2id": {label: n for n, label in enumerate(LABELS)}}
        model = BertForSequenceClassification(self._bert(self.tokenizer(directory), **named)).eval()
        torch.nn.init.normal_(model.classifier.weight, std=0.5)
        model.save_pretrained(directory)
        return Saved(directory, model)

    @cached_property
    def encoder(self) -> Saved:
        """A BERT with the files of sentence-transformers: the mean over tokens, normalised, 64 tokens at most."""
        from transformers import BertModel

        directory = self.root / "encoder"
        model = BertModel(self._bert(self.tokenizer(directory))).eval()
        model.save_pretrained(directory)
        kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
        modules = [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (path, kind) in enumerate(kinds.items())
        ]
        (directory / "modules.json").write_text(json.dumps(modules))
        (directory / "1_Pooling").mkdir(exist_ok=True)
        pooling = {"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
        (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64}))
        return Saved(directory, model)

    @cached_property
    def llama(self) -> Saved:
        """A language model of two layers."""
        from transformers import LlamaConfig, LlamaForCausalLM

        directory = self.root / "llama"
        config = LlamaConfig(
            vocab_size=self.tokenizer(directory, suffix=None),
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=128,
            initializer_range=SPREAD,
            max_position_embeddings=512,
            bos_token_id=2,
            eos_token_id=3,
            pad_token_id=0,
        )
        model = LlamaForCausalLM(config).eval()
        model.save_pretrained(directory)
        return Saved(directory, model)

    @cached_property
    def adapter(self) -> Saved:
        """Low-rank changes of that model, with the names and the config that PEFT writes. The reference has them."""
        import copy

        import torch
        from safetensors.torch import save_file

        directory = self.root / "adapter"
        directory.mkdir(exist_ok=True)
        changed, rank, alpha, state = copy.deepcopy(self.llama.reference), 4, 16, {}
        for layer in range(2):
            for name in ("q_proj", "v_proj"):
                path = f"model.layers.{layer}.self_attn.{name}"
                weight = changed.get_submodule(path).weight
                a, b = torch.randn(rank, weight.shape[1]) * 0.1, torch.randn(weight.shape[0], rank) * 0.1
                weight.data += alpha / rank * (b @ a)
                state |= {f"base_model.model.{path}.lora_A.weight": a, f"base_model.model.{path}.lora_B.weight": b}
        save_file(state, str(directory / "adapter_model.safetensors"))
        config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": ["q_proj", "v_proj"]}
        config |= {"base_model_name_or_path": "tests/tiny-llama", "bias": "none", "fan_in_fan_out": False}
        (directory / "adapter_config.json").write_text(json.dumps(config))
        return Saved(directory, changed)

    @cached_property
    def guard(self) -> Saved:
        """The small network that looks at the last layer of the language model."""
        import torch
        from safetensors.torch import save_file

        directory = self.root / "guard"
        directory.mkdir(exist_ok=True)
        sizes = {
            "input_layer": (64, 64),
            "hidden_layer_0": (64, 32),
            "hidden_layer_1": (32, 16),
            "hidden_layer_2": (16, 1),
        }
        layers = torch.nn.ModuleDict({name: torch.nn.Linear(*size) for name, size in sizes.items()})
        for layer in layers.values():
            torch.nn.init.normal_(layer.weight, std=0.4)
        save_file(layers.state_dict(), str(directory / "model.safetensors"))
        (directory / "config.json").write_text(json.dumps({"input_dim": 64, "dropout": 0.7}))
        return Saved(directory, layers)

    @cached_property
    def whole_guard(self) -> Saved:
        """Language model, adapter and guard as one module, with the language model's files beside it: for an export."""
        import torch

        language_model, layers = self.adapter.reference.model, self.guard.reference

        class TinyWholeGuard(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.backbone, self.layers = language_model, layers

            def forward(self, ids: Any, mask: Any) -> Any:
                hidden = self.backbone(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
                places = torch.arange(ids.shape[1])
                last = (mask * places).argmax(dim=1)  # the last token that is not padding, on whichever side that is
                state = torch.nn.functional.normalize(hidden[torch.arange(ids.shape[0]), last], dim=-1)
                *inner, end = self.layers.values()
                for layer in inner:
                    state = torch.relu(layer(state))
                return torch.sigmoid(end(state))

        return Saved(self.llama.directory, TinyWholeGuard().eval())

    def as_onnx(self, saved: Saved, outputs: list[str], name: str) -> Path:
        """Export a module beside a copy of the files that are not weights."""
        import shutil
        import warnings

        import torch

        directory = self.root / f"{name}-onnx"
        if directory.exists():
            return directory
        shutil.copytree(saved.directory, directory, ignore=shutil.ignore_patterns("*.safetensors"))
        ids = torch.randint(4, 50, (2, 9))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _by_place(saved.reference),
                (ids, torch.ones_like(ids)),
                str(directory / "model.onnx"),
                input_names=["input_ids", "attention_mask"],
                output_names=outputs,
                dynamic_axes={each: {0: "rows", 1: "tokens"} for each in ("input_ids", "attention_mask")}
                | {each: {0: "rows"} for each in outputs},
                opset_version=17,
                dynamo=False,
            )
        return directory


def _by_place(module: Any) -> Any:
    """Return a module that takes ids and mask by place, as an exporter gives them, and answers without a softmax."""
    import torch

    class Positional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, ids: Any, mask: Any) -> Any:
            if hasattr(self.inner, "fc"):
                return self.inner.fc(self.inner.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0])
            if hasattr(self.inner, "backbone"):
                return self.inner(ids, mask)
            answer = self.inner(input_ids=ids, attention_mask=mask)
            return answer.logits if hasattr(answer, "logits") else answer.last_hidden_state

    return Positional().eval()
