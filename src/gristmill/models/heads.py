"""From a model's outputs to columns: labels, probabilities, scores. Numpy in, numpy out.

Labels are taken before a score is rounded. Scores are rounded to six decimals: dividing rows into batches differently
changes the last bits of what torch computes, by 1.5e-7 at most, and the same input has to give the same bytes.

Where a rule follows a model's card, it follows it to the letter, odd edges included: a document that other tools give a
3 gets a 3 here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError

DECIMALS = 6
Columns = dict[str, NDArray[np.generic]]


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return probabilities along the last axis."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return 1 / (1 + e^−x), without overflow on either side."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits.astype(np.float64))))


class Classes(NamedTuple):
    """The likeliest label of each row, and the probabilities of all."""

    labels: NDArray[np.str_]  # [rows]
    probabilities: NDArray[np.float32]  # [rows, labels], rounded


def cls_softmax(logits: NDArray[np.float32], labels: Sequence[str], *, who: str = "model") -> Classes:
    """Return the arg max and the softmax. `labels` are in the order of the outputs (`known_configs.labels`)."""
    if logits.ndim != 2 or logits.shape[1] != len(labels):
        raise ConfigError(f"{who}: expected a label for each of {logits.shape[-1]} outputs; got {len(labels)} labels")
    names = np.array(labels, dtype=np.str_)
    chosen = names[logits.argmax(axis=1)] if len(logits) else names[:0]
    return Classes(chosen, softmax(logits).round(DECIMALS).astype(np.float32))


# Educational quality from 0 to 5, as the cards of FineWeb-Edu and FineMath have it: the integer is rounded half to
# even, the label compares the raw score. So exactly 2.5 is the integer 2 and high quality.
MOST_EDUCATIONAL = 5.0
HIGH_QUALITY_FROM = 2.5


class Graded(NamedTuple):
    """A grade from 0 to 5 for each row."""

    floats: NDArray[np.float32]
    ints: NDArray[np.int64]
    labels: NDArray[np.str_]


def regression(logits: NDArray[np.float32]) -> Graded:
    """Return the clipped score, the integer nearest to it, and high_quality or low_quality."""
    raw = logits.reshape(len(logits), -1)[:, 0].astype(np.float64) if len(logits) else np.empty(0)
    clipped = raw.clip(0, MOST_EDUCATIONAL)
    labels = np.where(raw >= HIGH_QUALITY_FROM, "high_quality", "low_quality")
    return Graded(clipped.round(DECIMALS).astype(np.float32), np.rint(clipped).astype(np.int64), labels)


# Prompts: what is asked for, and how hard it is. Eight heads in this order.
TASK_TYPE = "task_type"
DIMENSIONS = (
    "creativity_scope",
    "reasoning",
    "contextual_knowledge",
    "number_of_few_shots",
    "domain_knowledge",
    "no_label_reason",
    "constraint_ct",
)
COMPLEXITY = {
    "creativity_scope": 0.35,
    "reasoning": 0.25,
    "constraint_ct": 0.15,
    "domain_knowledge": 0.15,
    "contextual_knowledge": 0.05,
    "number_of_few_shots": 0.05,
}
NO_SECOND_TASK, SECOND_TASK_FROM, FEW_SHOTS_FROM = "NA", 0.1, 0.05


@dataclass(frozen=True)
class PromptHeads:
    """What the config says about the eight heads."""

    task_types: tuple[str, ...]
    weights: Mapping[str, tuple[float, ...]]
    divisors: Mapping[str, float]

    @classmethod
    def of(cls, config: Mapping[str, object], *, who: str = "model") -> "PromptHeads":
        """Read task_type_map, weights_map and divisor_map of a config."""
        maps: dict[str, Mapping[str, object]] = {}
        for key in ("task_type_map", "weights_map", "divisor_map"):
            value = config.get(key)
            if not isinstance(value, Mapping):
                raise ConfigError(f"{who}: expected a {key} in config.json; got {value!r}")
            maps[key] = value
        for key in ("weights_map", "divisor_map"):
            lacking = [name for name in DIMENSIONS if name not in maps[key]]
            if lacking:
                raise ConfigError(
                    f"{who}: expected {', '.join(lacking)} in the {key} of config.json; got {[*maps[key]]}"
                )
        named = sorted(maps["task_type_map"].items(), key=lambda pair: int(pair[0]))
        return cls(
            tuple(str(name) for _, name in named),
            {name: tuple(map(float, maps["weights_map"][name])) for name in DIMENSIONS},  # type: ignore[call-overload]
            {name: float(str(maps["divisor_map"][name])) for name in DIMENSIONS},
        )


def multi_head(outputs: Sequence[NDArray[np.float32]], heads: PromptHeads) -> Columns:
    """Return eleven columns: two task types with the probability of the first, seven scores, and the complexity."""
    columns = _task_types(outputs[0], heads.task_types)
    for name, logits in zip(DIMENSIONS, outputs[1:], strict=True):
        weights = np.array(heads.weights[name])
        score = ((softmax(logits) * weights).sum(axis=1) / heads.divisors[name]).round(4)
        if name == "number_of_few_shots":
            score = np.where(score >= FEW_SHOTS_FROM, score, 0.0)
        columns[name] = score
    parts = [weight * columns[name].astype(np.float64) for name, weight in COMPLEXITY.items()]
    return {**columns, "prompt_complexity_score": np.sum(parts, axis=0).round(5)}


def _task_types(logits: NDArray[np.float32], names: Sequence[str]) -> Columns:
    known, rows = np.array(names, dtype=np.str_), np.arange(len(logits))
    probabilities = softmax(logits)
    # Stable, so that of equal ones the first counts, however they are sorted.
    first, second = np.argsort(-probabilities, axis=1, kind="stable")[:, :2].T
    unlikely = probabilities[rows, second].round(3) < SECOND_TASK_FROM
    return {
        "task_type_1": known[first],
        "task_type_2": np.where(unlikely, NO_SECOND_TASK, known[second]),
        "task_type_prob": probabilities[rows, first].round(3),
    }


POISONED_FROM = 0.5


def poison_guard(probability: NDArray[np.float32]) -> Columns:
    """Return whether an instruction looks poisoned, and how likely that is."""
    raw = probability.reshape(len(probability), -1)[:, 0] if len(probability) else np.empty(0, np.float32)
    return {
        "is_poisoned": raw >= POISONED_FROM,
        "instruction_data_guard_poisoning_score": raw.astype(np.float64).round(DECIMALS).astype(np.float32),
    }


# Aegis answers in words: "safe", or "unsafe" and on the next line what is wrong with the text.
SAFE, UNKNOWN = "safe", "unknown"
CATEGORIES = tuple(f"O{number}" for number in range(1, 14))


def aegis_label(answer: str) -> str:
    """Return safe, O1 to O13, or unknown for anything else that was generated."""
    lines = answer.strip().split("\n")
    if lines[0].strip() == SAFE:
        return SAFE
    named = lines[1].strip() if lines[0].strip() == "unsafe" and len(lines) > 1 else ""
    return named if named in CATEGORIES else UNKNOWN
