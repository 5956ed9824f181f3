"""`KeepPolicy`: which of several duplicates stays.

    first                     the one that comes first in the input
    longest                   the one with the longest text
    newest:COLUMN             the one with the latest date or largest number in a column
    highest:COLUMN            the one with the highest score
    source:COLUMN=a,b,c       the one whose source is named first

Ties go to the lower content hash, then to the lower hash of the id if there is one, then to the earlier in the input.
So except for `first`, the survivor does not depend on how the input is cut or ordered, if ids tell equal texts apart.
What a document is worth by a policy is in `document_worth.py`: a workflow is made, and refused, without Arrow.
"""

from dataclasses import dataclass

from gristmill.errors import ConfigError, nearest

KINDS = ("first", "longest", "newest", "highest", "source")


@dataclass(frozen=True)
class KeepPolicy:
    """A policy taken apart: see the module."""

    kind: str = "first"
    column: str | None = None
    order: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, who: str) -> "KeepPolicy":
        """Return the policy a text stands for."""
        kind, _, rest = text.partition(":")
        if kind not in KINDS:
            raise ConfigError(f"{who}: expected keep to be one of {KINDS}; got {text!r}{nearest(kind, KINDS)}")
        column, _, order = rest.partition("=")
        if (kind in ("first", "longest")) == bool(column) or (kind == "source") != bool(order):
            form = {"source": "source:COLUMN=first,second"}.get(kind, f"{kind}:COLUMN")
            expected = kind if kind in ("first", "longest") else form
            raise ConfigError(f"{who}: expected keep to read {expected!r}; got {text!r}")
        return cls(kind, column or None, tuple(order.split(",")) if order else ())

    @property
    def columns(self) -> list[str]:
        """The columns it looks at beside the text."""
        return [] if self.column is None else [self.column]
