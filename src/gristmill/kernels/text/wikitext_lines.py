"""What only the beginning or the end of a line can be in wikitext: headings, lists, rules, and the rows of tables."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.wikitext_names import before_spaces, copy_span, find_newline, skip_spaces
from gristmill.kernels.text.wikitext_stack import cut_back, floor, push, run_length, write_newline
from gristmill.kernels.text.words_of_bytes import Bytes

Longs = NDArray[np.int64]

_NEWLINE, _SPACE, _BANG, _EQUALS = 0x0A, 0x20, 0x21, 0x3D
_OPEN_BRACE, _PIPE, _CLOSE_BRACE = 0x7B, 0x7C, 0x7D
_HYPHEN, _PLUS = 0x2D, 0x2B
_STAR, _NUMBER_SIGN, _COLON, _SEMICOLON = 0x2A, 0x23, 0x3A, 0x3B


@part
def drop_empty_headings(out: Bytes, at: int, level: int, notes: Longs) -> int:
    """Cut off headings that no text has followed, down to the level of the next one; return where the result ends."""
    count = notes[lay.NUM_EMPTY]
    if count:
        last = lay.EMPTY + 3 * (count - 1)
        if notes[last + 2] > at or skip_spaces(out, notes[last + 2], at) < at:
            count = 0  # text came, or the heading was removed with what held it
    while count and notes[lay.EMPTY + 3 * (count - 1)] >= level:
        count -= 1
        at = notes[lay.EMPTY + 3 * count + 1]
    notes[lay.NUM_EMPTY] = count
    return at


@part
def end_heading(out: Bytes, at: int, depth: int, notes: Longs) -> int:
    """Make a heading of a line that began with equals signs, if it ends with some; return where the result ends."""
    opened, begin = notes[lay.HEADING_LEVEL], notes[lay.HEADING_AT]
    notes[lay.HEADING_LEVEL] = 0
    if depth != notes[lay.HEADING_DEPTH] or at < begin + opened:
        return at
    stop = before_spaces(out, begin, at)
    closed = 0
    while stop - closed > begin + opened and out[stop - closed - 1] == _EQUALS:
        closed += 1
    if not closed:
        return at
    level = min(opened, closed, 6)
    low = skip_spaces(out, begin + level, stop - level)
    high = before_spaces(out, low, stop - level)
    if depth:
        return copy_span(out, low, high, out, begin)
    length = high - low
    title = at + 8
    copy_span(out, low, high, out, title)  # cutting off what is before may take its place
    begin = drop_empty_headings(out, begin, level, notes)
    at = copy_span(out, title, title + length, out, begin)
    count = notes[lay.NUM_EMPTY]
    if count < lay.MOST_EMPTY:
        note = lay.EMPTY + 3 * count
        notes[note], notes[note + 1], notes[note + 2] = level, begin, at
        notes[lay.NUM_EMPTY] = count + 1
    return at


@part
def without_broken_links(stack: Longs, depth: int, is_blank: bool) -> int:
    """Give up links that cannot go on in the next line: what was written of them is text."""
    while depth:
        entry = (depth - 1) * lay.ENTRY
        kind = stack[entry + lay.KIND]
        if kind != lay.URL_LINK and not (kind == lay.LINK and (is_blank or not stack[entry + lay.MARK])):
            break
        depth -= 1
    return depth


@part
def _find_table(stack: Longs, depth: int) -> int:
    """The depth of the innermost table, with nothing but links in it; 0 if there is none."""
    while depth:
        kind = stack[(depth - 1) * lay.ENTRY + lay.KIND]
        if kind == lay.TABLE:
            return depth
        if kind == lay.TEMPLATE or kind == lay.TABLE_TAG:
            return 0
        depth -= 1
    return 0


@part
def begin_cell(out: Bytes, at: int, stack: Longs, depth: int) -> int:
    """Begin a cell of a table that is kept: cells of a row stand in one line, with bars between them."""
    entry = (depth - 1) * lay.ENTRY
    row = stack[entry + lay.MARK]
    at = before_spaces(out, row, at)
    if at > row:
        out[at], out[at + 1], out[at + 2] = _SPACE, _PIPE, _SPACE
        at += 3
    stack[entry + lay.COUNT] = at + 1
    return at


@part
def _table_line(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, keeps: int
) -> tuple[int, int, int]:
    """A line in a table that begins with | or !; return where to go on, the end of the result, and the depth."""
    byte = data[pos]
    following = data[pos + 1] if pos + 1 < stop else 0
    entry = (depth - 1) * lay.ENTRY
    if byte == _PIPE and following == _CLOSE_BRACE:
        if keeps:
            at = before_spaces(out, stack[entry + lay.START], at)
            out[at] = _NEWLINE
            return pos + 2, at + 1, depth - 1
        return pos + 2, stack[entry + lay.START], depth - 1
    if not keeps:
        return pos, at, depth
    if byte == _PIPE and (following == _HYPHEN or following == _PLUS):
        at = before_spaces(out, stack[entry + lay.START], at)
        if at > stack[entry + lay.START]:
            out[at] = _NEWLINE
            at += 1
        stack[entry + lay.MARK] = at
        stack[entry + lay.FLAG] = 0
        stack[entry + lay.COUNT] = at + 1
        return (
            (find_newline(data, pos, stop) if following == _HYPHEN else skip_spaces(data, pos + 2, min(pos + 3, stop))),
            at,
            depth,
        )
    stack[entry + lay.FLAG] = 1 if byte == _BANG else 0
    return (
        skip_spaces(data, pos + 1, stop) if following == _SPACE else pos + 1,
        begin_cell(out, at, stack, depth),
        depth,
    )


@inline
def _is_list(byte: int) -> bool:
    return byte == _STAR or byte == _NUMBER_SIGN or byte == _COLON or byte == _SEMICOLON


@part
def begin_line(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs
) -> tuple[int, int, int]:
    """What only the beginning of a line can be; return where to go on, the end of the result, and the depth."""
    begin = pos
    while pos < stop and (data[pos] == _SPACE or data[pos] == _COLON):  # tables may be indented
        pos += 1
    byte = data[pos] if pos < stop else 0
    following = data[pos + 1] if pos + 1 < stop else 0
    if byte == _OPEN_BRACE and following == _PIPE and depth < options[lay.MOST_OPEN] and data[pos + 2] != _CLOSE_BRACE:
        depth = push(stack, depth, lay.TABLE, at)
        stack[(depth - 1) * lay.ENTRY + lay.MARK] = at
        return find_newline(data, pos, stop), at, depth
    is_end = byte == _PIPE and following == _CLOSE_BRACE and data[pos + 2] != _CLOSE_BRACE
    is_row = (byte == _PIPE or byte == _BANG) and options[lay.KEEP_TABLES]
    if (is_end or is_row) and not notes[lay.TOO_DEEP]:
        table = _find_table(stack, depth)
        if table and (is_end or table == depth):
            pos, at, depth = _table_line(data, pos, stop, out, at, stack, table, options[lay.KEEP_TABLES])
            cut_back(at, notes)
            return pos, at, depth
    pos = begin
    byte = data[pos] if pos < stop else 0
    if byte == _EQUALS and not notes[lay.HEADING_LEVEL]:
        level = run_length(data, pos, stop)
        notes[lay.HEADING_LEVEL], notes[lay.HEADING_AT], notes[lay.HEADING_DEPTH] = level, at, depth
        return pos + level, copy_span(data, pos, pos + level, out, at), depth
    if _is_list(byte):
        while pos < stop and _is_list(data[pos]):
            pos += 1
        while pos < stop and data[pos] == _SPACE:
            pos += 1
        if pos < stop and data[pos] == _OPEN_BRACE and data[pos + 1] == _PIPE and depth < options[lay.MOST_OPEN]:
            depth = push(stack, depth, lay.TABLE, at)
            stack[(depth - 1) * lay.ENTRY + lay.MARK] = at
            return find_newline(data, pos, stop), at, depth
        return pos, at, depth
    if byte == _HYPHEN:
        length = run_length(data, pos, stop)
        if length >= 4:
            return pos + length, at, depth
    return pos, at, depth


@part
def next_line(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs, options: Longs
) -> tuple[int, int, int]:
    """End the line whose newline is here and begin the next."""
    notes[lay.QUOTES] = 0
    depth = without_broken_links(stack, depth, pos + 1 < stop and data[pos + 1] == _NEWLINE)
    if notes[lay.HEADING_LEVEL] and not notes[lay.TOO_DEEP]:
        at = end_heading(out, at, depth, notes)
    at = write_newline(out, at, floor(stack, depth))
    return begin_line(data, pos + 1, stop, out, at, stack, depth, notes, options)
