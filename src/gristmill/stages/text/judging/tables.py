"""The tables kernels look characters and phrases up in. Made when first needed, the same in every process."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import layout

POLICY_PHRASES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "privacy overview",
    "use of cookies",
    "use cookies",
    "privacy & cookies policy",
    "privacy and cookies policy",
)
LOREM_IPSUM_PHRASE = "lorem ipsum"

_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\n?!,."
_IN_URL = _PLAIN.replace(b"\n", b"") + b"$-_@&+/:=#~*()"
_KELVIN = "\N{KELVIN SIGN}"  # the one character beyond ASCII whose small letter, k, is in ASCII


@cache
def character_classes() -> NDArray[np.int64]:
    """For each byte, the counters of kernels/text/characters.py it adds to."""
    classes = np.zeros(256, np.int64)
    is_start = [byte & 0xC0 != 0x80 for byte in range(256)]  # other bytes continue a character
    columns = [[b for b in range(256) if is_start[b]], _PLAIN, b"0123456789", b"\t\n\r\b ", b"{}[]()"]
    for column, members in enumerate(columns):
        classes[list(members)] += 1 << (layout.CLASS_BITS * column)
    return classes


@cache
def letters() -> NDArray[np.uint8]:
    """One bit for each character up to the last letter: whether it is one (`str.isalpha`)."""
    codes = np.arange(8 * layout.LETTER_BYTES, dtype=np.uint32)
    # Every worker makes this table, so numpy does it, in 1 ms: from Python's own data, but without a string for each.
    return np.packbits(np.char.isalpha(codes.view("U1")), bitorder="little")


@cache
def url_classes() -> NDArray[np.uint8]:
    """1 for a byte that may stand in a URL, 2 for a hexadecimal digit, 3 for both."""
    classes = np.zeros(256, np.uint8)
    classes[list(_IN_URL)] |= layout.IN_URL
    classes[list(b"0123456789abcdefABCDEF")] |= layout.HEX_DIGIT
    return classes


@cache
def boilerplate_phrases() -> NDArray[np.uint8]:
    """Policy phrases as kind 0, "lorem ipsum" as kind 1."""
    return phrase_table([*((phrase, 0) for phrase in POLICY_PHRASES), (LOREM_IPSUM_PHRASE, 1)])


def phrase_table(phrases: list[tuple[str, int]]) -> NDArray[np.uint8]:
    """Lay out phrases in small letters, each with its kind, for kernels/text/phrases.py. A kind is 0 or 1."""
    spellings = [(text.encode(), kind) for phrase, kind in phrases for text in _spellings(phrase)]
    window = min(len(text) for text, _ in spellings)
    if window < 2 or max(len(text) for text, _ in spellings) > 255:
        raise ValueError(f"phrase_table: expected phrases of 2 to 255 bytes; got {phrases}")
    shifts = np.full(layout.SHIFTS, window - 1, np.uint8)
    mask = (1 << layout.PAIR_BITS) - 1
    for text, _ in spellings:
        for last in range(1, window):
            pair = (text[last - 1] & mask) << layout.PAIR_BITS | text[last] & mask
            shifts[pair] = min(shifts[pair], window - 1 - last)
    entries = b"".join(bytes([kind, len(text)]) + text for text, kind in spellings)
    return np.concatenate([shifts, np.frombuffer(bytes([window, len(spellings)]) + entries, np.uint8)])


def _spellings(phrase: str) -> list[str]:
    """All texts beside those in ASCII that become the phrase when they are lower-cased."""
    if "k" not in phrase:
        return [phrase]
    before, _, after = phrase.partition("k")
    return [f"{before}{k}{rest}" for k in ("k", _KELVIN) for rest in _spellings(after)]
