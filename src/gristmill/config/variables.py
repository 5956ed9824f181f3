"""`${name}` in recipes: which names a recipe uses, and their replacement by values.

A text that is nothing but `${name}` becomes the value itself, so numbers stay numbers and lists stay lists; inside a
longer text the value is written out. `$${` stands for a literal `${`.
"""

import re
from collections.abc import Mapping

from gristmill.errors import ConfigError, nearest

SPARE_CHARACTERS = 10_000_000

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")


def names_in(tree: object) -> set[str]:
    """Return the names of all variables used anywhere in a tree of lists and mappings."""
    if isinstance(tree, str):
        return {match[1].strip() for match in _REFERENCE.finditer(tree) if match[1] is not None}
    if isinstance(tree, Mapping):
        return set().union(*(names_in(value) for value in tree.values()))
    if isinstance(tree, list):
        return set().union(*(names_in(value) for value in tree))
    return set()


def substitute(tree: object, values: Mapping[str, object], *, who: str) -> object:
    """Return the tree with every variable replaced."""
    return Substitution(values).substitute(tree, who=who)


class Substitution:
    """The values of a recipe's variables, and how much may still be made of them.

    A long text that is referred to ten thousand times would fill the memory, so what is put in is limited: to ten times
    the values there are, and 10 MB. So a list of a million paths may be used in ten places.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = dict(values)
        self._sizes = {name: _size(value) for name, value in values.items()}
        self._left = SPARE_CHARACTERS + 10 * sum(self._sizes.values())

    def add_defaults(self, defaults: Mapping[str, object], *, who: str) -> None:
        """Add a default for every variable without a value.

        A default may use other variables, as in `cache: ${output}/cache`; what a user gives is taken as it is. A
        default that uses a variable without a value is left out: it is missed only where the recipe uses it.
        """
        waiting = {name: default for name, default in defaults.items() if name not in self._values}
        while ready := [name for name, default in waiting.items() if names_in(default) <= self._values.keys()]:
            for name in ready:
                value = self.substitute(waiting.pop(name), who=f"{who}, variable {name!r}")
                self._values[name], self._sizes[name] = value, _size(value)
        known = self._values.keys() | waiting.keys()
        circle = [name for name, default in waiting.items() if names_in(default) <= known]
        if circle:
            raise ConfigError(
                f"{who}: expected defaults that do not depend on each other; got {', '.join(sorted(circle))}"
            )

    def substitute(self, tree: object, *, who: str) -> object:
        """Return the tree with every variable replaced."""
        if isinstance(tree, str):
            return self._text(tree, who)
        if isinstance(tree, Mapping):
            return {key: self.substitute(value, who=who) for key, value in tree.items()}
        if isinstance(tree, list):
            return [self.substitute(value, who=who) for value in tree]
        return tree

    def _text(self, text: str, who: str) -> object:
        whole = _REFERENCE.fullmatch(text)
        if whole and whole[1] is not None:
            return self._value(whole[1].strip(), who)

        def replace(match: re.Match[str]) -> str:
            return "${" if match[1] is None else str(self._value(match[1].strip(), who))

        return _REFERENCE.sub(replace, text)

    def _value(self, name: str, who: str) -> object:
        value = _look_up(name, self._values, who)
        self._left -= self._sizes[name]
        if self._left < 0:
            raise ConfigError(f"{who}: expected variables to be used less often; ${{{name}}} would make it too large")
        return value


def _size(value: object) -> int:
    """About how many characters a value takes; one that is not text counts as a hundred."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return 100 + sum(_size(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return 100 + sum(map(_size, value))
    return 100


def _look_up(name: str, values: Mapping[str, object], who: str) -> object:
    if name in values:
        return values[name]
    if name in ("input", "output"):  # alike enough to be suggested for each other
        raise ConfigError(f"{who}: expected a value for ${{{name}}}; it is not set (--{name})")
    raise ConfigError(
        f"{who}: expected a value for ${{{name}}}; it is not set (--set {name}=VALUE){nearest(name, values)}"
    )
