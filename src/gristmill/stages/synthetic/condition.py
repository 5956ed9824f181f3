"""`Condition`: which documents a model is asked about, as a recipe says it: `bucketed_results > 11`."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from gristmill.errors import ConfigError

_COMPARE: dict[str, Callable[..., bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_WRITTEN = re.compile(r"\s*([\w.-]+)\s*(<=|>=|==|!=|<|>)\s*(?:(-?\d+(?:\.\d+)?)|(['\"])(.*)\4)\s*")


@dataclass(frozen=True)
class Condition:
    """A column compared with a number or a text. A null satisfies none."""

    field: str
    sign: str
    value: float | str

    def holds(self, value: object) -> bool:
        """Whether a document with this value is meant; a text compared with a number is a mistake of the recipe."""
        if value is None:
            return False
        if isinstance(value, str) is not isinstance(self.value, str):
            kind = "a text" if isinstance(self.value, str) else "a number"
            raise ConfigError(f"where: expected {self.field!r} to hold {kind}; got {value!r:.80}")
        return _COMPARE[self.sign](value, self.value)


def parse_condition(text: str, *, who: str) -> Condition:
    """Return the condition a text states.

    >>> parse_condition("bucketed_results <= 11", who="rewrite").holds(3)
    True
    """
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ConfigError(
            f"{who}: expected where to compare a column with a number or a quoted text, as in "
            f'"bucketed_results > 11" or "quality_level == \'low\'"; got {text!r}'
        )
    return Condition(found[1], found[2], found[5] if found[3] is None else float(found[3]))
