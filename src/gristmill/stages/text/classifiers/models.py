"""The model stages of classifiers: what a model answers, as columns. The rules are in `models/heads.py`.

Scores are rounded to six decimals, labels are taken before that. Columns hold doubles, so that JSON has 0.123457 where
a float of 32 bits would be written as 0.12345699965953827.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.models.heads import (
    DECIMALS,
    DIMENSIONS,
    PromptHeads,
    cls_softmax,
    multi_head,
    poison_guard,
    regression,
)
from gristmill.models.known_configs import Config, labels, max_length, read_config, takes_longer
from gristmill.models.runtime import Head, ModelSource, locate_base, locate_tokenizer
from gristmill.models.weights import locate
from gristmill.stages.text.models.model import ModelStage, Values
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from gristmill.models.runtime import ModelRuntime

COMPLEXITY_FIELDS = ("prompt_complexity_score", "task_type_1", "task_type_2", "task_type_prob", *DIMENSIONS)
_TEXTS = ("task_type_1", "task_type_2")


def config_of(source: ModelSource) -> Config:
    """Return what a model's config.json says. Raises ConfigError if its files are not on this machine."""
    base = locate_base(source) if source.base_identifier is not None else locate(source)
    return read_config(base, elsewhere=locate_tokenizer(source))


def labels_of(source: ModelSource, usual: Sequence[str] = ()) -> list[str]:
    """Return the labels of a model in the order of its outputs; the `usual` ones where its files do not say."""
    try:
        return labels(config_of(source)) or list(usual)
    except ConfigError:  # it is still to be fetched
        return list(usual)


def most_tokens(source: ModelSource, usual: int) -> int:
    """Return how many tokens a class's model is usually given, or as many as this one has positions for."""
    try:
        config = config_of(source)
    except ConfigError:  # it is still to be fetched
        return usual
    return usual if takes_longer(config) else min(usual, max_length(config))


@dataclass
class LabelModelStage(ModelStage):
    """The likeliest label, and on request the probabilities of all, in the order of the model's labels.

    `head=None` goes by the config: models saved by the hub's mixin name a base model, others an architecture.
    """

    _: KW_ONLY
    label_field: str = "preds"
    score_field: str | None = None
    usual_labels: tuple[str, ...] = ()
    head: Head | None = None  # type: ignore[assignment]  # found out when the model is opened

    def answer_types(self) -> dict[str, pa.DataType]:
        scores = {} if self.score_field is None else {self.score_field: pa.list_(pa.float64())}
        return {self.label_field: pa.string(), **scores}

    def open_model(self) -> "ModelRuntime":
        config = config_of(self.source())
        self._labels = labels(config) or list(self.usual_labels)
        if self.head is None:
            self.head = "cls_softmax" if "base_model" in config and "architectures" not in config else "sequence"
        return super().open_model()

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        found = cls_softmax(_floats(values[0]), self._labels, who=self.source().who)
        made = {self.label_field: from_texts(found.labels.tolist())}
        if self.score_field is not None:
            made[self.score_field] = _vectors(found.probabilities)
        return made


@dataclass
class RegressionModelStage(ModelStage):
    """A grade from 0 to 5: as a number, as the integer nearest to it, and as high_quality or low_quality."""

    _: KW_ONLY
    label_field: str | None = None
    float_score_field: str = "score"
    int_score_field: str = "int_score"
    head: Head = "regression"

    def answer_types(self) -> dict[str, pa.DataType]:
        label = {} if self.label_field is None else {self.label_field: pa.string()}
        return {**label, self.float_score_field: pa.float64(), self.int_score_field: pa.int64()}

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        found = regression(_floats(values[0]))
        label = {} if self.label_field is None else {self.label_field: from_texts(found.labels.tolist())}
        scores = {self.float_score_field: _rounded(found.floats), self.int_score_field: from_numbers(found.ints)}
        return {**label, **scores}


@dataclass
class PromptModelStage(ModelStage):
    """Eleven columns about a prompt: what it asks for, and how hard that is."""

    _: KW_ONLY
    head: Head = "multi_head"

    def answer_types(self) -> dict[str, pa.DataType]:
        return {name: pa.string() if name in _TEXTS else pa.float64() for name in COMPLEXITY_FIELDS}

    def open_model(self) -> "ModelRuntime":
        source = self.source()
        self._heads = PromptHeads.of(config_of(source), who=source.who)
        return super().open_model()

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        found = multi_head([_floats(value) for value in values], self._heads)
        return {
            name: from_texts(found[name].tolist()) if name in _TEXTS else _numbers(found[name])
            for name in COMPLEXITY_FIELDS
        }


@dataclass
class GuardModelStage(ModelStage):
    """Whether an instruction looks poisoned, and how likely that is."""

    _: KW_ONLY
    label_field: str = "is_poisoned"
    score_field: str = "instruction_data_guard_poisoning_score"
    head: Head = "poison_guard"

    def answer_types(self) -> dict[str, pa.DataType]:
        return {self.label_field: pa.bool_(), self.score_field: pa.float64()}

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        flags, scores = poison_guard(_floats(values[0])).values()
        return {self.label_field: from_bools(cast("NDArray[np.bool_]", flags)), self.score_field: _rounded(scores)}


def _floats(values: Values) -> NDArray[np.float32]:
    return cast("NDArray[np.float32]", values)


def _numbers(values: Values) -> pa.Array:
    return from_numbers(values.astype(np.float64))


def _rounded(values: Values) -> pa.Array:
    return from_numbers(values.astype(np.float64).round(DECIMALS))


def _vectors(rows: NDArray[np.float32]) -> pa.Array:
    bounds = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.Array.from_buffers(
        pa.list_(pa.float64()),
        len(rows),
        [None, pa.py_buffer(bounds.astype(np.int32))],
        children=[_rounded(rows.ravel())],
    )
