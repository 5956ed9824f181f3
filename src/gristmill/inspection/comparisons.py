"""What the operators of a condition compute: Arrow's functions on columns, with one meaning for every type of a kind.

Arrays in, arrays out. Numbers that Arrow cannot combine (unsigned with signed, sums that overflow) are computed
as floating point. Division is always of floating point, so dividing by zero gives infinity and stops nothing.
"""

import datetime
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gristmill.inspection.arrow_values import MICROSECONDS, is_true, rows_of, scalar
from gristmill.kernels.arrow_arrays import from_bools

_COMPARISONS = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_EXACT = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_FLOATING = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def compared(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare two columns, or a column with a value."""
    left, right = _as_moments(left), _as_moments(right)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _nulls(left, right)
    try:
        return _COMPARISONS[sign](left, right)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not (_is_number(left) and _is_number(right)):
            raise
        return _COMPARISONS[sign](_floating(left), _floating(right))


def arithmetic(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compute with numbers; whole numbers stay whole unless they are divided or become too large."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _nulls(left, right).cast(pa.uint8()).cast(pa.float64())
    if sign in _EXACT:
        try:
            return _EXACT[sign](left, right)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return _FLOATING[sign](_floating(left), _floating(right))
    above, below = _floating(left), _floating(right)
    quotient = pc.divide(above, below)
    if sign == "/":
        return quotient
    whole = pc.floor(quotient)
    return whole if sign == "//" else pc.subtract(above, pc.multiply(whole, below))


def combined(parts: Sequence[pa.Array], *, all_of: bool) -> pa.Array:
    """`and` or `or` of several, where null is "not known"."""
    return reduce(pc.and_kleene if all_of else pc.or_kleene, [_flags(part) for part in parts])


def opposite(part: pa.Array) -> pa.Array:
    """`not`: null stays null."""
    return pc.invert(_flags(part))


def is_null(part: pa.Array) -> pa.Array:
    """Where there is no value; a number that is not one (NaN) is a value."""
    return pc.is_null(part)


def length(column: pa.Array) -> pa.Array:
    """Characters of texts, bytes of bytes, elements of lists; null of what has no length."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pc.utf8_length(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pc.binary_length(column)
    if _is_list(column.type):
        return pc.list_value_length(column)
    return pa.chunked_array([pa.nulls(len(column), pa.int64())])


def contains(column: pa.Array, wanted: object) -> pa.Array:
    """Texts that hold a text, or lists that hold a value."""
    if _is_list(column.type):
        return _lists_with(column, wanted)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pc.match_substring(column, str(wanted))
    return _nulls(column, column)


def is_one_of(column: pa.Array, wanted: Sequence[object]) -> pa.Array:
    """Where the value is one of some; a null is one of them only if None is named."""
    values = [value for value in wanted if value is not None]
    found = [compared("==", column, scalar(value)) for value in values]
    found += [pc.is_null(column)] if None in wanted else []
    return combined(found, all_of=False) if found else compared("!=", column, column)


def moment(text: str) -> datetime.datetime | None:
    """A date or a time as text, in UTC unless it says otherwise; None if it is neither."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(datetime.UTC).replace(tzinfo=None) if found.tzinfo else found


def _as_moments(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(MICROSECONDS)
    if pa.types.is_timestamp(kind):  # with a time zone the stored number is that of UTC
        return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(MICROSECONDS)
    return values


def _lists_with(column: pa.Array, wanted: object) -> pa.Array:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([_lists_with_in(chunk, wanted) for chunk in chunks], pa.bool_())


def _lists_with_in(chunk: pa.Array, wanted: object) -> pa.Array:
    items, parents = pc.list_flatten(chunk), pc.list_parent_indices(chunk)
    is_text = pa.types.is_string(items.type) or pa.types.is_large_string(items.type)
    if is_text:
        wanted = str(wanted).lower() if isinstance(wanted, bool) else str(wanted)
    elif isinstance(wanted, str):
        return from_bools(np.zeros(len(chunk), np.bool_))
    hits = is_true(compared("==", items, scalar(wanted)))
    found = np.zeros(len(chunk), np.bool_)
    found[rows_of(parents)[hits]] = True
    return from_bools(found)


def _flags(part: pa.Array) -> pa.Array:
    return part.cast(pa.bool_()) if pa.types.is_null(part.type) else part


def _nulls(left: pa.Array, right: pa.Array) -> pa.Array:
    longer = right if isinstance(left, pa.Scalar) else left
    return pa.nulls(1, pa.bool_())[0] if isinstance(longer, pa.Scalar) else pa.nulls(len(longer), pa.bool_())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(values: pa.Array) -> bool:
    kind = values.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _floating(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64(), safe=False)
