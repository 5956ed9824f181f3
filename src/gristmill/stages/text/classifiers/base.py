"""`DistributedDataClassifier`: a tokenizer, a model and perhaps a filter as one stage, and what all classifiers share.

The classes users know differ in which model they ask, how much of a text it sees and what its columns are called. A
classifier never changes the text: `max_chars` limits what the model sees.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Protocol, TypedDict, cast

from gristmill.errors import ConfigError, nearest
from gristmill.models.runtime import ModelSource, RuntimeName
from gristmill.models.weights import keep_token
from gristmill.stages.base import CompositeStage, ProcessingStage, columns_read, snake_case
from gristmill.stages.text.classifiers.models import LabelModelStage, labels_of, most_tokens
from gristmill.stages.text.models.model import ModelStage
from gristmill.stages.text.models.tokenizer import PaddingSide, TokenizerStage, TokenReader
from gristmill.stages.text.models.tokens import TOKENS, TRUNCATED
from gristmill.tasks import DocumentBatch

NO_PREDICTION, OTHER_LABEL = "no_prediction", "other_label"

Label = str | bool
Stages = list[ProcessingStage[Any, Any]]


class ModelOptions(TypedDict, total=False):
    """What every model stage of a classifier is given."""

    model_identifier: str
    cache_dir: str | None
    model_inference_batch_size: int
    has_seq_order: bool
    padding_side: PaddingSide
    max_seq_length: int | None
    autocast: bool
    device: str
    runtime: RuntimeName | None
    max_batch_tokens: int | None
    offline: bool | None
    tokens_field: str
    keep_tokens: bool
    use_existing_tokens: bool
    truncated_from: str | None
    truncated_field: str | None
    allow_pickle: bool
    base_identifier: str | None
    adapter_identifier: str | None
    owner: str
    who: str


class Options(Protocol):
    """The parameters that all classifiers have, in whatever order users know them."""

    cache_dir: str | None
    hf_token: str | None
    text_field: str
    max_chars: int | None
    sort_by_length: bool
    model_inference_batch_size: int
    autocast: bool


@dataclass(kw_only=True)
class Classifier(CompositeStage[DocumentBatch, DocumentBatch]):
    """What the classes have in common.

    `model_path` is a directory with the model instead of the hub's; `device` "auto", "cpu" or "cuda"; `runtime` "onnx"
    or "torch"; `max_batch_tokens` the most padded tokens of a batch; `offline` forbids downloads. `mark_truncated` adds
    a column that says where the model has not seen all of a text.
    """

    model_path: str | None = None
    device: str = "auto"
    runtime: RuntimeName | None = None
    max_batch_tokens: int | None = None
    offline: bool | None = None
    mark_truncated: bool = False
    allow_pickle: bool = False
    name: str = ""

    side: ClassVar[PaddingSide] = "right"
    usual_labels: ClassVar[tuple[Label, ...]] = ()  # what the hub's model has; another model's config says it

    def __post_init__(self) -> None:
        self.name = self.name or self.default_name()
        given = cast("Options", self)
        keep_token(given.hf_token)
        given.hf_token = None

    def default_name(self) -> str:
        return snake_case(type(self).__name__)

    # What a class says

    def _identifier(self) -> str:
        """Where the model is."""
        raise NotImplementedError(f"{type(self).__name__}: a classifier must define _identifier, _tokens and _model")

    def _tokens(self) -> int | None:
        """How many tokens of a document the model sees."""
        raise NotImplementedError(f"{type(self).__name__}: a classifier must define _identifier, _tokens and _model")

    def _model(self, options: ModelOptions) -> ModelStage:
        """The stage that asks it."""
        raise NotImplementedError(f"{type(self).__name__}: a classifier must define _identifier, _tokens and _model")

    def _truncated_name(self) -> str:
        """The column that says whether a text was cut."""
        return f"{getattr(self, 'label_field', self.name)}_truncated"

    def _base_from(self) -> str | None:
        """Where the language model that the model stands on is, with its tokenizer, if there is one."""
        return None

    def _adapter_from(self) -> str | None:
        """Where the adapter between the two is, if there is one."""
        return None

    def _prompt_text(self) -> str | None:
        """What the document is put into, if the model wants that."""
        return None

    # What follows

    def decompose(self) -> Stages:
        given = cast("Options", self)
        wanted = getattr(self, "filter_by", None)
        self._check(wanted)
        stages: Stages = []
        existing = bool(getattr(self, "use_existing_tokens", False))
        if not existing:
            stages.append(self._tokenizer(given))
        stages.append(self._model(self._options(given, existing=existing)))
        if wanted is not None:
            stages.append(KeepLabels(self._label_field(), tuple(wanted), owner=self.name))
        return stages

    def _check(self, wanted: Sequence[Label] | None) -> None:
        if wanted is not None:
            check_labels(wanted, self._known_labels(), who=type(self).__name__)
        if self.mark_truncated and getattr(self, "use_existing_tokens", False):
            raise ConfigError(
                f"{type(self).__name__}: expected mark_truncated or use_existing_tokens; got both. Whoever made the "
                "tokens knows what was cut"
            )

    def _label_field(self) -> str:
        return str(getattr(self, "label_field", ""))

    def _known_labels(self) -> Sequence[Label]:
        """The labels `filter_by` may name, as far as they can be known before the model is there."""
        return labels_of(self._source(), [str(label) for label in self.usual_labels])

    def _source(self) -> ModelSource:
        """Which model it is."""
        return ModelSource(
            self._identifier(),
            cast("Options", self).cache_dir,
            base_identifier=self._base_from(),
            adapter_identifier=self._adapter_from(),
            who=type(self).__name__,
        )

    def _tokenizer(self, given: Options) -> TokenizerStage:
        return TokenizerStage(
            self._base_from() or self._identifier(),
            given.cache_dir,
            text_field=given.text_field,
            max_chars=given.max_chars,
            max_seq_length=self._tokens(),
            padding_side=self.side,
            sort_by_length=given.sort_by_length,
            tokens_field=TOKENS,
            truncated_field=TRUNCATED if self.mark_truncated else None,
            center_crop_chars=getattr(self, "center_crop_chars", None),
            prompt=self._prompt_text(),
            offline=self.offline,
            owner=self.name,
            who=type(self).__name__,
        )

    def _options(self, given: Options, *, existing: bool) -> ModelOptions:
        return {
            "model_identifier": self._identifier(),
            "cache_dir": given.cache_dir,
            "model_inference_batch_size": given.model_inference_batch_size,
            "has_seq_order": given.sort_by_length,
            "padding_side": self.side,
            "max_seq_length": self._tokens(),
            "autocast": given.autocast,
            "device": self.device,
            "runtime": self.runtime,
            "max_batch_tokens": self.max_batch_tokens,
            "offline": self.offline,
            "tokens_field": TOKENS,
            "keep_tokens": bool(getattr(self, "keep_tokens", False)),
            "use_existing_tokens": existing,
            "truncated_from": TRUNCATED if self.mark_truncated else None,
            "truncated_field": self._truncated_name() if self.mark_truncated else None,
            "allow_pickle": self.allow_pickle,
            "base_identifier": self._base_from(),
            "adapter_identifier": self._adapter_from(),
            "owner": self.name,
            "who": type(self).__name__,
        }

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], columns_read(self.decompose()[0])

    def outputs(self) -> tuple[list[str], list[str]]:
        return next(stage for stage in self.decompose() if isinstance(stage, ModelStage)).outputs()


@dataclass
class LabelClassifier(Classifier):
    """A classifier with one label for each document, and its probabilities in `score_field` on request.

    `filter_by` keeps only documents with these labels. `keep_tokens` leaves the tokens in `input_ids` and
    `attention_mask`, where `use_existing_tokens` finds them.
    """

    cache_dir: str | None = None
    label_field: str = "preds"
    score_field: str | None = None
    text_field: str = "text"
    filter_by: list[str] | None = None
    max_chars: int | None = None
    sort_by_length: bool = True
    model_inference_batch_size: int = 256
    autocast: bool = True
    keep_tokens: bool = False
    use_existing_tokens: bool = False
    _: KW_ONLY
    hf_token: str | None = None

    hub_id: ClassVar[str] = ""
    most_tokens: ClassVar[int] = 512

    def _identifier(self) -> str:
        return self.model_path or self.hub_id

    def _tokens(self) -> int | None:
        return most_tokens(self._source(), self.most_tokens)

    def _model(self, options: ModelOptions) -> ModelStage:
        usual = tuple(label for label in self.usual_labels if isinstance(label, str))
        return LabelModelStage(
            **options, label_field=self.label_field, score_field=self.score_field, usual_labels=usual
        )


@dataclass(kw_only=True)
class DistributedDataClassifier(Classifier):
    """Classify documents with a model of your own: a directory, "package:NAME" or a hub id.

    Labels are the model's. `max_seq_length` is the model's too if it is None. `head` says how it is built, where its
    config does not: "sequence" for AutoModelForSequenceClassification, "cls_softmax" for models with the hub's mixin.
    """

    model_identifier: str
    cache_dir: str | None = None
    label_field: str = "preds"
    score_field: str | None = None
    text_field: str = "text"
    filter_by: list[str] | None = None
    max_chars: int | None = None
    max_seq_length: int | None = None
    padding_side: PaddingSide = "right"
    sort_by_length: bool = True
    model_inference_batch_size: int = 256
    autocast: bool = True
    keep_tokens: bool = False
    use_existing_tokens: bool = False
    hf_token: str | None = None
    head: Literal["sequence", "cls_softmax"] | None = None

    def _identifier(self) -> str:
        return self.model_path or self.model_identifier

    def _tokens(self) -> int | None:
        return self.max_seq_length

    def _model(self, options: ModelOptions) -> ModelStage:
        options = {**options, "padding_side": self.padding_side}
        return LabelModelStage(**options, label_field=self.label_field, score_field=self.score_field, head=self.head)


@dataclass
class KeepLabels(TokenReader):
    """Keep the documents whose label is one of those wanted: what `filter_by` becomes.

    The others are dropped with the reason `other_label`, those without a prediction with `no_prediction`.
    """

    label_field: str
    wanted: tuple[Label, ...]
    _: KW_ONLY
    owner: str = ""
    name: str = ""

    adds_only_declared_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return f"{self.owner}_filter" if self.owner else "keep_labels"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.label_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        labels = task.column(self.label_field).to_pylist()
        missing = [label is None for label in labels]
        other = [label is not None and label not in self.wanted for label in labels]
        kept = [not (gone or unwanted) for gone, unwanted in zip(missing, other, strict=True)]
        condition = f"{self.label_field} in {list(self.wanted)}"
        self.context.measure_labels(OTHER_LABEL, labels, kept, measure=self.label_field, condition=condition)
        self.context.drop(task, missing, reason=NO_PREDICTION)
        self.context.drop(task, other, reason=OTHER_LABEL, values=labels, threshold=condition)
        return task.filter(kept)


def check_labels(wanted: object, known: Sequence[Label], *, who: str) -> None:
    """Raise ConfigError for a label the model does not have, which would drop every document, and for no label."""
    if not isinstance(wanted, list | tuple | set | frozenset):
        raise ConfigError(f"{who}: expected filter_by to be a list of labels; got {wanted!r}. Write [{wanted!r}]")
    if not wanted:
        raise ConfigError(
            f"{who}: expected filter_by to name at least one label; got {wanted!r}, which would keep no document. "
            "To keep all of them, leave filter_by out"
        )
    for label in wanted if known else ():
        if label not in known:
            close = nearest(str(label), map(str, known))
            raise ConfigError(f"{who}: expected filter_by to be of {list(known)}; got {label!r}{close}")
