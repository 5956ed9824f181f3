"""`KeepPolicy`: which of several duplicates stays. `worth_of`: what each document is worth to a policy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError, nearest

if TYPE_CHECKING:  # workflows check their policies before they start the fork server, and load the rest while it starts
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from gristmill.tasks import DocumentBatch

# The policies, as a user writes them:
#
#     first                     the one that comes first in the input
#     longest                   the one with the longest text
#     newest:COLUMN             the one with the latest date or largest number in a column
#     highest:COLUMN            the one with the highest score
#     source:COLUMN=a,b,c       the one whose source is named first
#
# Ties go to the lower content hash, then to the lower hash of the id if there is one, then to the earlier in the input.
# So except for `first`, the survivor does not depend on how the input is cut or ordered, if ids tell equal texts apart.

KINDS = ("first", "longest", "newest", "highest", "source")


@dataclass(frozen=True)
class KeepPolicy:
    """A policy taken apart: see the list above."""

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


def compared_columns(text_field: str, id_field: str | None, keep: KeepPolicy) -> list[str]:
    """The columns needed of documents that are compared by their texts."""
    return list(dict.fromkeys([text_field, *([id_field] if id_field else []), *keep.columns]))


_WORST = float("-inf")


def worth_of(batch: "DocumentBatch", lengths: "NDArray[np.int64]", keep: KeepPolicy) -> "NDArray[np.float64]":
    """Return float64[N], greater for better documents. All equal for `first`: order decides."""
    import numpy as np

    from gristmill.kernels.arrow_arrays import is_null

    if keep.kind == "first" or keep.column is None:
        return np.zeros(len(lengths)) if keep.kind == "first" else lengths.astype(np.float64)
    column = batch.column(keep.column)
    if keep.kind == "source":
        places = {name: -float(place) for place, name in enumerate(keep.order)}
        return np.array([places.get(str(value), -float(len(places))) for value in column.to_pylist()], np.float64)
    worth = _as_doubles(column, newest=keep.kind == "newest", who=f"keep {keep.kind}:{keep.column}")
    worth[is_null(column) | np.isnan(worth)] = _WORST
    return worth


def _as_doubles(column: "pa.ChunkedArray", *, newest: bool, who: str) -> "NDArray[np.float64]":
    import numpy as np
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), _WORST)
    try:
        if newest and pa.types.is_string(column.type):
            column = column.cast(pa.timestamp("us"))
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())
        doubles = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{who}: expected numbers{' or dates' * newest}; got {error}") from error
    return np.array(doubles, np.float64)
