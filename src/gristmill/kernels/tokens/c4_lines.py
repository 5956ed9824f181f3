"""The line rules of C4: which lines of a text are kept, without citation marks, and which texts are dropped at sight.

Lines are those of `str.splitlines`, stripped. Why a line went is counted, in the order the rules are applied.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.affixes import point_at, width_at
from gristmill.kernels.tokens.code_points import DECIMAL, SPACE, class_table
from gristmill.kernels.tokens.jit import jit
from gristmill.kernels.tokens.pieces import Bytes, Longs, line_end, skip_space, skip_space_back

KEPT, LOREM_IPSUM, CURLY_BRACKET = range(3)  # what becomes of a text
LINE_FATES = ("kept", "too_long_word", "no_terminal_punct", "too_few_words", "javascript", "policy")
_LINE_KEPT, _LONG_WORD, _NO_END, _FEW_WORDS, _JAVASCRIPT, _POLICY = range(6)
_OFF = -1

_LOREM = np.frombuffer(b"lorem ipsum", np.uint8)
_SCRIPT = np.frombuffer(b"javascript", np.uint8)
_POLICIES = (
    np.frombuffer(b"terms of use", np.uint8),
    np.frombuffer(b"privacy policy", np.uint8),
    np.frombuffer(b"cookie policy", np.uint8),
    np.frombuffer(b"uses cookies", np.uint8),
    np.frombuffer(b"use of cookies", np.uint8),
    np.frombuffer(b"use cookies", np.uint8),
)
_EDIT = np.frombuffer(b"[edit]", np.uint8)
_NEEDED = np.frombuffer(b"[citation needed]", np.uint8)


class LineRules(NamedTuple):
    """Which rules apply; -1 turns a number off."""

    max_word_length: int
    min_words_per_line: int
    remove_citations: bool
    filter_no_terminal_punct: bool
    filter_lorem_ipsum: bool
    filter_javascript: bool
    filter_curly_bracket: bool
    filter_policy: bool


class CleanLines(NamedTuple):
    """Kept lines end to end: line l is data[offsets[l]:offsets[l + 1]], text d has lines first[d] to first[d + 1]."""

    data: Bytes
    offsets: Longs  # [L + 1]
    first: Longs  # [D + 1]
    fates: NDArray[np.int8]  # [D] KEPT, LOREM_IPSUM or CURLY_BRACKET
    counts: Longs  # [D, 6] lines by LINE_FATES


def clean_lines(data: Bytes, offsets: Longs, rules: LineRules, wanted: NDArray[np.bool_]) -> CleanLines:
    """Apply the line rules to every text that is wanted; the others have no lines then."""
    return CleanLines(*_clean(data, offsets, rules, wanted, class_table()))


def join_lines(lines: CleanLines) -> tuple[Bytes, Longs]:
    """Return the texts of the kept lines, joined with newlines and stripped, as bytes and offsets [D + 1]."""
    return _join(lines.data, lines.offsets, lines.first, class_table())


@jit
def _clean(
    data: Bytes, offsets: Longs, rules: LineRules, wanted: NDArray[np.bool_], classes: NDArray[np.uint32]
) -> tuple[Bytes, Longs, Longs, NDArray[np.int8], Longs]:
    out = np.empty(len(data), np.uint8)
    ends = np.zeros(1024, np.int64)
    lines = 0
    first = np.zeros(len(offsets), np.int64)
    fates = np.zeros(len(offsets) - 1, np.int8)
    counts = np.zeros((len(offsets) - 1, 6), np.int64)
    for text in range(len(offsets) - 1):
        start, high = offsets[text], offsets[text + 1]
        first_line = lines
        while wanted[text] and start < high:
            end, after = line_end(data, start, high)
            fate, stop = _judge(data, start, end, out, ends[lines], rules, classes)
            if fate < 0:
                fates[text] = -fate
                lines = first_line
                break
            counts[text, fate] += 1
            if fate == _LINE_KEPT:
                lines += 1
                if lines == len(ends):
                    ends = np.concatenate((ends, np.zeros(lines, np.int64)))
                ends[lines] = stop
            start = after
        first[text + 1] = lines
    return out[: ends[lines]], ends[: lines + 1], first, fates, counts


@jit
def _judge(
    data: Bytes, start: int, end: int, out: Bytes, at: int, rules: LineRules, classes: NDArray[np.uint32]
) -> tuple[int, int]:
    """Write a line without citations to `out` from `at` on.

    Returns what becomes of it (below 0: of its text) and where it ends.
    """
    low = skip_space(data, start, end, classes)
    high = skip_space_back(data, low, end, classes)
    words, longest = _words(data, low, high, classes)
    if rules.max_word_length != _OFF and longest > rules.max_word_length:
        return _LONG_WORD, at
    stop = _copy(data, low, high, out, at, rules.remove_citations, classes)
    if rules.filter_no_terminal_punct and not _is_ended(out, at, stop):
        return _NO_END, at
    if words < rules.min_words_per_line:
        return _FEW_WORDS, at
    if rules.filter_lorem_ipsum and _contains(out, at, stop, _LOREM):
        return -LOREM_IPSUM, at
    if rules.filter_javascript and _contains(out, at, stop, _SCRIPT):
        return _JAVASCRIPT, at
    if rules.filter_curly_bracket:
        for byte in range(at, stop):
            if out[byte] == 123:
                return -CURLY_BRACKET, at
    if rules.filter_policy and _has_policy(out, at, stop):
        return _POLICY, at
    return _LINE_KEPT, stop


@jit
def _words(data: Bytes, low: int, high: int, classes: NDArray[np.uint32]) -> tuple[int, int]:
    """The number of words and the characters of the longest."""
    words = longest = length = 0
    at = low
    while at < high:
        if classes[point_at(data, at)] & SPACE:
            length = 0
        else:
            words += length == 0
            length += 1
            longest = max(longest, length)
        at += width_at(data, at)
    return words, longest


@jit
def _copy(
    data: Bytes,
    low: int,
    high: int,
    out: Bytes,
    at: int,
    remove: bool,
    classes: NDArray[np.uint32],
) -> int:
    """Copy a line, leaving out [12], [edit] and [citation needed]."""
    while low < high:
        length = _citation(data, low, high, classes) if remove and data[low] == 91 else 0
        if length:
            low += length
            continue
        out[at] = data[low]
        at += 1
        low += 1
    return at


@jit
def _citation(data: Bytes, low: int, high: int, classes: NDArray[np.uint32]) -> int:
    """Length of the citation mark that starts here, or 0."""
    at = low + 1
    while at < high and classes[point_at(data, at)] & DECIMAL:
        at += width_at(data, at)
    if at < high and data[at] == 93:
        return at + 1 - low
    if _starts(data, low, high, _EDIT):
        return len(_EDIT)
    return len(_NEEDED) if _starts(data, low, high, _NEEDED) else 0


@jit
def _starts(data: Bytes, low: int, high: int, mark: Bytes) -> bool:
    if high - low < len(mark):
        return False
    for index in range(len(mark)):
        if data[low + index] != mark[index]:
            return False
    return True


@jit
def _is_ended(data: Bytes, low: int, high: int) -> bool:
    """Whether a line ends with . ? ! " or ', but not with three full stops."""
    if low == high:
        return False
    last = data[high - 1]
    if last == 46:
        return not (high - low > 2 and data[high - 2] == 46 and data[high - 3] == 46)
    return last == 63 or last == 33 or last == 34 or last == 39


@jit
def _contains(data: Bytes, low: int, high: int, phrase: Bytes) -> bool:
    """Whether the lower-cased line contains a phrase of ASCII; U+212A, the sign of the kelvin, is a k then."""
    for start in range(low, high):
        if data[start] | 32 == phrase[0] and _matches(data, start, high, phrase):
            return True
    return False


@jit
def _matches(data: Bytes, at: int, high: int, phrase: Bytes) -> bool:
    for index in range(len(phrase)):
        if at >= high:
            return False
        byte = data[at]
        at += 1
        if byte == 0xE2 and at + 1 < high and data[at] == 0x84 and data[at + 1] == 0xAA:
            byte = np.uint8(107)
            at += 2
        elif 65 <= byte <= 90:
            byte = np.uint8(byte + 32)
        if byte != phrase[index]:
            return False
    return True


@jit
def _has_policy(data: Bytes, low: int, high: int) -> bool:
    for start in range(low, high):
        letter = data[start] | 32
        if letter == 116 or letter == 112 or letter == 99 or letter == 117:  # t p c u
            for phrase in _POLICIES:
                if _matches(data, start, high, phrase):
                    return True
    return False


@jit
def _join(data: Bytes, offsets: Longs, first: Longs, classes: NDArray[np.uint32]) -> tuple[Bytes, Longs]:
    out = np.empty(len(data) + len(offsets), np.uint8)
    ends = np.zeros(len(first), np.int64)
    at = 0
    for text in range(len(first) - 1):
        start = at
        for line in range(first[text], first[text + 1]):
            if at > start:
                out[at] = 10
                at += 1
            for byte in range(offsets[line], offsets[line + 1]):
                out[at] = data[byte]
                at += 1
        low = skip_space(out, start, at, classes)
        high = skip_space_back(out, low, at, classes)
        for byte in range(low, high):
            out[start + byte - low] = out[byte]
        at = start + high - low
        ends[text + 1] = at
    return out[:at], ends
