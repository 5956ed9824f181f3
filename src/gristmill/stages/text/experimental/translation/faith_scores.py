"""FAITH: five marks a model gives a translation, read out of its answer.

Fluency, accuracy, idiomaticity, terminology and handling of format, 1 to 5 each; 0 says that a mark does not apply. The
average is of those that do. An answer that cannot be read says nothing about the translation, so it never costs a
document: the row is kept and marked.
"""

import math
from dataclasses import dataclass

from gristmill.stages.synthetic.answers import json_objects

FAITH_KEYS = ("Fluency", "Accuracy", "Idiomaticity", "Terminology", "Handling_of_Format")
FAITH_COLUMNS = tuple(f"faith_{key.lower()}" for key in FAITH_KEYS)
HIGHEST = 5.0


@dataclass(frozen=True)
class FaithScores:
    """The marks of one translation in the order of `FAITH_KEYS`; none, if it was not scored or could not be read."""

    marks: tuple[float, ...] | None = None
    parse_failed: bool = False

    @property
    def average(self) -> float | None:
        """The mean of the marks that apply."""
        given = [mark for mark in self.marks or () if mark > 0]
        return round(sum(given) / len(given), 6) if given else None

    def passes(self, threshold: float) -> bool:
        """Whether the translation is kept: it is good enough, or not known to be bad."""
        average = self.average
        return average is None or average >= threshold

    def as_object(self) -> dict[str, float | None]:
        """The marks by name, with their average."""
        marks = self.marks or (None,) * len(FAITH_KEYS)
        return {**dict(zip(FAITH_KEYS, marks, strict=True)), "average": self.average}


def parse_faith(answer: str) -> FaithScores:
    """Read the marks out of an answer; names may differ in case, spaces and hyphens.

    >>> parse_faith('{"Fluency": 4, "Accuracy": 5}').average
    4.5
    """
    for found in json_objects(answer):
        for candidate in (found, *(value for value in found.values() if isinstance(value, dict))):
            marks = _marks(candidate)
            if marks is not None:
                return FaithScores(marks)
    return FaithScores(parse_failed=True)


def _marks(found: dict[str, object]) -> tuple[float, ...] | None:
    named = {_plain(key): value for key, value in found.items()}
    if not any(_plain(key) in named for key in FAITH_KEYS):
        return None
    marks = [_mark(named.get(_plain(key), 0)) for key in FAITH_KEYS]
    given = tuple(mark for mark in marks if mark is not None)
    return given if len(given) == len(marks) else None


def _plain(key: str) -> str:
    return "".join(filter(str.isalpha, key)).lower()


def _mark(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        mark = float(value)
    except ValueError:
        return None
    return mark if math.isfinite(mark) and 0 <= mark <= HIGHEST else None
