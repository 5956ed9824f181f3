"""`${name}` in recipes: which names a recipe uses, and their replacement by values.

A text that is nothing but `${name}` becomes the value itself, so numbers stay numbers and lists stay lists; inside a
longer text the value is written out. `$${` stands for a literal `${`.
"""

import re
from collections.abc import Mapping

from gristmill.errors import ConfigError, nearest

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
    if isinstance(tree, str):
        return _substitute_text(tree, values, who)
    if isinstance(tree, Mapping):
        return {key: substitute(value, values, who=who) for key, value in tree.items()}
    if isinstance(tree, list):
        return [substitute(value, values, who=who) for value in tree]
    return tree


def _substitute_text(text: str, values: Mapping[str, object], who: str) -> object:
    whole = _REFERENCE.fullmatch(text)
    if whole and whole[1] is not None:
        return _look_up(whole[1].strip(), values, who)

    def replace(match: re.Match[str]) -> str:
        return "${" if match[1] is None else str(_look_up(match[1].strip(), values, who))

    return _REFERENCE.sub(replace, text)


def _look_up(name: str, values: Mapping[str, object], who: str) -> object:
    if name in values:
        return values[name]
    if name in ("input", "output"):  # alike enough to be suggested for each other
        raise ConfigError(f"{who}: expected a value for ${{{name}}}; it is not set (--{name})")
    raise ConfigError(
        f"{who}: expected a value for ${{{name}}}; it is not set (--set {name}=VALUE){nearest(name, values)}"
    )
