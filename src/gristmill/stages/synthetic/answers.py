"""What a model said, as a value: `int:0-5`, `json:FIELD` or `regex:PATTERN`.

Models wrap a number in prose, in Markdown and in code fences. A parser here takes the value where it is clear which one
is meant, and gives None where it is not: a wrong label in training data costs more than a missing one.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from gristmill.errors import ConfigError, nearest

Value = int | float | str
Kind = Literal["int", "float", "text"]
KINDS: tuple[Kind, ...] = ("int", "float", "text")
PARSERS = ("int", "json", "regex")
_ARROW = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}

_RANGE = re.compile(r"(-?\d+)-(-?\d+)")
_NUMBER = re.compile(r"(?<![\d.,])-?\d+(?:[.,]\d+)*")
_NAMED = re.compile(r"(?i)\b(?:score|rating|grade)\b[^\d\n-]{0,20}(-?\d+(?:[.,]\d+)*)")


@dataclass(frozen=True)
class AnswerParser:
    """One way to read a value out of an answer."""

    spec: str
    kind: Kind
    read: Callable[[str], Value | None]

    def __call__(self, answer: str) -> Value | None:
        """Return the value, or None if the answer does not hold exactly one that fits."""
        return self.read(answer)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column, whatever the answers of a batch happen to be."""
        return _ARROW[self.kind]


def answer_parser(spec: str, kind: Kind | None = None, *, who: str) -> AnswerParser:
    """Return the parser a specification names; `kind` is the type of its values, if not the usual one."""
    name, colon, rest = spec.partition(":")
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"{who}: expected as_type to be one of {KINDS}; got {kind!r}{nearest(str(kind), KINDS)}")
    if name == "int" and colon:
        if kind not in (None, "int"):
            raise ConfigError(f"{who}: expected as_type 'int' with parse={spec!r}; got {kind!r}")
        return AnswerParser(spec, "int", _int_reader(rest, spec, who))
    if name == "json" and rest.strip():
        return AnswerParser(spec, kind or "float", _converted(_field_reader(rest.strip()), kind or "float"))
    if name == "regex" and rest:
        return AnswerParser(spec, kind or "text", _converted(_pattern_reader(rest, who), kind or "text"))
    raise ConfigError(
        f"{who}: expected parse to be 'int:LOW-HIGH', 'json:FIELD' or 'regex:PATTERN'; "
        f"got {spec!r}{nearest(name, PARSERS)}"
    )


def _int_reader(rest: str, spec: str, who: str) -> Callable[[str], int | None]:
    bounds = _RANGE.fullmatch(rest.strip())
    if bounds is None or int(bounds[1]) > int(bounds[2]):
        raise ConfigError(f"{who}: expected parse to name a range, as in 'int:0-5'; got {spec!r}")
    low, high = int(bounds[1]), int(bounds[2])
    # "on a scale of 0 to 5" and "4 out of 5" name the ends of the scale, not a score.
    scale = re.compile(
        rf"(?<!\d){low}\s*(?:-|–|to|and|\.\.)\s*{high}(?!\d)|(?:/|\bout of)\s*{high}(?!\d)", re.IGNORECASE
    )

    def read(answer: str) -> int | None:
        meant = set(_numbers_meant(scale.sub(" ", answer)))
        number = _whole(meant.pop()) if len(meant) == 1 else None
        return number if number is not None and low <= number <= high else None

    return read


def _numbers_meant(answer: str) -> list[str]:
    """The numbers an answer may mean: those after the word "score" if there are any, else all of them."""
    plain = re.sub(r"[*_`]", "", answer)
    return _NAMED.findall(plain) or _NUMBER.findall(plain)


def _whole(number: str) -> int | None:
    """A number written as an integer, or as one with zeros after the point."""
    head, _, tail = number.replace(",", ".").partition(".")
    return int(head) if not tail.strip("0") and len(head) < 20 else None


def _field_reader(path: str) -> Callable[[str], object]:
    def read(answer: str) -> object:
        for found in json_objects(answer):
            value: object = found
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                return value
        return None

    return read


def json_objects(answer: str) -> Iterator[dict[str, object]]:
    """Yield the JSON objects in an answer, outermost ones, whatever stands around them."""
    decoder = json.JSONDecoder()
    position = answer.find("{")
    tried = 0
    while position >= 0 and tried < 1000:  # an answer of a hundred thousand braces must not take minutes
        tried += 1
        try:
            found, position = decoder.raw_decode(answer, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            if isinstance(found, dict):
                yield found
        position = answer.find("{", position)


def _pattern_reader(pattern: str, who: str) -> Callable[[str], object]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{who}: expected a regular expression; got {pattern!r}: {error}") from None

    def read(answer: str) -> object:
        found = compiled.search(answer)
        if found is None:
            return None
        return found[1] if compiled.groups else found[0]

    return read


def _converted(read: Callable[[str], object], kind: Kind) -> Callable[[str], Value | None]:
    return lambda answer: _as_kind(read(answer), kind)


def _as_kind(value: object, kind: Kind) -> Value | None:
    """A value as the column wants it, or None: true is not a number, and NaN is not a score."""
    if isinstance(value, bool) or value is None:
        return None
    if kind == "text":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or (kind == "int" and not (number.is_integer() and abs(number) < 2**63)):
        return None
    return int(number) if kind == "int" else number
