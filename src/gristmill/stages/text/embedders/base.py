"""`EmbeddingCreatorStage`: a column of embeddings, from tokens that a model turns into one vector a text.

How the vectors of tokens become one is the model's own affair: its files say it (`models/sentence_files.py`). Where
they are not to be used, `embedding_pooling` decides.
"""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.kernels.arrow_arrays import from_matrix
from gristmill.models.runtime import Head, ModelSource, RuntimeName, locate_tokenizer
from gristmill.models.sentence_files import MODULES, SentenceFiles, apply_layers, read_sentence_files
from gristmill.models.weights import check, find, keep_token, locate
from gristmill.stages.base import AnyStage, CompositeStage
from gristmill.stages.text.embedders.static import StaticEmbeddingStage, absolute
from gristmill.stages.text.models.files import download, is_from_hub
from gristmill.stages.text.models.model import ModelStage, Values
from gristmill.stages.text.models.tokenizer import PaddingSide, TokenizerStage
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch

if TYPE_CHECKING:
    from gristmill.models.batch_runner import BatchAnswer
    from gristmill.models.tokenizer import Tokens

Pooling = Literal["mean_pooling", "last_token", "cls"]
POOLINGS: dict[str, str] = {"mean_pooling": "mean", "last_token": "lasttoken", "cls": "cls"}
DTYPES = ("float16", "float32", "float64")
# Not the column classifiers share: how many tokens an embedder takes is in files that their tokenizer does not read.
TOKENS = "_gristmill_sentence_tokens"


def sentence_files(source: ModelSource) -> SentenceFiles:
    """Return what the model's files say; they may lie with the tokenizer, where a package has only the weights."""
    directories = dict.fromkeys([locate(source), locate_tokenizer(source)])
    chosen = next((place for place in directories if (place / MODULES).is_file()), locate(source))
    return read_sentence_files(chosen, who=source.who)


def is_here(source: ModelSource) -> bool:
    """Whether the model and its tokenizer are on this machine."""
    return all(find(part) is not None for part in source.parts())


def digest_of_files(source: ModelSource) -> str | None:
    """Return what changes if the files say something else, for the fingerprint of a plan; None if there are none."""
    if not is_here(source):
        return None
    files = [
        file
        for place in dict.fromkeys([locate(source), locate_tokenizer(source)])
        for file in (place / MODULES, place / "sentence_bert_config.json", *sorted(place.glob("*_*/config.json")))
        if file.is_file()
    ]
    joined = b"".join(f"{file.parent.name}/{file.name}\n".encode() + file.read_bytes() for file in files)
    return hashlib.sha256(joined).hexdigest()[:16] if files else None


@dataclass
class SentenceTokenizerStage(TokenizerStage):
    """Make tokens as the files of an embedding model say: how many, and whether of the text in lower case."""

    tokens_field: str = TOKENS
    use_sentence_transformer: bool = True
    model_source: ModelSource | None = None  # of the model, whose files are read

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        super().setup(worker_metadata)
        self._in_lower_case = False
        if self.use_sentence_transformer and self.model_source is not None:
            files = sentence_files(self.model_source)
            self._length = self.max_seq_length or files.max_length or self._length
            self._in_lower_case = files.lower_case

    def default_name(self) -> str:
        return "embedding_tokenizer"

    def new_columns(self) -> list[str]:
        return []  # the model drops its column: a second embedder may use the same name

    def check_ready(self) -> None:
        super().check_ready()
        if self.model_source is not None:
            self.model_source = replace(self.model_source, revision=check(self.model_source).revision)

    def get_config(self) -> dict[str, object]:
        given = {name: value for name, value in super().get_config().items() if name != "model_source"}
        return given if self.model_source is None else {**given, "sentence_files": digest_of_files(self.model_source)}

    def make_paths_absolute(self) -> None:
        super().make_paths_absolute()
        self.model_source = None if self.model_source is None else absolute(self.model_source)

    def wants_node_setup(self) -> bool:
        return super().wants_node_setup() or (self.model_source is not None and is_from_hub(self.model_source))

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        super().setup_on_node(node_info, worker_metadata)
        if self.model_source is not None:
            download(self.model_source)  # its files say how many tokens it takes

    def agrees_with(self, other: TokenizerStage) -> bool:
        return (
            isinstance(other, SentenceTokenizerStage)
            and self.model_source == other.model_source
            and self.use_sentence_transformer == other.use_sentence_transformer
            and super().agrees_with(other)
        )

    def _encode(self, texts: list[str]) -> "Tokens":
        return super()._encode([text.lower() for text in texts] if self._in_lower_case else texts)


@dataclass
class EmbeddingModelStage(ModelStage):
    """Add a vector for each document, null where there are no tokens. `pooling` "modules" is what the files say."""

    head: Head = "encoder"
    tokens_field: str = TOKENS
    embedding_field: str = "embeddings"
    pooling: str = "modules"
    embedding_output_dtype: str = "float32"

    def default_name(self) -> str:
        return "embedding_model"

    def answer_types(self) -> dict[str, pa.DataType]:
        kind = pa.from_numpy_dtype(np.dtype(self.embedding_output_dtype))
        # How long vectors are is known once the model is loaded; a plan asks for the name alone.
        length = self.__dict__.get("_dimensions")
        return {self.embedding_field: pa.list_(kind) if length is None else pa.list_(kind, length)}

    def check_ready(self) -> None:
        super().check_ready()
        if self.pooling == "modules" and is_here(self.source()):  # else it is still to be downloaded
            sentence_files(self.source())

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "sentence_files": digest_of_files(self.source())}

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        super().setup(worker_metadata)
        files = sentence_files(self.source()) if self.pooling == "modules" else _plain(self.pooling)
        self._poolings, self._layers = files.poolings, files.layers
        assert self._runtime is not None  # noqa: S101  # made above
        one = np.ones((1, 1), np.int64)
        [hidden] = self._runtime.run(one * self._runtime.pad_id, one)
        self._dimensions = self._pooled(hidden, one).shape[1]

    def process_model_output(self, answer: "BatchAnswer") -> tuple[Values, ...]:
        assert answer.outputs is not None  # noqa: S101  # those without are put aside
        vectors = self._pooled(answer.outputs[0], answer.mask)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise StageError(
                f"{self.name}: expected numbers from the model; got NaN or infinity for {len(bad)} of {len(vectors)} "
                f"documents of a batch, the first in row {int(answer.rows[bad[0]])}"
            )
        return (vectors,)

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        vectors = cast("NDArray[np.float32]", values[0]).astype(self.embedding_output_dtype, copy=False)
        return {self.embedding_field: from_matrix(vectors, np.ones(len(vectors), np.bool_))}

    def _pooled(self, hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        from gristmill.kernels.pooling import pool

        return apply_layers(pool(hidden, mask, self._poolings), self._layers)

    def _check(self, answer: "BatchAnswer") -> None:
        """Check nothing: vectors are checked once pooled, as for padding a model may answer anything."""


def _plain(pooling: str) -> SentenceFiles:
    return SentenceFiles(Path(), poolings=(POOLINGS[pooling],), layers=(None,))


@dataclass
class EmbeddingCreatorStage(CompositeStage[DocumentBatch, DocumentBatch]):
    """Add a column of embeddings, `fixed_size_list<float>`; null where a text is null, empty or blank.

    `model_identifier` is a directory, "package:NAME" or a hub id. With `use_sentence_transformer` the model's own files
    say how tokens become one vector, how many tokens it takes and whether vectors have length one; the library of that
    name is not needed. Otherwise `embedding_pooling` says it, and vectors have length one. "package:wordllama" is a
    table of token vectors: a fiftieth of the cost, for a first look. `prompt` is a text with `{document}` in it, for
    models that want one. `tokenizer_identifier` is where the tokenizer is, if not with the model.
    """

    model_identifier: str = "sentence-transformers/all-MiniLM-L6-v2"
    use_sentence_transformer: bool = True
    text_field: str = "text"
    embedding_field: str = "embeddings"
    cache_dir: str | None = None
    max_chars: int | None = None
    max_seq_length: int | None = None
    padding_side: PaddingSide = "right"
    embedding_pooling: Pooling = "mean_pooling"
    model_inference_batch_size: int = 1024
    autocast: bool = True
    sort_by_length: bool = True
    hf_token: str | None = field(default=None, repr=False)
    transformers_init_kwargs: dict[str, object] = field(default_factory=dict)
    _: KW_ONLY
    embedding_output_dtype: str = "float32"
    prompt: str | None = None
    tokenizer_identifier: str | None = None
    device: str = "auto"
    runtime: RuntimeName | None = None
    max_batch_tokens: int | None = None
    offline: bool | None = None
    name: str = "embedding_creator"

    def __post_init__(self) -> None:
        who = type(self).__name__
        if self.embedding_pooling not in POOLINGS:
            got = f"{self.embedding_pooling!r}{nearest(self.embedding_pooling, POOLINGS)}"
            raise ConfigError(f"{who}: expected embedding_pooling to be one of {tuple(POOLINGS)}; got {got}")
        if self.embedding_output_dtype not in DTYPES:
            raise ConfigError(
                f"{who}: expected embedding_output_dtype to be one of {DTYPES}; got {self.embedding_output_dtype!r}"
            )
        if self.transformers_init_kwargs:
            warnings.warn(f"{who}: transformers_init_kwargs has no effect here", UserWarning, stacklevel=3)
        keep_token(self.hf_token)
        self.hf_token = None

    def source(self) -> ModelSource:
        """Which model it is, and what may be done to get it."""
        return ModelSource(
            self.model_identifier,
            self.cache_dir,
            offline=self.offline,
            runtime=self.runtime,
            tokenizer_identifier=self.tokenizer_identifier,
            who=type(self).__name__,
        )

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.embedding_field]

    def decompose(self) -> list[AnyStage]:
        if self._is_static():
            return [
                StaticEmbeddingStage(
                    self.source(),
                    self.text_field,
                    self.embedding_field,
                    max_chars=self.max_chars,
                    max_seq_length=self.max_seq_length,
                    embedding_output_dtype=self.embedding_output_dtype,
                )
            ]
        return [self._tokenizer(), self._model()]

    def _is_static(self) -> bool:
        from gristmill.models.static_model import WORDLLAMA, static_files

        if self.model_identifier == WORDLLAMA:
            return True
        return is_here(self.source()) and static_files(self.source()) is not None

    def _tokenizer(self) -> SentenceTokenizerStage:
        return SentenceTokenizerStage(
            self.tokenizer_identifier or self.model_identifier,
            self.cache_dir,
            None,
            self.text_field,
            self.max_chars,
            self.max_seq_length,
            self.padding_side,
            self.sort_by_length,
            prompt=self.prompt,
            offline=self.offline,
            who=type(self).__name__,
            use_sentence_transformer=self.use_sentence_transformer,
            model_source=replace(self.source(), files="tokenizer"),
        )

    def _model(self) -> EmbeddingModelStage:
        return EmbeddingModelStage(
            self.model_identifier,
            self.cache_dir,
            None,
            self.model_inference_batch_size,
            self.sort_by_length,
            self.padding_side,
            self.max_seq_length,
            autocast=self.autocast,
            device=self.device,
            runtime=self.runtime,
            max_batch_tokens=self.max_batch_tokens,
            offline=self.offline,
            tokenizer_identifier=self.tokenizer_identifier,
            who=type(self).__name__,
            embedding_field=self.embedding_field,
            pooling="modules" if self.use_sentence_transformer else self.embedding_pooling,
            embedding_output_dtype=self.embedding_output_dtype,
        )
