"""`Mixture`: what goes into a mixture, and how often. The file `mix.yaml`, checked, and the arithmetic of weights."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, cast

from gristmill.errors import ConfigError, nearest
from gristmill.stages.mixing.mix_documents import Values
from gristmill.stages.mixing.sample_by_bucket import check_weight
from gristmill.stages.text.io.formats import WRITERS, check_format

Weights = Mapping[str, Mapping[str, float]]  # column -> value -> weight

_TARGET = re.compile(r"\s*([\d_,]*\.?\d+(?:e\d+)?)\s*([kmbt]?)\s+(documents|tokens)\s*", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_NAME = re.compile(r"[\w][\w.-]{0,60}")  # of a source, which becomes the name of a directory
_NULL = "none"  # how a missing value is shown


@dataclass(frozen=True)
class Target:
    """How large the output is to be."""

    number: int
    unit: Literal["documents", "tokens"]

    @classmethod
    def parse(cls, text: object) -> "Target":
        """Return a target.

        >>> Target.parse("10B tokens"), Target.parse("2e6 documents")
        (Target(number=10000000000, unit='tokens'), Target(number=2000000, unit='documents'))
        """
        found = _TARGET.fullmatch(str(text))
        number = 0 if found is None else float(re.sub("[_,]", "", found[1])) * _FACTORS[found[2].lower()]
        if found is None or not 1 <= number < math.inf:
            raise ConfigError(f"mix: expected a target like '10B tokens' or '2e6 documents'; got {text!r}")
        return cls(round(number), cast("Literal['documents', 'tokens']", found[3].lower()))

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"


@dataclass(frozen=True)
class MixSource:
    """Documents of one place. `weights` replaces those of the mixture for this source."""

    path: str | Sequence[str]
    format: str = "jsonl"
    weight: float = 1.0
    weights: Weights | None = None


@dataclass(frozen=True)
class Mixture:
    """Which sources, how often each of their documents, and how much in all.

    The weight of a document is the product of its source's weight and those of its values in the columns of `weights`;
    a value without a weight counts 1. Without a `target`, weights are epochs: 2 means twice. With one, only their
    proportions count: all are multiplied so that the output is of that size.
    """

    output: str
    sources: Mapping[str, MixSource]
    weights: Weights = field(default_factory=dict)
    target: Target | None = None
    seed: int = 42
    max_epochs: float = 4.0
    id_field: str = "id"
    token_field: str | None = None

    def __post_init__(self) -> None:
        if self.target is not None and self.target.unit == "tokens" and self.token_field is None:
            raise ConfigError(
                "mix: expected token_field for a target in tokens: the column that says how many a document has; "
                "got none"
            )

    @classmethod
    def parse(cls, given: object, *, output: str | None = None, who: str = "mix") -> "Mixture":
        """Return the mixture that a file describes; `output` takes precedence over what the file says."""
        settings = _settings(given, cls, who)
        settings["output"] = output or settings.get("output")
        sources = _mapping(settings.get("sources"), f"{who}: expected sources by name")
        for required in ("output", "sources"):
            if not settings[required]:
                raise ConfigError(f"{who}: expected {required}; got none")
        settings["sources"] = {str(name): _source(name, own, who) for name, own in sources.items()}
        settings["weights"] = _weights(settings.get("weights"), f"{who}: expected weights")
        if settings.get("target") is not None:
            settings["target"] = Target.parse(settings["target"])
        _check_kinds(settings, {"output": str, "seed": int, "id_field": str, "token_field": str | None}, who)
        if "max_epochs" in settings:
            settings["max_epochs"] = check_weight(settings["max_epochs"], f"{who}: expected max_epochs")
        return cls(**settings)  # type: ignore[arg-type]  # checked above

    def weights_of(self, source: str) -> Weights:
        """The weights of values that count for a source."""
        own = self.sources[source].weights
        return self.weights if own is None else own

    def columns(self, source: str) -> list[str]:
        """The columns that decide in this source."""
        return list(self.weights_of(source))


@dataclass(frozen=True)
class Group:
    """Documents of one source that have the same weight for the same reasons."""

    source: str
    values: Values
    documents: int
    tokens: int
    weight: float = 1.0
    epochs: float = 1.0  # the weight, scaled to the target

    @property
    def label(self) -> str:
        """What it is called in the table: the source and the values."""
        return " ".join([self.source, *(_NULL if value is None else value for value in self.values)])


def weighted(mixture: Mixture, counted: Iterable[Group]) -> list[Group]:
    """Return the groups with their weights, the largest first."""
    groups = [replace(group, weight=_weight(mixture, group)) for group in counted]
    for source in mixture.sources:
        _check_values(mixture, source, groups)
    factor = 1.0
    if mixture.target is not None:
        unit = mixture.target.unit
        there = sum(group.weight * getattr(group, unit) for group in groups)
        if not there:
            raise ConfigError(f"mix: expected {unit} with a weight above 0 for a target of {mixture.target}; got none")
        factor = mixture.target.number / there
    groups = [replace(group, epochs=group.weight * factor) for group in groups]
    return sorted(groups, key=lambda group: (-group.epochs * group.documents, group.label))


def too_often(mixture: Mixture, groups: Iterable[Group]) -> list[str]:
    """Say which documents are repeated more often than is good for training."""
    return [
        f"{group.label}: {group.epochs:.2f} epochs, more than max_epochs ({mixture.max_epochs:g})"
        for group in groups
        if group.documents and group.epochs > mixture.max_epochs
    ]


def _weight(mixture: Mixture, group: Group) -> float:
    weights = mixture.weights_of(group.source)
    named = (
        own.get(value, 1.0) for own, value in zip(weights.values(), group.values, strict=True) if value is not None
    )
    return math.prod([mixture.sources[group.source].weight, *named])


def _check_values(mixture: Mixture, source: str, groups: Iterable[Group]) -> None:
    """Refuse a value that no document has, if some value without a weight looks like the one meant."""
    own = [group for group in groups if group.source == source]
    for place, (column, weights) in enumerate(mixture.weights_of(source).items()):
        there = {value for group in own if (value := group.values[place]) is not None}
        for name in weights:
            hint = nearest(name, sorted(there - set(weights))) if name not in there else ""
            if hint:
                raise ConfigError(
                    f"mix: expected values of {column!r} in weights; no document of {source} has {name!r}{hint}"
                )


# What a file says, checked


def _settings(given: object, kind: type, who: str) -> dict[str, object]:
    """A section of the file as parameters; a key that is not one is refused."""
    known = [each.name for each in fields(kind)]
    settings = {str(key): value for key, value in _mapping(given, f"{who}: expected settings").items()}
    for key in settings:
        if key not in known:
            raise ConfigError(f"{who}: expected one of {known}; got {key!r}{nearest(key, known)}")
    return settings


def _mapping(given: object, expected: str) -> Mapping[object, object]:
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"{expected}; got {given!r:.200}")
    return given or {}


def _source(name: object, given: object, who: str) -> MixSource:
    if _NAME.fullmatch(str(name)) is None:
        raise ConfigError(f"{who}: expected the name of a source to be letters, digits, '-', '_' and '.'; got {name!r}")
    who = f"{who}: source {name}"
    settings = _settings(given, MixSource, who)
    if not settings.get("path"):
        raise ConfigError(f"{who}: expected a path; got none")
    if "format" in settings:
        check_format(str(settings["format"]), WRITERS, who=who, option="format")
    if "weight" in settings:
        settings["weight"] = check_weight(settings["weight"], f"{who}: expected weight")
    if "weights" in settings:
        settings["weights"] = _weights(settings["weights"], f"{who}: expected weights")
    return MixSource(**settings)  # type: ignore[arg-type]  # checked above


def _weights(given: object, expected: str) -> dict[str, dict[str, float]]:
    return {
        str(column): {
            str(value): check_weight(weight, f"{expected} of {column} {value}")
            for value, weight in _mapping(own, f"{expected} of {column} by value").items()
        }
        for column, own in _mapping(given, f"{expected} by column").items()
    }


def _check_kinds(settings: Mapping[str, object], kinds: Mapping[str, object], who: str) -> None:
    for name, kind in kinds.items():
        value = settings.get(name)
        if name in settings and (isinstance(value, bool) or not isinstance(value, kind)):  # type: ignore[arg-type]
            raise ConfigError(f"{who}: expected {name} to be {getattr(kind, '__name__', kind)}; got {value!r}")
