"""What a template or a link becomes when it closes: nothing, a part of it, or a text made of its arguments.

Everything between the braces or brackets is in the result by then, already cleaned. So closing is cutting the result
back to where it began, and moving forward what stays.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.inline import part
from gristmill.kernels.text.wikitext_names import before_spaces, copy_span, find_name, is_space, skip_spaces
from gristmill.kernels.text.words_of_bytes import Bytes

Longs = NDArray[np.int64]

_LONGEST_PARAMETER = 24  # bytes of the name before = of an argument
_COLON, _EQUALS, _PIPE, _HYPHEN = 0x3A, 0x3D, 0x7C, 0x2D


@part
def _text_of_argument(out: Bytes, start: int, stop: int) -> tuple[int, int, int]:
    """The number of an argument if it has one of its own, 0 if it has none, -1 if it has a name; and its text."""
    position = skip_spaces(out, start, stop)
    number = 0
    first = position
    while position < stop and position - first < _LONGEST_PARAMETER:
        byte = np.int64(out[position])
        if byte == _EQUALS:
            end = before_spaces(out, first, position)
            is_number = end - first == 1 and 0x31 <= out[first] <= 0x39
            number = np.int64(out[first]) - 0x30 if is_number else -1
            start = position + 1
            break
        is_letter = 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A
        if not (is_letter or byte == 0x20 or byte == 0x5F or byte == _HYPHEN):
            break
        position += 1
    start = skip_spaces(out, start, stop)
    return number, start, before_spaces(out, start, stop)


@part
def _arguments(out: Bytes, at: int, stack: Longs, entry: int, spans: Longs) -> int:
    """Write where the first nine arguments without a name are to `spans`; return how many there are.

    spans  [2 * 10]  argument k is from spans[2 * k] to spans[2 * k + 1]; both are 0 if it is missing
    """
    for k in range(2 * lay.MOST_SPANS):
        spans[k] = 0
    pipes = min(stack[entry + lay.MARK], lay.MOST_ARGUMENTS)
    counted = most = 0
    for k in range(pipes):
        start = min(stack[entry + 5 + k], at)
        stop = max(start, min(stack[entry + 6 + k] - 1, at)) if k + 1 < pipes else at
        number, low, high = _text_of_argument(out, start, stop)
        if number == 0:
            counted += 1
            number = counted
        if 0 < number < lay.MOST_SPANS:
            spans[2 * number], spans[2 * number + 1] = low, high
            most = max(most, number)
    return most


@part
def _fill_in(
    out: Bytes, at: int, form: int, length: int, keys: Bytes, spans: Longs, most: int, start: int, room: int
) -> int:
    """Write the text of a known template from `start` on; return where it ends. `room` is free space after `at`."""
    end = room
    for k in range(length):
        byte = np.int64(keys[form + k])
        if byte == lay.ALL_ARGUMENTS or byte == lay.LISTED_ARGUMENTS:
            for number in range(1, most + 1):
                if number > 1 and byte == lay.LISTED_ARGUMENTS:
                    out[end], out[end + 1] = 0x2C, 0x20
                    end += 2
                end = copy_span(out, spans[2 * number], spans[2 * number + 1], out, end)
        elif byte == lay.LAST_ARGUMENT:
            end = copy_span(out, spans[2 * most], spans[2 * most + 1], out, end)
        elif 0 < byte < lay.MOST_SPANS:
            end = copy_span(out, spans[2 * byte], spans[2 * byte + 1], out, end)
        else:
            out[end] = byte
            end += 1
    return copy_span(out, room, end, out, start)


@part
def close_template(
    out: Bytes, at: int, start: int, stack: Longs, entry: int, slots: Longs, num_slots: int, keys: Bytes, spans: Longs
) -> int:
    """Replace a template, whose two braces are at `start`, by what its readers see of it; return the end."""
    low = start + 2
    high = min(stack[entry + 5] - 1, at) if stack[entry + lay.MARK] else at
    low = skip_spaces(out, low, high)
    high = before_spaces(out, low, high)
    slot = find_name(out, low, high, lay.OF_TEMPLATE, slots, num_slots, keys)
    if slot < 0:
        colon = low
        while colon < high and colon - low < lay.LONGEST_NAME and out[colon] != _COLON and out[colon] != _HYPHEN:
            colon += 1
        if colon < high and out[colon] == _HYPHEN:
            slot = find_name(out, low, colon + 1, lay.OF_TEMPLATE, slots, num_slots, keys)
        elif colon < high and out[colon] == _COLON:
            slot = find_name(out, low, colon, lay.OF_FUNCTION, slots, num_slots, keys)
            if slot >= 0:
                begin = skip_spaces(out, colon + 1, high)
                return copy_span(out, begin, high, out, start)
        if slot < 0:
            return start
    most = _arguments(out, at, stack, entry, spans)
    # After all that is written so far: arguments overlap the place they go to.
    room = at + 8
    return _fill_in(out, at, slots[slot + lay.VALUE], slots[slot + lay.VALUE_LENGTH], keys, spans, most, start, room)


@part
def close_parameter(out: Bytes, at: int, start: int, stack: Longs, entry: int) -> int:
    """Replace a parameter, whose three braces are at `start`, by its default; return the end."""
    if not stack[entry + lay.MARK]:
        return start
    begin = min(stack[entry + 5], at)
    end = max(begin, min(stack[entry + 6] - 1, at)) if stack[entry + lay.MARK] > 1 else at
    return copy_span(out, begin, end, out, start)


@part
def _prefix_end(out: Bytes, start: int, stop: int) -> int:
    """Where the colon after the prefix of a link's target is, `stop` if there is none."""
    most = min(stop, start + lay.LONGEST_NAME)
    while start < most:
        if out[start] == _COLON:
            return start
        start += 1
    return stop


@part
def close_link(out: Bytes, at: int, start: int, mark: int, slots: Longs, num_slots: int, keys: Bytes) -> int:
    """Replace a link, whose two brackets are at `start`, by the text readers see; return the end."""
    high = mark - 1 if mark else at
    low = skip_spaces(out, start + 2, high)
    shown = low < high and out[low] == _COLON
    if shown:
        low = skip_spaces(out, low + 1, high)
    else:
        colon = _prefix_end(out, low, high)
        if colon < high:
            slot = find_name(out, low, before_spaces(out, low, colon), lay.OF_NAMESPACE, slots, num_slots, keys)
            if slot >= 0:
                return start
    if not mark:
        return copy_span(out, low, before_spaces(out, low, high), out, start)
    if skip_spaces(out, mark, at) == at:
        return copy_span(out, low, before_spaces(out, low, high), out, start)
    return copy_span(out, mark, at, out, start)


@part
def close_empty_brackets(out: Bytes, floor: int, at: int, dropped_at: int) -> int:
    """Where the result ends without the round bracket that holds nothing but what was dropped; -1 if it holds more."""
    position = at
    while position > floor and (is_space(out[position - 1]) or out[position - 1] == 0x2C or out[position - 1] == 0x3B):
        position -= 1
    if position <= floor or out[position - 1] != 0x28 or dropped_at < position:
        return -1
    position -= 1
    return position - 1 if position > floor and out[position - 1] == 0x20 else position
