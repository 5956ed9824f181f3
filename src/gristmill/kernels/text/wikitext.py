"""Wikitext to plain text, in one pass with a stack of what is open.

Everything is written to the result as it comes. When a template, a link or a table closes, the result is cut back to
where it began, and what readers see of it stays. So what never closes stays text, and no place in the input is looked
at twice: a closing bracket counts if it closes the innermost thing that it can close, and the end of a tag that was
once looked for in vain is not looked for again. So time is linear in the length of any input, and nothing is an error.

What is dropped: comments, references, templates that are not known, tables, files, categories and links to other
languages, and headings that no text follows. What is kept: the text of links, of known templates and of tags; formulas
between dollars; code word for word. The rules are those of MediaWiki where it matters, and simpler where it does not.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.blocks import copy_block, range_bits
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.wikitext_lines import (
    begin_cell,
    begin_line,
    drop_empty_headings,
    end_heading,
    next_line,
    without_broken_links,
)
from gristmill.kernels.text.wikitext_names import before_spaces, copy_span, is_space, lower, skip_spaces, write_entity
from gristmill.kernels.text.wikitext_stack import after_drop, cut_back, floor, push, run_length, top_kind
from gristmill.kernels.text.wikitext_tags import close_tag, comment_end, open_tag
from gristmill.kernels.text.wikitext_templates import close_empty_brackets, close_link, close_parameter, close_template
from gristmill.kernels.text.words_of_bytes import Bytes, count_trailing_zeros

Longs = NDArray[np.int64]

_NO_SHIFT = np.uint64(0)
_NEWLINE, _SPACE, _BANG, _AMPERSAND, _QUOTE, _CLOSE = 0x0A, 0x20, 0x21, 0x26, 0x27, 0x29
_LESS, _SLASH = 0x3C, 0x2F
_OPEN_LINK, _CLOSE_LINK, _UNDERSCORE = 0x5B, 0x5D, 0x5F
_OPEN_BRACE, _PIPE, _CLOSE_BRACE = 0x7B, 0x7C, 0x7D
_HYPHEN = 0x2D
_LONGEST_SCHEME = 8  # bytes


@inline
def _special_bits(data: Bytes, pos: int) -> np.uint64:
    """Which of 64 bytes may be markup; a few that never are get included with their neighbours."""
    block = (pos, _NO_SHIFT)
    found = range_bits(data, block, _NEWLINE, 1) | range_bits(data, block, _BANG, 1)
    found |= range_bits(data, block, _AMPERSAND, 4) | range_bits(data, block, _LESS, 1)
    return found | range_bits(data, block, _OPEN_LINK, 5) | range_bits(data, block, _OPEN_BRACE, 3)


# Lines


# Braces and brackets


@part
def _open_braces(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs
) -> tuple[int, int, int]:
    count = run_length(data, pos, stop)
    if count >= 2:
        if depth == options[lay.MOST_OPEN]:
            if not notes[lay.TOO_DEEP]:
                notes[lay.TOO_DEEP_AT] = at
            notes[lay.TOO_DEEP] += count // 2
        else:
            depth = push(stack, depth, lay.TEMPLATE, at)
            stack[(depth - 1) * lay.ENTRY + lay.COUNT] = count
    return pos + count, copy_span(data, pos, pos + count, out, at), depth


@part
def _close_braces(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs,
    slots: Longs, num_slots: int, keys: Bytes, spans: Longs,
) -> tuple[int, int, int]:  # fmt: skip
    """Close templates and parameters with as many braces as there are; those left over are text."""
    left = run_length(data, pos, stop)
    pos += left
    while left >= 2 and notes[lay.TOO_DEEP]:
        notes[lay.TOO_DEEP] -= 1
        left -= 2
        if not notes[lay.TOO_DEEP]:
            at = min(at, notes[lay.TOO_DEEP_AT])
    while left >= 2:
        found = depth
        while found and stack[(found - 1) * lay.ENTRY + lay.KIND] != lay.TEMPLATE:
            found -= 1
        if not found:
            break
        depth = found  # links and tables that are still open in it are text
        entry = (depth - 1) * lay.ENTRY
        opened = stack[entry + lay.COUNT]
        closed = min(opened, left, 3)
        start = stack[entry + lay.START] + opened - closed
        if closed == 3:
            end = close_parameter(out, at, start, stack, entry)
        else:
            end = close_template(out, at, start, stack, entry, slots, num_slots, keys, spans)
        is_dropped = end == start
        at = end
        left -= closed
        stack[entry + lay.COUNT] = opened - closed
        stack[entry + lay.MARK] = 0
        if opened - closed < 2:
            depth -= 1
        if is_dropped and not left:
            pos, at = after_drop(data, pos, stop, out, at, stack, depth, notes)
        elif is_dropped:
            notes[lay.DROPPED_AT] = at
    cut_back(at, notes)
    for _ in range(left):
        out[at] = _CLOSE_BRACE
        at += 1
    return pos, at, depth


@part
def _is_address(data: Bytes, pos: int, stop: int) -> bool:
    """Whether an address begins here: //, a scheme and ://, or mailto and a colon."""
    end = pos
    while end < stop and end - pos < _LONGEST_SCHEME and 0x61 <= lower(data[end]) <= 0x7A:
        end += 1
    if end + 2 >= stop:
        return False
    if end > pos:
        if data[end] != 0x3A:
            return False
        if end - pos == 6 and lower(data[pos]) == 0x6D and lower(data[pos + 4]) == 0x74:
            return True
        end += 1
    return data[end] == _SLASH and data[end + 1] == _SLASH


@part
def _open_brackets(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs
) -> tuple[int, int, int]:
    count = run_length(data, pos, stop)
    if count >= 2 and not _is_address(data, pos + count, stop):
        at = copy_span(data, pos, pos + count - 2, out, at)
        if depth < options[lay.MOST_OPEN]:
            depth = push(stack, depth, lay.LINK, at)
        return pos + count, copy_span(data, pos, pos + 2, out, at), depth
    if not _is_address(data, pos + count, stop) or depth == options[lay.MOST_OPEN]:
        return pos + count, copy_span(data, pos, pos + count, out, at), depth
    at = copy_span(data, pos, pos + count - 1, out, at)
    pos += count - 1
    end = pos + 1
    while end < stop:
        byte = data[end]
        if byte <= _SPACE or byte == _OPEN_LINK or byte == _CLOSE_LINK or byte == _LESS or byte == 0x22:
            break
        if byte == _OPEN_BRACE or byte == _CLOSE_BRACE or byte == _PIPE:
            break
        end += 1
    if end < stop and data[end] == _CLOSE_LINK:
        pos, at = after_drop(data, end + 1, stop, out, at, stack, depth, notes)
        return pos, at, depth
    depth = push(stack, depth, lay.URL_LINK, at)
    at = copy_span(data, pos, end, out, at)
    stack[(depth - 1) * lay.ENTRY + lay.MARK] = at
    return end, at, depth


@part
def _close_brackets(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs,
    slots: Longs, num_slots: int, keys: Bytes,
) -> tuple[int, int, int]:  # fmt: skip
    """Close links with as many brackets as there are; those left over are text."""
    left = run_length(data, pos, stop)
    pos += left
    while left and depth and not notes[lay.TOO_DEEP]:
        entry = (depth - 1) * lay.ENTRY
        kind, start, mark = stack[entry + lay.KIND], stack[entry + lay.START], stack[entry + lay.MARK]
        if kind == lay.URL_LINK:
            at = copy_span(out, skip_spaces(out, mark, at), at, out, start)
            left -= 1
        elif kind == lay.LINK and left >= 2:
            at = close_link(out, at, start, mark, slots, num_slots, keys)
            left -= 2
        else:
            break
        depth -= 1
        if at == start and kind == lay.LINK and not left:
            pos, at = after_drop(data, pos, stop, out, at, stack, depth, notes)
    cut_back(at, notes)
    for _ in range(left):
        out[at] = _CLOSE_LINK
        at += 1
    return pos, at, depth


@part
def _bar(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, options: Longs
) -> tuple[int, int]:
    """A pipe or an exclamation mark, which separate arguments and cells."""
    byte = data[pos]
    entry = (depth - 1) * lay.ENTRY
    kind = top_kind(stack, depth)
    out[at] = byte
    if byte == _PIPE and kind == lay.TEMPLATE:
        count = stack[entry + lay.MARK]
        if count < lay.MOST_ARGUMENTS:
            stack[entry + 5 + count] = at + 1
            stack[entry + lay.MARK] = count + 1
    elif byte == _PIPE and kind == lay.LINK and not stack[entry + lay.MARK]:
        stack[entry + lay.MARK] = at + 1
    elif kind == lay.TABLE and options[lay.KEEP_TABLES]:
        if pos + 1 < stop and data[pos + 1] == byte and (byte == _PIPE or stack[entry + lay.FLAG]):
            return skip_spaces(data, pos + 2, min(pos + 3, stop)), begin_cell(out, at, stack, depth)
        cell = stack[entry + lay.COUNT]
        if byte == _PIPE and cell:
            stack[entry + lay.COUNT] = 0
            return skip_spaces(data, pos + 1, pos + 2), min(at, cell - 1)
    return pos + 1, at + 1


# Tags


@part
def _magic_word(data: Bytes, pos: int, stop: int, out: Bytes, at: int) -> tuple[int, int]:
    """Two underscores, capitals and two underscores are an instruction; other underscores are text."""
    count = run_length(data, pos, stop)
    if count == 2:
        end = pos + 2
        while end < stop and 0x41 <= data[end] <= 0x5A:
            end += 1
        if end > pos + 2 and end + 2 <= stop and data[end] == _UNDERSCORE and data[end + 1] == _UNDERSCORE:
            return end + 2, at
    return pos + count, copy_span(data, pos, pos + count, out, at)


@part
def _quotes(data: Bytes, pos: int, stop: int, out: Bytes, at: int, notes: Longs) -> tuple[int, int]:
    """Two, three or five are italics and bold; of any other number, some are text.

    Three that end italics before a letter are an apostrophe and two, as in the genitive of a title: ''Ulysses'''s.
    """
    count = run_length(data, pos, stop)
    shown = count if count == 1 else 1 if count == 4 else count - 5 if count > 5 else 0
    if count == 3 and notes[lay.QUOTES] == lay.ITALIC and at and not is_space(out[at - 1]):
        shown = 1 if pos + 3 < stop and 0x61 <= lower(data[pos + 3]) <= 0x7A else 0
    if count > 1:
        marks = count - shown
        notes[lay.QUOTES] ^= (lay.ITALIC if marks != 3 else 0) | (lay.BOLD if marks != 2 else 0)
    for _ in range(shown):
        out[at] = _QUOTE
        at += 1
    return pos + count, at


@part
def _brackets(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs,
    slots: Longs, num_slots: int, keys: Bytes, spans: Longs,
) -> tuple[int, int, int]:  # fmt: skip
    """What opens, divides and closes links, templates and cells."""
    byte = data[pos]
    if byte == _OPEN_LINK:
        return _open_brackets(data, pos, stop, out, at, stack, depth, notes, options)
    if byte == _CLOSE_LINK:
        return _close_brackets(data, pos, stop, out, at, stack, depth, notes, slots, num_slots, keys)
    if byte == _OPEN_BRACE:
        return _open_braces(data, pos, stop, out, at, stack, depth, notes, options)
    if byte == _CLOSE_BRACE:
        return _close_braces(data, pos, stop, out, at, stack, depth, notes, slots, num_slots, keys, spans)
    pos, at = _bar(data, pos, stop, out, at, stack, depth, options)
    return pos, at, depth


@part
def _tags(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs,
    slots: Longs, num_slots: int, keys: Bytes,
) -> tuple[int, int, int]:  # fmt: skip
    """A comment or a tag."""
    if data[pos + 1] == _BANG and data[pos + 2] == _HYPHEN and data[pos + 3] == _HYPHEN:
        pos = comment_end(data, pos + 4, stop)
        if pos < stop and data[pos] == _NEWLINE and (at == 0 or out[at - 1] == _NEWLINE):
            # Alone on its line, it takes the line with it.
            return begin_line(data, pos + 1, stop, out, at, stack, depth, notes, options)
        return pos, at, depth
    if data[pos + 1] == _SLASH:
        return close_tag(data, pos, stop, out, at, stack, depth, notes, options, slots, num_slots, keys)
    return open_tag(data, pos, stop, out, at, stack, depth, notes, options, slots, num_slots, keys)


@part
def _round_bracket(data: Bytes, pos: int, out: Bytes, at: int, least: int, dropped_at: int) -> int:
    """Write a byte that is markup only where it closes a bracket of which everything was dropped."""
    if data[pos] == _CLOSE and dropped_at >= 0:
        end = close_empty_brackets(out, least, at, dropped_at)
        if end >= 0:
            return end
    out[at] = data[pos]
    return at + 1


@sized(
    data=lambda size: size + lay.PADDING,
    options=lambda: lay.OPTIONS,
    slots=lambda num_slots: num_slots * lay.SLOT,
    keys=lambda: 1,
    stack=lambda options: options[lay.MOST_OPEN] * lay.ENTRY,
    notes=lambda: lay.NOTES,
    spans=lambda: 2 * lay.MOST_SPANS,
    out=lambda size: 3 * size + 4 * lay.PADDING,
)
def clean_wikitext(
    data: Bytes,
    size: int,
    options: Longs,
    slots: Longs,
    num_slots: int,
    keys: Bytes,
    stack: Longs,
    notes: Longs,
    spans: Longs,
    out: Bytes,
) -> int:
    """Write the text readers see to the beginning of `out`; return how many bytes it has.

    data     [size + 64]   the wikitext; zeros after it
    options  [3]           KEEP_MATH, KEEP_TABLES, MOST_OPEN
    slots, keys            names, by `find_name`; the number of slots is a power of two
    out      [3 * size + …]
    """
    for k in range(lay.NOTES):
        notes[k] = 0
    notes[lay.DROPPED_AT] = -1
    pos = at = depth = np.int64(0)  # not a literal zero, for which numba would compile everything again
    pos, at, depth = begin_line(data, pos, size, out, at, stack, depth, notes, options)
    while pos < size:
        copy_block(data, pos, out, at)  # what is written too far is overwritten
        special = _special_bits(data, pos)
        plain = min(count_trailing_zeros(special) if special else 64, size - pos)
        pos += plain
        at += plain
        if pos >= size or not special:
            continue
        byte = data[pos]
        if byte == _NEWLINE:
            pos, at, depth = next_line(data, pos, size, out, at, stack, depth, notes, options)
        elif byte == _QUOTE:
            pos, at = _quotes(data, pos, size, out, at, notes)
        elif byte == _LESS:
            pos, at, depth = _tags(data, pos, size, out, at, stack, depth, notes, options, slots, num_slots, keys)
        elif byte == _AMPERSAND:
            pos, at = write_entity(data, pos, size, out, at, slots, num_slots, keys)
        elif byte == _UNDERSCORE:
            pos, at = _magic_word(data, pos, size, out, at)
        elif byte >= _OPEN_BRACE or byte == _OPEN_LINK or byte == _CLOSE_LINK or byte == _BANG:
            pos, at, depth = _brackets(
                data, pos, size, out, at, stack, depth, notes, options, slots, num_slots, keys, spans
            )
        else:
            at = _round_bracket(data, pos, out, at, floor(stack, depth), notes[lay.DROPPED_AT])
            pos += 1
    depth = without_broken_links(stack, depth, is_blank=True)
    if notes[lay.HEADING_LEVEL]:
        at = end_heading(out, at, depth, notes)
    at = drop_empty_headings(out, at, np.int64(0), notes)
    return before_spaces(out, np.int64(0), at)
