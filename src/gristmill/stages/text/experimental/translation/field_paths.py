"""Paths to texts inside of a document: `text`, `messages.*.content`, `meta.title`.

The first part of a path names a column; each further part is a key of an object, a number of an element, or `*` for all
of them. Texts are collected in one order and put back in the same order, so nothing about a place has to be kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gristmill.errors import ConfigError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class FieldPath:
    """A column, and the way from its value to the texts in it."""

    text: str
    column: str
    steps: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the column holds the text itself."""
        return not self.steps

    @property
    def has_many(self) -> bool:
        """Whether it may lead to more than one text."""
        return "*" in self.steps

    def texts(self, value: Json) -> list[str]:
        """Return the texts the path leads to; what is not a text is passed over."""
        return list(_collect(value, self.steps))

    def replaced(self, value: Json, texts: list[str]) -> Json:
        """Return a copy of a value with other texts in their places, in the order `texts` gave them."""
        left = iter(texts)
        new = _replace(value, self.steps, left)
        if next(left, None) is not None:
            raise ValueError(f"{self.text}: expected as many texts as there are places; got more")
        return new


def parse_path(text: str | None, *, who: str) -> FieldPath:
    """Return what a path means.

    >>> parse_path("messages.*.content", who="doc").steps
    ('*', 'content')
    """
    parts = str(text).split(".")
    if text is None or not all(parts) or parts[0] == "*":
        raise ConfigError(
            f"{who}: expected the name of a column, or a path into one such as 'messages.*.content'; got {text!r}"
        )
    return FieldPath(text, parts[0], tuple(parts[1:]))


def _children(value: Json, step: str) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, dict):
        yield from value.items() if step == "*" else [(step, value[step])] if step in value else []
    elif isinstance(value, list):
        if step == "*":
            yield from enumerate(value)
        elif step.isdecimal() and int(step) < len(value):
            yield int(step), value[int(step)]


def _collect(value: Json, steps: tuple[str, ...]) -> Iterator[str]:
    if not steps:
        if isinstance(value, str):
            yield value
        return
    for _, child in _children(value, steps[0]):
        yield from _collect(child, steps[1:])


def _replace(value: Json, steps: tuple[str, ...], texts: Iterator[str]) -> Json:
    if not steps:
        return next(texts) if isinstance(value, str) else value
    replaced = [(key, _replace(child, steps[1:], texts)) for key, child in _children(value, steps[0])]
    if isinstance(value, dict):
        return {**value, **{str(key): child for key, child in replaced}}
    if isinstance(value, list):
        new = list(value)
        for key, child in replaced:
            new[int(key)] = child
        return new
    return value
