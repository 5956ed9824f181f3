"""JSON lines at the speed of reading them: whether every line is one object, and where the values of some fields are.

It accepts the part of JSON that programs write: no escapes in the names of a line's own fields, at most `MOST_LEVELS`
levels. A line it refuses may still be valid JSON: the caller then asks a slower parser.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import block_at, range_bits
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.layout import BLOCK, TOO_MANY
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import Bytes, count_trailing_zeros

MOST_LEVELS = 60
_BAD = -1


@inline
def _is_digit(byte: int) -> bool:
    return 0x30 <= byte <= 0x39


@inline
def _is_hex(byte: int) -> bool:
    return _is_digit(byte) or 0x41 <= byte <= 0x46 or 0x61 <= byte <= 0x66


@inline
def _skip_space(data: Bytes, position: int, stop: int) -> int:
    """Return where the next byte that is neither space nor tab is: a line break within an object ends its line."""
    while position < stop and (data[position] == 0x20 or data[position] == 0x09):
        position += 1
    return position


@part
def _skip_escape(data: Bytes, position: int, stop: int) -> int:
    r"""Return where the escape that begins here ends, or -1. `stop` is after the newline that ends the line."""
    kind = data[position + 1] if position + 1 < stop else 0
    if kind == 0x75:
        if position + 6 > stop:
            return _BAD
        for k in range(2, 6):
            if not _is_hex(data[position + k]):
                return _BAD
        return position + 6
    for known in (0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74):
        if kind == known:
            return position + 2
    return _BAD


@inline
def _skip_string(data: Bytes, position: int, stop: int) -> int:
    """Return the place after the quote that ends the string whose first character is here, or -1."""
    while position < stop:
        block = block_at(position, stop)
        special = range_bits(data, block, 0x22, 1) | range_bits(data, block, 0x5C, 1) | range_bits(data, block, 0, 0x20)
        if not special:
            position += BLOCK
            continue
        position += count_trailing_zeros(special)
        if data[position] == 0x22:
            return position + 1
        if data[position] != 0x5C:
            return _BAD
        position = _skip_escape(data, position, stop)
        if position < 0:
            return _BAD
    return _BAD


@part
def _skip_digits(data: Bytes, position: int, stop: int) -> int:
    """Return the place after one digit or more, or -1."""
    start = position
    while position < stop and _is_digit(data[position]):
        position += 1
    return position if position > start else _BAD


@part
def _skip_number(data: Bytes, position: int, stop: int) -> int:
    """Return the place after a number, or -1."""
    if data[position] == 0x2D:
        position += 1
    first = position
    position = _skip_digits(data, position, stop)
    if position < 0 or (data[first] == 0x30 and position > first + 1):
        return _BAD
    if position < stop and data[position] == 0x2E:
        position = _skip_digits(data, position + 1, stop)
        if position < 0:
            return _BAD
    if position < stop and (data[position] | 0x20) == 0x65:
        position += 1
        if position < stop and (data[position] == 0x2B or data[position] == 0x2D):
            position += 1
        position = _skip_digits(data, position, stop)
    return position


@part
def _skip_word(data: Bytes, position: int, stop: int) -> int:
    """Return the place after true, false or null, or -1."""
    if position + 4 < stop and data[position + 3] == (0x65 if data[position] == 0x74 else 0x6C):
        if data[position] == 0x74 and data[position + 1] == 0x72 and data[position + 2] == 0x75:
            return position + 4
        if data[position] == 0x6E and data[position + 1] == 0x75 and data[position + 2] == 0x6C:
            return position + 4
    is_false = position + 5 < stop and data[position] == 0x66 and data[position + 1] == 0x61
    if is_false and data[position + 2] == 0x6C and data[position + 3] == 0x73 and data[position + 4] == 0x65:
        return position + 5
    return _BAD


@inline
def _skip_scalar(data: Bytes, position: int, stop: int) -> int:
    """Return the place after a value that is neither object nor array, or -1."""
    byte = data[position]
    if byte == 0x22:
        return _skip_string(data, position + 1, stop)
    if byte == 0x2D or _is_digit(byte):
        return _skip_number(data, position, stop)
    return _skip_word(data, position, stop)


@inline
def _skip_name(data: Bytes, position: int, stop: int) -> int:
    """Return where the value of the field whose name begins here begins, or -1."""
    if position >= stop or data[position] != 0x22:
        return _BAD
    position = _skip_string(data, position + 1, stop)
    if position < 0:
        return _BAD
    position = _skip_space(data, position, stop)
    return _skip_space(data, position + 1, stop) if position < stop and data[position] == 0x3A else _BAD


@part
def _skip_nested(data: Bytes, position: int, stop: int) -> int:
    """Return the place after the object or array that begins here, or -1. A bit per level says which of the two."""
    objects, level = np.uint64(0), 0
    while position < stop:
        byte = data[position]
        opens = byte == 0x7B or byte == 0x5B
        if opens:
            level += 1
            objects = objects << np.uint64(1) | np.uint64(byte == 0x7B)
            if level > MOST_LEVELS:
                return _BAD
            position = _skip_space(data, position + 1, stop)
            closes = position < stop and data[position] == (0x7D if byte == 0x7B else 0x5D)
        else:
            position = _skip_scalar(data, position, stop)
            if position < 0:
                return _BAD
            closes = False
        if opens and not closes:
            if objects & np.uint64(1):
                position = _skip_name(data, position, stop)
                if position < 0:
                    return _BAD
            continue
        while True:  # after a value, or at the end of an empty object or array
            if not closes:
                position = _skip_space(data, position, stop)
                if position >= stop:
                    return _BAD
                closes = data[position] == (0x7D if objects & np.uint64(1) else 0x5D)
            if not closes:
                break
            position, closes = position + 1, False
            level -= 1
            objects >>= np.uint64(1)
            if level == 0:
                return position
        if data[position] != 0x2C:
            return _BAD
        position = _skip_space(data, position + 1, stop)
        if objects & np.uint64(1):
            position = _skip_name(data, position, stop)
            if position < 0:
                return _BAD
    return _BAD


@inline
def _which(data: Bytes, start: int, stop: int, names: Bytes, bounds: NDArray[np.int64], wanted: int) -> int:
    """Return which of the wanted names stands here, -1 if none of them, -2 if escapes hide it."""
    found = -1
    for n in range(wanted):
        if bounds[n + 1] - bounds[n] == stop - start:
            same = True
            for k in range(stop - start):
                same &= data[start + k] == names[bounds[n] + k]
            found = n if same else found
    if found < 0:
        for k in range(start, stop):
            if data[k] == 0x5C:
                return -2
    return found


@inline
def _scan_object(
    data: Bytes,
    position: int,
    stop: int,
    names: Bytes,
    name_bounds: NDArray[np.int64],
    wanted: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    line: int,
    step: int,
) -> int:
    """Return the place after the object that begins here, or -1; write where name n is to element n * step + line."""
    position = _skip_space(data, position + 1, stop)
    if position < stop and data[position] == 0x7D:
        return position + 1
    while True:
        name = position + 1
        position = _skip_name(data, position, stop)
        if position < 0 or position >= stop:
            return _BAD
        close = name
        while data[close] != 0x22:  # a name with escapes is refused, wherever it seems to end
            close += 1
        found = _which(data, name, close, names, name_bounds, wanted)
        if found == -2:
            return _BAD
        value = position
        is_nested = data[position] == 0x7B or data[position] == 0x5B
        position = _skip_nested(data, position, stop) if is_nested else _skip_scalar(data, position, stop)
        if position < 0:
            return _BAD
        if found >= 0:
            starts[found * step + line], stops[found * step + line] = value, position
        position = _skip_space(data, position, stop)
        if position >= stop or (data[position] != 0x2C and data[position] != 0x7D):
            return _BAD
        if data[position] == 0x7D:
            return position + 1
        position = _skip_space(data, position + 1, stop)


@sized(
    data=lambda stop: stop,
    name_bounds=lambda wanted: wanted + 1,
    names=lambda name_bounds, wanted: name_bounds[wanted],
    bounds=lambda most_lines: most_lines + 1,
    starts=lambda wanted, most_lines: wanted * most_lines,
    stops=lambda wanted, most_lines: wanted * most_lines,
)
def scan_objects(
    data: Bytes,
    stop: int,
    names: Bytes,
    name_bounds: NDArray[np.int64],
    wanted: int,
    most_lines: int,
    bounds: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> int:
    """Return how many lines data[:stop] has if each is one object, -1 if that cannot be told, -2 if there are more.

    data         [...]              at least 64 bytes; the last one before `stop` is a newline
    names        [...]              wanted names without escapes: name n is names[name_bounds[n]:name_bounds[n + 1]]
    bounds       [most_lines + 1]   where each line begins, and where the last one ends
    starts       [wanted * most_lines]   where each wanted value begins, name by name; where a line has it twice, the
    stops        [wanted * most_lines]   last one; both 0 where it has none
    """
    position, line = 0, 0
    bounds[0] = 0
    while position < stop:
        if line == most_lines:
            return TOO_MANY
        if data[position] != 0x7B:
            return _BAD
        for n in range(wanted):
            starts[n * most_lines + line] = stops[n * most_lines + line] = 0
        position = _scan_object(data, position, stop, names, name_bounds, wanted, starts, stops, line, most_lines)
        if position < 0:
            return _BAD
        if position < stop and data[position] == 0x0D:
            position += 1
        if position >= stop or data[position] != 0x0A:
            return _BAD
        position += 1
        line += 1
        bounds[line] = position
    return line
