"""The line rules of C4: which lines of a text are kept, without citation marks, and which texts are dropped on sight.

Lines are those of `str.splitlines`, stripped.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.layout import SHIFTS
from gristmill.kernels.text.line_breaks import break_length, find_break
from gristmill.kernels.text.phrases import kinds_in
from gristmill.kernels.text.sizes import TEXTS, bytes_of_texts, sized
from gristmill.kernels.text.spaces import last_word_stop, word_start, word_stop
from gristmill.kernels.text.words_of_bytes import Bytes, copy_bytes, count_characters_in, find_byte
from gristmill.kernels.tokens.characters import Classes, class_at, width_at
from gristmill.kernels.tokens.code_points import DECIMAL
from gristmill.kernels.tokens.layout import (
    CITATIONS,
    CLASS_BLOCKS,
    CURLY_BRACKET,
    CURLY_RULE,
    END_MARKS,
    JAVASCRIPT,
    JAVASCRIPT_RULE,
    KEPT,
    LOREM,
    LOREM_IPSUM,
    LOREM_RULE,
    MAX_WORD_LENGTH,
    MIN_WORDS,
    POLICY,
    POLICY_RULE,
    ROOM_BEHIND,
)

Longs = NDArray[np.int64]

_OFF = -1
_LINE_KEPT, _LINE_DROPPED, _LOREM_LINE, _CURLY_LINE = range(4)
_EDIT = tuple(b"[edit]")
_NEEDED = tuple(b"[citation needed]")


@part
def _has_long_word(data: Bytes, low: int, high: int, most: int) -> bool:
    while low < high:
        end = word_stop(data, low, high)
        if count_characters_in(data, low, end) > most:
            return True
        low = word_start(data, end, high)
    return False


@part
def _has_words(data: Bytes, low: int, high: int, least: int) -> bool:
    words = 0
    while low < high and words < least:
        words += 1
        low = word_start(data, word_stop(data, low, high), high)
    return words >= least


@inline
def _starts_with(data: Bytes, low: int, high: int, mark: tuple[int, ...]) -> bool:
    if high - low < len(mark):
        return False
    for index in range(len(mark)):
        if data[low + index] != mark[index]:
            return False
    return True


@part
def _citation_length(data: Bytes, low: int, high: int, classes: Classes) -> int:
    """Length of the citation mark [12], [edit] or [citation needed] that starts with this bracket, or 0."""
    at = low + 1
    while at < high and class_at(data, at, classes) & DECIMAL:
        at += width_at(data, at)
    if at < high and data[at] == 0x5D:
        return at + 1 - low
    if _starts_with(data, low, high, _EDIT):
        return len(_EDIT)
    return len(_NEEDED) if _starts_with(data, low, high, _NEEDED) else 0


@part
def _copy_without_citations(data: Bytes, low: int, high: int, out: Bytes, at: int, classes: Classes) -> int:
    """Copy a line; return where it ends in `out`."""
    while low < high:
        bracket = find_byte(data, low, high, 0x5B)
        length = _citation_length(data, bracket, high, classes) if bracket < high else 0
        end = bracket if length or bracket == high else bracket + 1
        at = copy_bytes(data, low, end, out, at)
        low = end + length
    return at


@part
def _is_ended(data: Bytes, low: int, high: int) -> bool:
    """Whether a line ends with . ? ! " or ', but not with three full stops."""
    if low == high:
        return False
    last = data[high - 1]
    if last == 0x2E:
        return not (high - low > 2 and data[high - 2] == 0x2E and data[high - 3] == 0x2E)
    return last == 0x3F or last == 0x21 or last == 0x22 or last == 0x27


@part
def _judge(data: Bytes, low: int, high: int, has_words: bool, rules: Longs, phrases: Bytes) -> int:
    """What becomes of a line without its citations, by the rules in their order."""
    if rules[END_MARKS] and not _is_ended(data, low, high):
        return _LINE_DROPPED
    if not has_words:
        return _LINE_DROPPED
    kinds = kinds_in(data, low, high, phrases)
    if rules[LOREM_RULE] and kinds >> LOREM & 1:
        return _LOREM_LINE
    if rules[JAVASCRIPT_RULE] and kinds >> JAVASCRIPT & 1:
        return _LINE_DROPPED
    if rules[CURLY_RULE] and find_byte(data, low, high, 0x7B) < high:
        return _CURLY_LINE
    return _LINE_DROPPED if rules[POLICY_RULE] and kinds >> POLICY & 1 else _LINE_KEPT


@inline
def _take_line(
    data: Bytes, low: int, high: int, rules: Longs, classes: Classes, phrases: Bytes, out: Bytes, at: int
) -> tuple[int, int]:
    """Write a stripped line to `out` from `at` on if it is kept; return what becomes of it, and where it ends there."""
    longest = rules[MAX_WORD_LENGTH]
    if longest != _OFF and high - low > longest and _has_long_word(data, low, high, longest):
        return _LINE_DROPPED, at
    has_words = _has_words(data, low, high, rules[MIN_WORDS])
    if rules[CITATIONS] and find_byte(data, low, high, 0x5B) < high:
        end = _copy_without_citations(data, low, high, out, at, classes)
        return _judge(out, at, end, has_words, rules, phrases), end
    fate = _judge(data, low, high, has_words, rules, phrases)
    return fate, copy_bytes(data, low, high, out, at) if fate == _LINE_KEPT else at


@sized(
    **TEXTS,
    rules=lambda: POLICY_RULE + 1,
    classes=lambda: CLASS_BLOCKS,
    phrases=lambda: SHIFTS + 2,
    out=lambda first, starts, stops, documents: (
        first + bytes_of_texts(starts, stops, documents) + documents + ROOM_BEHIND
    ),
    lines=lambda starts, stops, documents: 2 * (bytes_of_texts(starts, stops, documents) + documents),
    firsts=lambda documents: documents + 1,
    fates=lambda documents: documents,
    texts=lambda documents: 2 * documents,
)
def clean_lines(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    documents: int,
    rules: Longs,
    classes: Classes,
    phrases: Bytes,
    out: Bytes,
    first: int,
    lines: Longs,
    firsts: Longs,
    fates: Longs,
    texts: Longs,
) -> None:
    """Apply the line rules to every text; kept lines are written to `out` from `first` on, a newline after each.

    rules   [8]      see MAX_WORD_LENGTH and the others
    lines   [2 * L]  where kept lines begin and end in `out`; room for one per byte, and one more for each text
    firsts  [D + 1]  text d has lines firsts[d] to firsts[d + 1]
    fates   [D]      KEPT, or why a text is dropped, which has no lines then
    texts   [2 * D]  where the kept lines of a text, stripped as a whole, begin and end in `out`
    """
    firsts[0] = 0
    written = first
    for d in range(documents):
        start, stop = starts[d], stops[d]
        at, count = written, firsts[d]
        fates[d] = KEPT
        while start < stop:
            end = find_break(data, start, stop)
            low = word_start(data, start, end)
            fate, line_end = _take_line(data, low, last_word_stop(data, low, end), rules, classes, phrases, out, at)
            if fate == _LINE_KEPT:
                lines[2 * count], lines[2 * count + 1] = at, line_end
                out[line_end] = 0x0A
                at, count = line_end + 1, count + 1
            elif fate != _LINE_DROPPED:
                fates[d] = LOREM_IPSUM if fate == _LOREM_LINE else CURLY_BRACKET
                at, count = written, firsts[d]
                break
            start = end + break_length(data, end, stop) if end < stop else stop
        low = word_start(out, written, at)
        texts[2 * d], texts[2 * d + 1] = low, last_word_stop(out, low, at)
        firsts[d + 1], written = count, at
