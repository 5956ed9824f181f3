"""How deep the elements of a page are nested, and what else slows a parser down, found out before it is parsed.

Parsers take time that grows with the square of the depth, of the tags and of the attributes of one tag, and with the
cube of formatting elements that are never closed (each is opened again in every following block), and they cannot be
interrupted. So this is measured first. The result is an estimate: it follows the tags, knows which elements have no end
tag and which end tags may be left out, and leaves the rest of the HTML standard's rules alone.

On the way it notes whether a page may have formulas (the name or an attribute of some tag has "math" in it, or "tex"
that does not begin "text", or its text has a delimiter of formulas) or code: looking for them in the parsed page takes
longer than all of this does.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.html_layout import (
    BLOCK,
    CODE,
    EDGE,
    FACTOR,
    FIRST_OF_TABLE,
    FOREIGN,
    FOREIGN_OPEN,
    FORMATTING,
    FORMATTING_OPEN,
    FOUND,
    FOUND_ATTRIBUTES,
    FOUND_DEPTH,
    FOUND_FORMATTING,
    FOUND_TAGS,
    GONE,
    GONE_SLOT,
    HAS_GLUED_CELLS,
    HINTS,
    LEAST_FORMULA,
    MAX_LOOK,
    MAX_STACK,
    MAY_HAVE_CODE,
    MAY_HAVE_MATH,
    MAY_HAVE_TEX,
    PARAGRAPH,
    RAW,
    SLOTS,
    TABLE,
    VOID,
)
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import Bytes, find_byte

Longs = NDArray[np.int64]
_FACTOR = np.uint64(FACTOR)
H_OR_X, H_OR_X_IS = 0xCF, 0x48  # a mask, and what it makes of "h", "H", "x" and "X" alone


@inline
def _lower(byte: int) -> int:
    return byte | 0x20 if 0x41 <= byte <= 0x5A else byte


@inline
def _is_letter(byte: int) -> bool:
    return 0x61 <= (byte | 0x20) <= 0x7A


@inline
def _name_stop(data: Bytes, start: int, stop: int) -> int:
    """Return where the name of a tag ends: before white space, a slash or the end of the tag."""
    position = start
    while position < stop and data[position] > 0x20 and data[position] != 0x2F and data[position] != 0x3E:
        position += 1
    return position


@inline
def name_key(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return the first eight bytes of a name in lower case, as one number, with its length where it is longer."""
    key = np.uint64(0)
    for i in range(min(8, stop - start)):
        key |= np.uint64(_lower(data[start + i])) << np.uint64(8 * i)
    return key ^ (np.uint64(stop - start) << np.uint64(56)) if stop - start > 8 else key


@inline
def slot_of(key: np.uint64) -> int:
    """Return the slot of a name."""
    return np.int64((key * _FACTOR) >> np.uint64(52))


@inline
def _names_formula(data: Bytes, start: int, position: int, stop: int) -> bool:
    """Whether "math", "t=tx" or the "tex" of anything but "text" ends here, in a tag whose name begins at `start`."""
    before = _lower(data[position - 1]) if position > start else 0
    two_before = _lower(data[position - 2]) if position - 1 > start else 0
    three_before = _lower(data[position - 3]) if position - 2 > start else 0
    if _lower(data[position]) == 0x68:
        return before == 0x74 and two_before == 0x61 and three_before == 0x6D
    if before == 0x65 and two_before == 0x74:
        return position + 1 < stop and _lower(data[position + 1]) != 0x74
    return before == 0x74 and two_before == 0x3D and three_before == 0x74


@part
def _tag_stop(data: Bytes, start: int, stop: int, found: Longs) -> int:
    """Return where the tag whose name begins here ends: at its ">", outside of values in quotes."""
    position = start
    after_equals = False
    after_space = False
    attributes = 0
    while position < stop:
        byte = data[position]
        if byte & H_OR_X == H_OR_X_IS and _names_formula(data, start, position, stop):
            found[HINTS] |= MAY_HAVE_MATH
        if byte == 0x3E:
            break
        if after_equals and (byte == 0x22 or byte == 0x27):
            position += 1
            while position < stop and data[position] != byte:  # most bytes of a tag are in here
                if data[position] & H_OR_X == H_OR_X_IS and _names_formula(data, start, position, stop):
                    found[HINTS] |= MAY_HAVE_MATH
                position += 1
            after_equals, after_space = False, True
        elif byte <= 0x20 or byte == 0x2F:
            after_space = True
        else:
            attributes += after_space and not after_equals and byte != 0x3D
            after_equals, after_space = byte == 0x3D, False
        position += 1
    found[FOUND_ATTRIBUTES] = max(found[FOUND_ATTRIBUTES], attributes)
    return min(position, stop)


@part
def _comment_stop(data: Bytes, start: int, stop: int) -> int:
    """Return where a comment ends, after its "-->"."""
    position = start
    while position < stop:
        position = find_byte(data, position, stop, 0x3E)
        if position < stop and data[position - 1] == 0x2D and data[position - 2] == 0x2D:
            return position + 1
        position += 1
    return stop


@part
def _raw_stop(data: Bytes, start: int, stop: int, key: np.uint64, length: int) -> int:
    """Return where the end tag of an element that holds only text begins."""
    position = find_byte(data, start, stop, 0x3C)
    while position < stop:
        name = position + 2
        if name + length <= stop and data[position + 1] == 0x2F and name_key(data, name, name + length) == key:
            return position
        position = find_byte(data, position + 1, stop, 0x3C)
    return stop


@inline
def _pop_to(
    stack: NDArray[np.int32], open_count: NDArray[np.int32], depth: int, place: int, kinds: Bytes, found: Longs
) -> int:
    """Close elements down to this place, and return it."""
    for position in range(place, min(depth, MAX_STACK)):
        slot = stack[position]
        open_count[slot] -= 1
        found[FOREIGN_OPEN] -= kinds[slot] & FOREIGN != 0
        found[GONE] -= slot == GONE_SLOT
    return place


@inline
def _implied_end(stack: NDArray[np.int32], depth: int, group: int, kinds: Bytes, groups: Bytes) -> int:
    """Return the place of the element that a start tag closes, or `depth` if it closes none."""
    if depth > MAX_STACK:
        return depth
    lowest = max(0, depth - MAX_LOOK)
    place = depth - 1
    while place >= lowest:
        slot = stack[place]
        if groups[slot] == group:
            return place
        if kinds[slot] & (TABLE if group >= FIRST_OF_TABLE else EDGE):
            return depth
        place -= 1
    return depth


@inline
def _end_formatting(
    stack: NDArray[np.int32], open_count: NDArray[np.int32], depth: int, slot: int, kinds: Bytes, found: Longs
) -> int:
    """Close a formatting element. A block that was opened within it stays open, and only the element itself goes."""
    lowest = max(0, depth - MAX_LOOK)
    place = depth - 1
    holds_block = False
    while place >= lowest and stack[place] != slot:
        holds_block = holds_block or kinds[stack[place]] & (BLOCK | EDGE) != 0
        place -= 1
    if place < lowest:
        return depth
    if not holds_block:
        return _pop_to(stack, open_count, depth, place, kinds, found)
    stack[place] = GONE_SLOT
    open_count[slot] -= 1
    open_count[GONE_SLOT] += 1
    found[GONE] += 1
    return depth


@inline
def _end(
    stack: NDArray[np.int32], open_count: NDArray[np.int32], depth: int, slot: int, kinds: Bytes, found: Longs
) -> int:
    """Close an element and all within it; return the depth. An element that is not open is not closed."""
    if open_count[SLOTS + slot] > 0:
        open_count[SLOTS + slot] -= 1
        found[FORMATTING_OPEN] -= 1
    if open_count[slot] <= 0:
        return depth
    if depth > MAX_STACK:
        return depth - 1
    if kinds[slot] & FORMATTING:
        return _end_formatting(stack, open_count, depth, slot, kinds, found)
    place = depth - 1
    while stack[place] != slot:
        place -= 1
    return _pop_to(stack, open_count, depth, place, kinds, found)


@inline
def _open(
    stack: NDArray[np.int32], open_count: NDArray[np.int32], depth: int, slot: int, kind: int, found: Longs
) -> int:
    """Open an element; return the depth."""
    if depth < MAX_STACK:
        stack[depth] = slot
    open_count[slot] += 1
    found[FOUND_DEPTH] = max(found[FOUND_DEPTH], depth + 1 - found[GONE])
    found[FOREIGN_OPEN] += kind & FOREIGN != 0
    if kind & FORMATTING:
        open_count[SLOTS + slot] += 1
        found[FORMATTING_OPEN] += 1
        found[FOUND_FORMATTING] = max(found[FOUND_FORMATTING], found[FORMATTING_OPEN])
    return depth + 1


@part
def _has_formula(data: Bytes, start: int, stop: int) -> bool:
    r"""Whether a text has what formulas begin with: \\(, \\[, \\b(egin), $$, [te(x), [ma(th), [la(tex)."""
    position = find_byte(data, start, stop, 0x5C)
    while position + 1 < stop:
        byte = data[position + 1]
        if byte == 0x28 or byte == 0x5B or byte == 0x62:
            return True
        position = find_byte(data, position + 1, stop, 0x5C)
    position = find_byte(data, start, stop, 0x24)
    while position + 1 < stop:
        if data[position + 1] == 0x24:
            return True
        position = find_byte(data, position + 1, stop, 0x24)
    position = find_byte(data, start, stop, 0x5B)
    while position + 2 < stop:
        byte, second = data[position + 1], data[position + 2]
        if (byte == 0x74 and second == 0x65) or ((byte == 0x6D or byte == 0x6C) and second == 0x61):
            return True
        position = find_byte(data, position + 1, stop, 0x5B)
    return False


@inline
def _next_tag(data: Bytes, start: int, size: int, found: Longs) -> int:
    """Return where the next tag begins, and note whether the text before it may have formulas in it."""
    position = find_byte(data, start, size, 0x3C)
    if position - start >= LEAST_FORMULA and _has_formula(data, start, position):
        found[HINTS] |= MAY_HAVE_TEX
    return position


@inline
def _hints_of(data: Bytes, position: int, kind: int, group: int) -> int:
    """Return what a start tag says about its page: that it has code, or cells of a table with nothing between them."""
    hints = MAY_HAVE_CODE if kind & CODE else 0
    if group == FIRST_OF_TABLE and position > 0 and data[position - 1] == 0x3E:
        hints |= HAS_GLUED_CELLS
    return hints


@inline
def _clear(open_count: NDArray[np.int32], found: Longs) -> None:
    for slot in range(2 * SLOTS):
        open_count[slot] = 0
    for place in range(FOUND):
        found[place] = 0


@sized(
    data=lambda size: size,
    keys=lambda: SLOTS,
    kinds=lambda: SLOTS,
    groups=lambda: SLOTS,
    open_count=lambda: 2 * SLOTS,
    stack=lambda: MAX_STACK,
    found=lambda: FOUND,
)
def measure_depth(
    data: Bytes,
    size: int,
    keys: NDArray[np.uint64],
    kinds: Bytes,
    groups: Bytes,
    open_count: NDArray[np.int32],
    stack: NDArray[np.int32],
    found: Longs,
) -> None:
    """Measure one page.

    keys, kinds, groups  [SLOTS]      of known elements, by the slot of their name
    open_count           [2 * SLOTS]  scratch: how many of each are open, and how many formatting ones
    stack                [MAX_STACK]  scratch: the slots of open elements
    found                [FOUND]      depth, formatting elements, start tags, attributes of a tag, hints; scratch
    """
    _clear(open_count, found)
    depth = 0
    position = _next_tag(data, 0, size, found)
    while position + 1 < size:
        byte = data[position + 1]
        if _is_letter(byte):
            name_stop = _name_stop(data, position + 1, size)
            key = name_key(data, position + 1, name_stop)
            slot = slot_of(key)
            known = keys[slot] == key
            kind = kinds[slot] if known else 0
            group = groups[slot] if known else 0
            stop = _tag_stop(data, position + 1, size, found)
            found[FOUND_TAGS] += 1
            found[HINTS] |= _hints_of(data, position, kind, group)
            if found[FOREIGN_OPEN] == 0 and (group or kind & BLOCK):
                place = _implied_end(stack, depth, group if group else PARAGRAPH, kinds, groups)
                depth = _pop_to(stack, open_count, depth, place, kinds, found)
            if kind & VOID == 0 and (found[FOREIGN_OPEN] == 0 or data[stop - 1] != 0x2F):
                depth = _open(stack, open_count, depth, slot, kind, found)
                if kind & RAW:
                    stop = _raw_stop(data, stop, size, key, name_stop - position - 1) - 1
            position = stop + 1
        elif byte == 0x2F:
            name_stop = _name_stop(data, position + 2, size)
            slot = slot_of(name_key(data, position + 2, name_stop))
            depth = _end(stack, open_count, depth, slot, kinds, found)
            position = _tag_stop(data, position + 2, size, found) + 1
        elif byte == 0x21 and position + 3 < size and data[position + 2] == 0x2D and data[position + 3] == 0x2D:
            position = _comment_stop(data, position + 4, size)
        elif byte == 0x21 or byte == 0x3F:
            position = find_byte(data, position + 2, size, 0x3E) + 1
        else:
            position += 1
        position = _next_tag(data, position, size, found)
