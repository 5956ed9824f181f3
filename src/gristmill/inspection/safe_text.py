"""Text of documents made fit for a terminal: what would act there, or hide, is written out instead.

A document may hold escape sequences that clear a screen or change its title, and marks that reverse the direction of
writing, so that a line reads as something it is not. All of these are shown as what they are: `\\x1b`, `\\u202e`.
Printed text is data from elsewhere and is never read as markup of any library.
"""

import unicodedata

# Cc control, Cf format (bidi marks, zero width, tags), Cs half of a surrogate pair, Co private, Cn not assigned, Zl and
# Zp line ends that are not "\n". A joiner between emoji is a Cf too: it is shown as an escape, and nothing is lost.
_ACTS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_TAB = 4


def printable(text: str, *, lines: bool = False) -> str:
    """Return the text with every character that acts or hides as its escape; with `lines`, line ends stay.

    >>> printable("a\\x1b[2Jb\\u202e")
    'a\\\\x1b[2Jb\\\\u202e'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character, lines=lines) for character in text)


def shortened(text: str, most: int) -> str:
    """Return at most so many characters, with an ellipsis if there were more."""
    return text if len(text) <= most else f"{text[: max(most - 1, 0)]}…"


def _shown(character: str, *, lines: bool) -> str:
    if character.isprintable():  # of letters, marks and signs this is the common case, and the cheap one
        return character
    if character == "\n":
        return "\n" if lines else "⏎"
    if character == "\t":
        return " " * _TAB if lines else " "
    kind = unicodedata.category(character)
    if kind not in _ACTS:  # spaces of other widths
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
