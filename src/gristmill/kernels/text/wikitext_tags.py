"""Tags and comments in wikitext: how long they are, where they end, and what stands between them word for word."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.inline import part
from gristmill.kernels.text.wikitext_names import (
    before_spaces,
    copy_span,
    find_name,
    is_space,
    lower,
    skip_spaces,
    write_entity,
)
from gristmill.kernels.text.wikitext_stack import after_drop, cut_back, floor, push, top_kind, write_newline
from gristmill.kernels.text.words_of_bytes import Bytes, find_byte

Longs = NDArray[np.int64]

_LONGEST_TAG = 4000  # bytes between < and >
_LESS, _GREATER, _SLASH, _DOLLAR, _NEWLINE = 0x3C, 0x3E, 0x2F, 0x24, 0x0A
_SPACE, _HYPHEN, _PLUS = 0x20, 0x2D, 0x2B
_ONE = np.int64(1)


@part
def name_end(data: Bytes, start: int, stop: int) -> int:
    """Where the name of a tag that begins here ends."""
    while start < stop:
        byte = lower(data[start])
        if not (0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39 or byte == 0x2D):
            break
        start += 1
    return start


@part
def tag_end(data: Bytes, start: int, stop: int) -> int:
    """Where the > of the tag whose name ends at `start` is; -1 if another tag begins first, or nothing ends it."""
    most = min(stop, start + _LONGEST_TAG)
    while start < most:
        byte = data[start]
        if byte == _GREATER:
            return start
        if byte == _LESS:
            return -1
        start += 1
    return -1


@part
def find_closing(data: Bytes, name: int, name_stop: int, start: int, stop: int) -> int:
    """Where the closing tag of this name begins from `start` on, -1 if there is none."""
    length = name_stop - name
    while True:
        start = find_byte(data, start, stop, _LESS)
        if start + 2 + length > stop:
            return -1
        if data[start + 1] == _SLASH:
            same = True
            for k in range(length):
                if lower(data[start + 2 + k]) != lower(data[name + k]):
                    same = False
                    break
            behind = start + 2 + length
            if same and behind < stop and (data[behind] == _GREATER or is_space(data[behind])):
                return start
        start += 1


@part
def comment_end(data: Bytes, start: int, stop: int) -> int:
    """Where the comment whose content begins here ends, after its mark; one that never ends takes everything."""
    while start < stop:
        start = find_byte(data, start, stop, _GREATER)
        if start < stop and data[start - 1] == 0x2D and data[start - 2] == 0x2D:
            return start + 1
        start += 1
    return stop


@part
def write_math(
    data: Bytes, tag: int, tag_stop: int, start: int, stop: int, kind: int, out: Bytes, at: int,
    slots: Longs, num_slots: int, keys: Bytes,
) -> int:  # fmt: skip
    """Write a formula between dollars, two of them if its tag says that it stands alone; line ends become spaces."""
    start = skip_spaces(data, start, stop)
    stop = before_spaces(data, start, stop)
    if start == stop:
        return at
    is_block = False
    for position in range(tag, tag_stop - 4):  # display="block"
        if data[position] == 0x62 and data[position + 1] == 0x6C and data[position + 2] == 0x6F:
            is_block = is_block or (data[position + 3] == 0x63 and data[position + 4] == 0x6B)
    out[at] = _DOLLAR
    out[at + 1] = _DOLLAR
    at += 2 if is_block else 1
    if kind == lay.CHEMISTRY:
        out[at], out[at + 1], out[at + 2], out[at + 3] = 0x5C, 0x63, 0x65, 0x7B
        at += 4
    while start < stop:
        byte = data[start]
        if byte == 0x26:
            start, at = write_entity(data, start, stop, out, at, slots, num_slots, keys)
            continue
        out[at] = 0x20 if byte == _NEWLINE else byte
        start, at = start + 1, at + 1
    if kind == lay.CHEMISTRY:
        out[at] = 0x7D
        at += 1
    out[at] = _DOLLAR
    out[at + 1] = _DOLLAR
    return at + 2 if is_block else at + 1


@part
def write_verbatim(
    data: Bytes, start: int, stop: int, kind: int, out: Bytes, at: int, slots: Longs, num_slots: int, keys: Bytes
) -> int:
    """Write text in which no markup is looked for; code keeps its entities too. Code stands on lines of its own."""
    if kind != lay.NO_WIKI:
        while start < stop and data[start] == _NEWLINE:
            start += 1
        stop = before_spaces(data, start, stop)
    if kind == lay.CODE:
        at = copy_span(data, start, stop, out, at)
        start = stop
    while start < stop:
        if data[start] == 0x26:
            start, at = write_entity(data, start, stop, out, at, slots, num_slots, keys)
        else:
            out[at] = data[start]
            start, at = start + 1, at + 1
    if kind != lay.NO_WIKI:
        out[at] = _NEWLINE
        at += 1
    return at


@part
def close_tag(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs,
    slots: Longs, num_slots: int, keys: Bytes,
) -> tuple[int, int, int]:  # fmt: skip
    """The end of a tag; return where to go on, the end of the result, and the depth."""
    end = name_end(data, pos + 2, stop)
    slot = find_name(data, pos + 2, end, lay.OF_TAG, slots, num_slots, keys)
    behind = tag_end(data, end, stop)
    if slot < 0 or behind < 0:
        out[at] = _LESS
        return pos + 1, at + 1, depth
    kind = slots[slot + lay.VALUE]
    if kind == lay.TABLE_BEGIN:
        found = depth
        while found and stack[(found - 1) * lay.ENTRY + lay.KIND] == lay.LINK:
            found -= 1
        if top_kind(stack, found) == lay.TABLE_TAG and not notes[lay.TOO_DEEP]:
            start = stack[(found - 1) * lay.ENTRY + lay.START]
            depth = found - 1
            at = at if options[lay.KEEP_TABLES] else start
            cut_back(at, notes)
        return behind + 1, at, depth
    if kind == lay.NEW_LINE:
        at = write_newline(out, at, floor(stack, depth))
    return behind + 1, at, depth


@part
def _is_number(data: Bytes, start: int, stop: int) -> bool:
    """Whether a power stands here: digits, with a sign before them, up to the next tag."""
    if start < stop and (data[start] == _HYPHEN or data[start] == _PLUS):
        start += 1
    elif start + 2 < stop and data[start] == 0xE2 and data[start + 1] == 0x88 and data[start + 2] == 0x92:
        start += 3  # the sign for minus
    begin = start
    while start < stop and 0x30 <= data[start] <= 0x39 and start - begin < 6:
        start += 1
    return start > begin and start + 1 < stop and data[start] == _LESS and data[start + 1] == _SLASH


@part
def open_tag(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs,
    slots: Longs, num_slots: int, keys: Bytes,
) -> tuple[int, int, int]:  # fmt: skip
    """A tag; return where to go on, the end of the result, and the depth. One that is not known is text."""
    end = name_end(data, pos + 1, stop)
    slot = find_name(data, pos + 1, end, lay.OF_TAG, slots, num_slots, keys)
    behind = tag_end(data, end, stop)
    if slot < 0 or behind < 0:
        out[at] = _LESS
        return pos + 1, at + 1, depth
    kind, number = slots[slot + lay.VALUE], slots[slot + lay.VALUE_LENGTH]
    if kind == lay.NEW_LINE or (kind == lay.CELL and options[lay.KEEP_TABLES]):
        if kind == lay.NEW_LINE:
            return behind + 1, write_newline(out, at, floor(stack, depth)), depth
        out[at] = _SPACE
        return behind + 1, at + 1, depth
    if kind == lay.TABLE_BEGIN:
        if depth < options[lay.MOST_OPEN]:
            depth = push(stack, depth, lay.TABLE_TAG, at)
        return behind + 1, at, depth
    if kind == lay.RAISED and at and not is_space(out[at - 1]) and _is_number(data, behind + 1, stop):
        out[at] = 0x5E
        return behind + 1, at + 1, depth
    is_whole = data[behind - 1] == _SLASH
    if kind == lay.STRIPPED or kind == lay.RAISED or kind == lay.CELL or is_whole or notes[lay.UNCLOSED] >> number & 1:
        return behind + 1, at, depth
    closing = find_closing(data, pos + 1, end, behind + 1, stop)
    if closing < 0:
        notes[lay.UNCLOSED] |= _ONE << number
        return behind + 1, at, depth
    following = tag_end(data, closing + 2 + end - pos - 1, stop) + 1
    if following == 0:
        following = stop
    if kind == lay.DROPPED or (not options[lay.KEEP_MATH] and (kind == lay.MATH or kind == lay.CHEMISTRY)):
        following, at = after_drop(data, following, stop, out, at, stack, depth, notes)
        return following, at, depth
    if kind == lay.MATH or kind == lay.CHEMISTRY:
        at = write_math(data, end, behind, behind + 1, closing, kind, out, at, slots, num_slots, keys)
        return following, at, depth
    if kind == lay.NO_WIKI:
        return following, write_verbatim(data, behind + 1, closing, kind, out, at, slots, num_slots, keys), depth
    if at and out[at - 1] != _NEWLINE:
        at = write_newline(out, at, floor(stack, depth))
    at = write_verbatim(data, behind + 1, closing, kind, out, at, slots, num_slots, keys)
    while following < stop and data[following] == _SPACE:
        following += 1
    return following, at, depth
