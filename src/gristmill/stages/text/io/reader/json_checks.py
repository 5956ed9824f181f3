"""Sort the lines of a block into documents, blank lines and lines that are none.

The fast path is one call over the whole block. It is exact: if every line begins with `{` and ends with `}`, no JSON
value can span two lines (what follows a `}` inside a value never is `{`), so as many values as lines means one each.
"""

from typing import cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.io.line_blocks import Block
from gristmill.tasks.json_lines import FieldTexts, FoundField, JsonLines, field_decoder, split_object


class _AnyObject(msgspec.Struct, gc=False):
    """An object whose fields are checked and skipped."""


_decoder = msgspec.json.Decoder(_AnyObject)
# Checking a line and finding one field in it cost the same, so the field most pipelines want is found on the way.
_LIKELY = "text"
_likely_decoder = cast("msgspec.json.Decoder[FoundField]", field_decoder(_LIKELY))
_MIN_KEPT_BYTES = 256
_REFUSED = (msgspec.DecodeError, RecursionError)
_MAX_KEPT_CHARS = 1_000_000  # of a broken line; it may be a whole file without newlines


class BadLine(msgspec.Struct, frozen=True):
    """A line that is not a document. `number` counts from 1, blank lines included."""

    number: int
    kind: str
    error: str
    text: str


def check_lines(block: Block, bounds: NDArray[np.int64]) -> tuple[JsonLines, list[BadLine]]:
    """Return the documents of a block, and what is wrong with the other lines."""
    buffers = [None, pa.py_buffer(bounds), to_buffer(block)]
    values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
    decodes = holds_utf8(block)
    found = _plain_objects(block, bounds) if decodes else None
    if found is not None:
        # Many short lines are not worth an object each.
        is_worth = len(values) * _MIN_KEPT_BYTES <= len(block)
        return JsonLines(values, ahead=FieldTexts(_LIKELY, [f.value for f in found]) if is_worth else None), []
    keep = np.ones(len(values), bool)
    bad: list[BadLine] = []
    view = memoryview(block)
    starts = bounds.tolist()
    for i in range(len(values)):
        line = view[starts[i] : starts[i + 1]]
        if decodes and _is_object(line):
            continue
        problem = _problem(bytes(line))
        keep[i] = problem is None
        if problem is not None and problem[0] != "blank":
            text = bytes(line[:_MAX_KEPT_CHARS]).decode("utf-8", "replace").rstrip("\r\n")
            bad.append(BadLine(i + 1, *problem, text))
    return JsonLines(values if keep.all() else values.filter(pa.array(keep))), bad


def to_buffer(block: Block) -> pa.Buffer:
    """Return a block as Arrow's buffer, sharing its memory."""
    return block if isinstance(block, pa.Buffer) else pa.py_buffer(block)


def holds_utf8(block: Block) -> bool:
    """One check for all lines: a newline is never part of another character."""
    bounds = np.array([0, len(block)], np.int64)
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(bounds), to_buffer(block)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _plain_objects(block: Block, bounds: NDArray[np.int64]) -> list[FoundField] | None:
    """Check all lines at once; return what is found of the field that is likely to be asked for first."""
    data = np.frombuffer(block, np.uint8)
    if (data[bounds[:-1]] != ord("{")).any() or (data[bounds[1:] - 2] != ord("}")).any():
        return None
    try:
        found = _likely_decoder.decode_lines(block)
    except _REFUSED:
        return None
    return found if len(found) == len(bounds) - 1 else None


def _is_object(line: memoryview) -> bool:
    try:
        _decoder.decode(line)
    except _REFUSED:
        return False
    return True


def _problem(line: bytes) -> tuple[str, str] | None:
    """Return kind and message, or None if Python's json takes the line for an object."""
    if not line.strip(b" \t\r\n"):
        return "blank", ""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return "bad_utf8", f"expected UTF-8; got {error.reason} at byte {error.start}"
    try:
        split_object(text)
    except RecursionError:
        return "broken_json", "expected JSON; got values nested too deeply"
    except ValueError as error:
        if text.lstrip(" \t\r\n").startswith("{"):
            return "broken_json", f"expected JSON; got {error}"
        return _not_an_object(text)
    return None


def _not_an_object(text: str) -> tuple[str, str]:
    try:
        value = msgspec.json.decode(text)
    except _REFUSED as error:
        return "broken_json", f"expected JSON; got {error}"
    return "not_an_object", f"expected an object; got {type(value).__name__}"
