"""Names in wikitext: templates, prefixes of links, tags and entities, looked up in one table of known ones."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes, copy_bytes, find_byte

Longs = NDArray[np.int64]


@part
def copy_span(data: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    """Copy bytes to `out`, or to a place before them in the same array; return where they end there."""
    return copy_bytes(data, start, stop, out, at)


@part
def find_newline(data: Bytes, start: int, stop: int) -> int:
    """Return where the line ends, its newline not included."""
    return find_byte(data, start, stop, 0x0A)


@inline
def is_space(byte: int) -> bool:
    """Whether a byte is white space within a line or a line end."""
    return byte == 0x20 or (0x09 <= byte <= 0x0D)


@inline
def lower(byte: int) -> int:
    """A letter of ASCII in lower case, anything else as it is."""
    return byte + 32 if 0x41 <= byte <= 0x5A else byte


@part
def skip_spaces(data: Bytes, start: int, stop: int) -> int:
    """Return where something other than white space begins, `stop` if nothing does."""
    while start < stop and is_space(data[start]):
        start += 1
    return start


@part
def before_spaces(data: Bytes, start: int, stop: int) -> int:
    """Return where the last byte that is not white space ends, `start` if there is none."""
    while stop > start and is_space(data[stop - 1]):
        stop -= 1
    return stop


@part
def _is_key(data: Bytes, start: int, stop: int, kind: int, keys: Bytes, at: int) -> bool:
    if keys[at] != kind:
        return False
    for k in range(stop - start):
        byte = np.int64(data[start + k])
        if kind != lay.OF_ENTITY:
            byte = 0x20 if byte == 0x5F else lower(byte)
        if byte != keys[at + 1 + k]:
            return False
    return True


@part
def find_name(data: Bytes, start: int, stop: int, kind: int, slots: Longs, num_slots: int, keys: Bytes) -> int:
    """Return where the slot of a name is in `slots`, -1 if it is not known. Case counts in names of entities only."""
    if stop - start > lay.LONGEST_NAME or stop <= start:
        return -1
    key = (lay.HASH_START ^ kind) * lay.HASH_FACTOR & lay.HASH_MASK
    for position in range(start, stop):
        byte = np.int64(data[position])
        if kind != lay.OF_ENTITY:
            byte = 0x20 if byte == 0x5F else lower(byte)
        key = (key ^ byte) * lay.HASH_FACTOR & lay.HASH_MASK
    place = key & (num_slots - 1)
    while slots[lay.SLOT * place + lay.KEY_LENGTH]:  # the table is never full
        slot = lay.SLOT * place
        if slots[slot + lay.KEY_LENGTH] == stop - start + 1:
            if _is_key(data, start, stop, kind, keys, slots[slot + lay.KEY_AT]):
                return slot
        place = (place + 1) & (num_slots - 1)
    return -1


@part
def write_code_point(out: Bytes, at: int, code: int) -> int:
    """Write a character in UTF-8; return where it ends. What is not a character is U+FFFD."""
    if code < 0x80:
        out[at] = code if code else 0x20
        return at + 1
    if code < 0x800:
        out[at], out[at + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return at + 2
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        code = 0xFFFD
    if code < 0x10000:
        out[at], out[at + 1], out[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return at + 3
    out[at], out[at + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    out[at + 2], out[at + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return at + 4


@part
def write_entity(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, slots: Longs, num_slots: int, keys: Bytes
) -> tuple[int, int]:
    """Write what the entity that begins with this ampersand stands for; return the places after both.

    One that is not known, or has no semicolon, is text.
    """
    end = pos + 1
    while end < stop and end - pos < lay.LONGEST_NAME and data[end] != 0x3B:
        end += 1
    if end < stop and data[end] == 0x3B and end > pos + 1:
        if data[pos + 1] == 0x23:
            code = _number(data, pos + 2, end)
            if code >= 0:
                return end + 1, write_code_point(out, at, code)
        else:
            slot = find_name(data, pos + 1, end, lay.OF_ENTITY, slots, num_slots, keys)
            if slot >= 0:
                text = slots[slot + lay.VALUE]
                for k in range(slots[slot + lay.VALUE_LENGTH]):
                    out[at + k] = keys[text + k]
                return end + 1, at + slots[slot + lay.VALUE_LENGTH]
    out[at] = 0x26
    return pos + 1, at + 1


@part
def _number(data: Bytes, start: int, stop: int) -> int:
    """The number of a character, decimal, or hexadecimal after an x; -1 if there is anything but digits."""
    base = 10
    if start < stop and lower(np.int64(data[start])) == 0x78:
        base, start = 16, start + 1
    if start >= stop or stop - start > 7:
        return -1
    code = 0
    for position in range(start, stop):
        byte = lower(np.int64(data[position]))
        if 0x30 <= byte <= 0x39:
            code = code * base + byte - 0x30
        elif base == 16 and 0x61 <= byte <= 0x66:
            code = code * base + byte - 0x57
        else:
            return -1
    return code
