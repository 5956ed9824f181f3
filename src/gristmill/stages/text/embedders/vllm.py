"""`VLLMEmbeddingModelStage`: embeddings by vLLM where it is installed, by our own runtime where it is not.

vLLM runs on GPUs and makes its own batches, so it is given all tokens of a task. Without it the stage is what
`EmbeddingCreatorStage` is, and a warning says so: vectors may then differ in the last decimals.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from gristmill.errors import ConfigError, StageError, require
from gristmill.kernels.arrow_arrays import from_matrix
from gristmill.models.weights import keep_token, locate
from gristmill.stages.base import AnyStage, CompositeStage, ProcessingStage
from gristmill.stages.text.embedders.base import DTYPES, EmbeddingCreatorStage, EmbeddingModelStage
from gristmill.stages.text.models.tokens import from_column
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

__all__ = ["VLLMEmbeddingModelStage"]


@dataclass
class VLLMEmbeddingModelStage(CompositeStage[DocumentBatch, DocumentBatch]):
    """Add a column of embeddings; null where a text is null, empty or blank.

    `model_identifier` is whatever `EmbeddingCreatorStage` takes. `vllm_init_kwargs` are handed to vLLM. With
    `metadata_fields` only those columns and the embeddings are passed on, so that texts do not travel further; by
    default all are. Tokens are made on CPUs, in processes of their own, whatever `pretokenize` says.
    """

    model_identifier: str
    vllm_init_kwargs: Mapping[str, object] | None = None
    text_field: str = "text"
    pretokenize: bool = True
    embedding_field: str = "embeddings"
    max_chars: int | None = None
    cache_dir: str | None = None
    hf_token: str | None = None
    verbose: bool = False
    _: KW_ONLY
    metadata_fields: Sequence[str] | None = None
    model_inference_batch_size: int | None = 8192
    embedding_output_dtype: str = "float32"
    offline: bool | None = None
    name: str = "vllm_embedding_model"

    def __post_init__(self) -> None:
        if self.embedding_output_dtype not in DTYPES:
            raise ConfigError(
                f"{type(self).__name__}: expected embedding_output_dtype to be one of {DTYPES}; "
                f"got {self.embedding_output_dtype!r}"
            )

        keep_token(self.hf_token)
        self.hf_token = None

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.embedding_field]

    def decompose(self) -> list[AnyStage]:
        stages = self._ours().decompose()
        if len(stages) == 2:  # one is a static model, which has no use for vLLM
            stages = [stages[0], self._with_vllm(stages[1])]
        if self.metadata_fields is not None:
            stages.append(KeepColumns([*dict.fromkeys([*self.metadata_fields, self.embedding_field])]))
        return stages

    def _with_vllm(self, model: AnyStage) -> AnyStage:
        assert isinstance(model, EmbeddingModelStage)  # noqa: S101  # what follows the tokenizer
        if find_spec("vllm") is None:
            told = f"{type(self).__name__}: vLLM is not installed; the model runs on gristmill's own runtime"
            warnings.warn(told, UserWarning, stacklevel=2)
            return model
        kept = {name: getattr(model, name) for name in _settings(model)}
        given = dict(self.vllm_init_kwargs or {})
        return VLLMModelStage(**kept, vllm_init_kwargs=given, pretokenize=self.pretokenize, verbose=self.verbose)

    def _ours(self) -> EmbeddingCreatorStage:
        return EmbeddingCreatorStage(
            self.model_identifier,
            text_field=self.text_field,
            embedding_field=self.embedding_field,
            cache_dir=self.cache_dir,
            max_chars=self.max_chars,
            model_inference_batch_size=self.model_inference_batch_size or 8192,
            embedding_output_dtype=self.embedding_output_dtype,
            offline=self.offline,
        )


def _settings(stage: EmbeddingModelStage) -> list[str]:
    return [each.name for each in fields(stage) if each.name != "name"]


@dataclass
class VLLMModelStage(EmbeddingModelStage):
    """Tokens to vectors by vLLM, which pools as the model's files say. `pretokenize` is kept for the record only."""

    vllm_init_kwargs: dict[str, object] = field(default_factory=dict)
    pretokenize: bool = True
    verbose: bool = False

    def default_name(self) -> str:
        return "vllm_embedding"

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        vllm = require("vllm", extra="vllm")
        options: dict[str, object] = {"runner": "pooling", "disable_log_stats": not self.verbose}
        self._vllm: Any = vllm.LLM(model=str(locate(self.source())), **(options | self.vllm_init_kwargs))

    def teardown(self) -> None:
        self._vllm = None

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if getattr(self, "_vllm", None) is None:
            self.setup()  # called by hand, outside a run
        tokens = from_column(task.column(self.tokens_field), who=self.name, name=self.tokens_field)
        seen = ~tokens.is_missing
        rows = np.flatnonzero(seen).tolist()
        prompts = [{"prompt_token_ids": tokens.ids[tokens.offsets[r] : tokens.offsets[r + 1]].tolist()} for r in rows]
        answers = self._vllm.embed(prompts, use_tqdm=self.verbose) if prompts else []
        if len(answers) != len(prompts):
            raise StageError(f"{self.name}: expected {len(prompts)} vectors from vLLM; got {len(answers)}")
        vectors = [answer.outputs.embedding for answer in answers]
        if vectors:
            self._dimensions = len(vectors[0])
        length = self.__dict__.get("_dimensions") or self._length_of_vectors()
        made = np.array(vectors, np.float32).reshape(len(rows), length)
        if not np.isfinite(made).all():
            raise StageError(f"{self.name}: expected numbers from vLLM; got NaN or infinity")
        column = from_matrix(made.astype(self.embedding_output_dtype, copy=False), seen)
        return task.with_column(self.embedding_field, column).drop_columns([self.tokens_field])

    def _length_of_vectors(self) -> int:
        """Ask for one vector, if the first batch has no text at all."""
        return len(self._vllm.embed([{"prompt_token_ids": [1]}], use_tqdm=False)[0].outputs.embedding)


@dataclass
class KeepColumns(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Pass on some columns and no other."""

    adds_only_declared_columns: ClassVar[bool] = True

    kept_fields: list[str]
    name: str = "keep_columns"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.kept_fields)

    def columns(self) -> list[str]:
        return list(self.kept_fields)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        return task.select(self.kept_fields)
