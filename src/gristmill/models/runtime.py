"""One interface over the libraries that run models, and the choice between them.

    source = ModelSource("nvidia/quality-classifier-deberta", who="QualityClassifier")
    runtime = open_runtime(source, device="auto", threads=1, precision="auto", head="cls_softmax")
    logits, = runtime.run(input_ids, attention_mask)     # int64 [rows, longest] both; float32 out
    runtime.close()

`run` raises `OutOfMemory` (errors.py) where the device has no room for the batch, and is usable afterwards: the caller
tries again with fewer rows. Nothing else is raised on purpose. What `run` returns depends on the head:

    head            outputs                                       files
    cls_softmax     logits [rows, labels]                         hub mixin: `model.*` and `fc.*` in one file
    sequence        logits [rows, labels]                         AutoModelForSequenceClassification
    regression      logits [rows, 1]                              the same, with one output
    multi_head      logits [rows, classes of head k], eight       hub mixin with `heads.k.fc.*`
    encoder         last hidden state [rows, longest, width]      a plain encoder; pooling is kernels/pooling.py
    poison_guard    probability [rows, 1]                         an MLP on the last layer of a Llama with LoRA
    generate        ids [rows, GENERATED_TOKENS], then NOTHING    a language model, or LoRA on `base_identifier`

Beside it: `models/tokenizer.py` (texts to ids), `kernels/token_batches.py` (ids to batches), `models/batch_runner.py`
(batches through a runtime, with the policy for memory), `models/weights.py` (where the files are: `locate`, `fetch`,
`check`), `models/heads.py` (outputs to columns). None of them imports a model library before it is called.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, MissingDependency

Head = Literal["cls_softmax", "sequence", "regression", "multi_head", "encoder", "poison_guard", "generate"]
RuntimeName = Literal["onnx", "torch"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]

GENERATED_TOKENS = 100  # ids that a language model adds to a prompt at most; as float32, which holds them exactly
NOTHING = -1  # in the places after its answer has ended

ONNX_FILES = ("*.onnx", "onnx/*.onnx")  # in a model's directory; the first that matches
PICKLED = (".bin", ".pth", ".pt")


class ModelRuntime(Protocol):
    """A model on a device."""

    device: str  # "cpu", "cuda:0", "mps"
    max_length: int  # tokens of a row unless set otherwise; from the model's config, never a tokenizer's 1e30
    pad_id: int  # the id that fills short rows

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """Return what the model answers for a padded batch. Raises OutOfMemory."""
        ...

    def close(self) -> None:
        """Give back the memory."""
        ...


@dataclass(frozen=True)
class ModelSource:
    """Which model, and what may be done to get it. Holds no secret: it may be pickled, logged and compared.

    `model_identifier` is a directory, "package:NAME" or a hub id. `tokenizer_identifier` is one too, for models whose
    tokenizer and config lie elsewhere; `base_identifier` and `adapter_identifier` say what a guard or an adapter stands
    on. `files="tokenizer"` wants no weights. `who` is the stage that messages name.
    """

    model_identifier: str
    cache_dir: str | None = None
    revision: str | None = None
    offline: bool | None = None  # None: as GRISTMILL_OFFLINE and HF_HUB_OFFLINE say
    runtime: RuntimeName | None = None  # None: ONNX Runtime if there is an .onnx file, else torch
    allow_pickle: bool = False
    allow_batch_dependent: bool = False
    tokenizer_identifier: str | None = None
    adapter_identifier: str | None = None
    base_identifier: str | None = None
    files: Literal["all", "tokenizer"] = "all"
    who: str = "model"

    def part(self, identifier: str) -> "ModelSource":
        """Return the source of something else that the model needs."""
        return replace(
            self,
            model_identifier=identifier,
            revision=None,
            tokenizer_identifier=None,
            adapter_identifier=None,
            base_identifier=None,
        )

    def parts(self) -> "tuple[ModelSource, ...]":
        """Return the model and everything it needs, each as a source of its own."""
        others = [self.part(each) for each in (self.adapter_identifier, self.base_identifier) if each is not None]
        if self.tokenizer_identifier is not None:
            others.append(replace(self.part(self.tokenizer_identifier), files="tokenizer"))
        return (self, *others)


def open_runtime(
    source: ModelSource,
    *,
    device: str = "auto",
    threads: int,
    precision: Precision = "auto",
    head: Head,
) -> ModelRuntime:
    """Load a model whose files are on this machine. Never downloads: `weights.fetch` does, in `setup_on_node`."""
    from gristmill.models.known_configs import read_config
    from gristmill.models.weights import locate

    directory = locate(source)
    has_base = source.base_identifier is not None
    config = read_config(locate_base(source) if has_base else directory, elsewhere=locate_tokenizer(source))
    name, file = choose_runtime(source, directory)
    if name == "onnx":
        from gristmill.models.onnx_runtime import OnnxRuntime

        return OnnxRuntime(source, file, config=config, device=device, threads=threads, head=head)
    from gristmill.models.torch_runtime import TorchRuntime

    return TorchRuntime(
        source, directory, config=config, device=device, threads=threads, precision=precision, head=head
    )


def locate_tokenizer(source: ModelSource) -> Path:
    """Return the directory of tokenizer and config: the model's, unless the source names another."""
    found = replace(source, files="tokenizer") if source.base_identifier is None else source
    return _locate_part(found, source.tokenizer_identifier or source.base_identifier)


def locate_base(source: ModelSource) -> Path:
    """Return the directory of the language model that an adapter or a guard stands on."""
    return _locate_part(source, source.base_identifier)


def locate_adapter(source: ModelSource) -> Path | None:
    """Return the directory of the adapter between a language model and a guard, if there is one."""
    return None if source.adapter_identifier is None else _locate_part(source, source.adapter_identifier)


def _locate_part(source: ModelSource, identifier: str | None) -> Path:
    from gristmill.models.weights import locate

    return locate(source if identifier is None else source.part(identifier))


def choose_runtime(source: ModelSource, directory: Path) -> tuple[RuntimeName, Path]:
    """Return the library to use and the file with the weights. Raises if there is none or it must not be opened."""
    onnx = next((found for pattern in ONNX_FILES if (found := sorted(directory.glob(pattern)))), [])
    tensors = sorted(directory.glob("*.safetensors"))
    pickled = sorted(file for ending in PICKLED for file in directory.glob(f"*{ending}"))
    if source.runtime != "torch" and onnx:
        return "onnx", _one_of(onnx, source, directory)
    if source.runtime == "onnx":
        raise ConfigError(f"{source.who}: expected an .onnx file in {directory} for runtime='onnx'; found none")
    if tensors:
        return "torch", tensors[0]
    if pickled and source.allow_pickle:
        return "torch", pickled[0]
    if pickled:
        raise ConfigError(
            f"{source.who}: expected .safetensors or .onnx in {directory}; got {pickled[0].name}, a pickle, which can "
            "run any code when it is opened. If you trust whoever made it: allow_pickle=True"
        )
    raise ConfigError(f"{source.who}: expected .safetensors or .onnx in {directory}; found neither")


def _one_of(files: list[Path], source: ModelSource, directory: Path) -> Path:
    """Return model.onnx, or the only file. Which of several quantised forms is meant cannot be guessed."""
    plain = [file for file in files if file.name == "model.onnx"]
    if plain or len(files) == 1:
        return (plain or files)[0]
    names = ", ".join(file.name for file in files)
    raise ConfigError(f"{source.who}: expected model.onnx or one .onnx file in {directory}; got {names}")


def check_installed(source: ModelSource) -> None:
    """Raise MissingDependency if neither library is here. For planning, when nothing is loaded yet."""
    from importlib.util import find_spec

    wanted = {"onnx": ("onnxruntime",), "torch": ("torch",)}.get(source.runtime or "", ("onnxruntime", "torch"))
    if any(find_spec(module) is not None for module in wanted):
        return
    needs = "onnxruntime or torch; neither is" if len(wanted) == 2 else f"{wanted[0]}; it is not"
    extra = "torch" if source.runtime == "torch" else "models"
    raise MissingDependency(f"{source.who} needs {needs} installed. Install: pip install 'gristmill[{extra}]'")
