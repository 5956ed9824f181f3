"""The characters of a page to lines in the order they are read.

pdfium gives characters in the order they were drawn, with a box each. They are joined to pieces of lines, the pieces
are put in order by `kernels.layout.reading_order`, and lines of a paragraph are joined: a line that fills its column
goes on in the next.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gristmill.kernels.layout.reading_order import BOTTOM, LEFT, RIGHT, TOP, Boxes, Numbers, lines_of, reading_order

_NEW_PIECE = 1.0  # a gap of this many heights ends a piece: columns and cells are farther apart, words are nearer
_BACK = 2.0  # and so does a step back of this many
_OVERLAP = 0.5  # of the smaller height, that two characters of one line share
_FULL = 0.88  # a line that reaches this far into its region goes on in the next
_PARAGRAPH = 0.6  # heights between two lines: more is a new paragraph
_HYPHENS = ("-", "\u2010", "\u00ad", "\x02")  # pdfium has \x02 where a word was divided at the end of a line
_WORD_END = re.compile(r"(\w+)[-\u2010\u00ad\x02]$")
_WORD = re.compile(r"\w+")
_LONGEST_WORD = 60  # characters looked at before a hyphen
_WORD_START = re.compile(r"^(\w+)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")
_LINE_ENDS = (0x0A, 0x0D)
_SPACES = (0x20, 0xA0, 0)


class Character(NamedTuple):
    """A character of a page, and its box."""

    code: int
    left: float
    right: float
    bottom: float
    top: float


@dataclass
class Line:
    """A line of text: whether it goes on in the next, whether a paragraph begins with it, and how high it stands."""

    text: str
    goes_on: bool = False
    begins: bool = False
    middle: float = 0.0


def page_lines(characters: list[Character]) -> list[Line]:
    """Return the lines of a page in the order they are read."""
    texts, boxes = _pieces(characters)
    if not texts:
        return []
    made: list[Line] = []
    for region in reading_order(boxes):
        made += _region_lines(texts, boxes, region)
    return made


def _pieces(characters: list[Character]) -> tuple[list[str], Boxes]:
    """Characters in a row on one line, as texts with their boxes. pdfium has put spaces between words."""
    pieces = _Pieces()
    for character in characters:
        if character.code in _LINE_ENDS:
            pieces.close()
        elif character.code in _SPACES:
            pieces.add_space()
        elif character.right > character.left and character.top > character.bottom:  # else nothing is drawn
            pieces.add(character)
    pieces.close()
    return pieces.texts, np.array(pieces.boxes, np.float64).reshape(-1, 4)


class _Pieces:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.boxes: list[tuple[float, float, float, float]] = []
        self._letters: list[str] = []
        self._box = (0.0, 0.0, 0.0, 0.0)

    def add_space(self) -> None:
        if self._letters:
            self._letters.append(" ")

    def add(self, character: Character) -> None:
        code, left, right, bottom, top = character
        own_left, own_bottom, own_right, own_top = self._box
        if self._letters:
            height = max(top - bottom, own_top - own_bottom)
            shared = min(top, own_top) - max(bottom, own_bottom)
            smaller = min(top - bottom, own_top - own_bottom)
            gap = own_left - right if is_right_to_left(code) else left - own_right
            if shared < _OVERLAP * smaller or gap > _NEW_PIECE * height or gap < -_BACK * height:
                self.close()
        if self._letters:
            self._box = min(own_left, left), min(own_bottom, bottom), max(own_right, right), max(own_top, top)
        else:
            self._box = left, bottom, right, top
        self._letters.append(chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd")

    def close(self) -> None:
        text = " ".join("".join(self._letters).split())
        if text:
            self.texts.append(text)
            self.boxes.append(self._box)
        self._letters.clear()


def _region_lines(texts: list[str], boxes: Boxes, region: Numbers) -> list[Line]:
    left, right = boxes[region, LEFT].min(), boxes[region, RIGHT].max()
    lines: list[Line] = []
    before: float | None = None
    for numbers in lines_of(boxes, region):
        own = boxes[numbers]
        top, bottom = own[:, TOP].max(), own[:, BOTTOM].min()
        is_far = before is None or before - top > _PARAGRAPH * (top - bottom)
        shown = [texts[number] for number in numbers]
        if _reads_leftwards(shown):
            shown.reverse()
            goes_on = bool(right - own[:, LEFT].min() >= _FULL * (right - left))
        else:
            goes_on = bool(own[:, RIGHT].max() - left >= _FULL * (right - left))
        lines.append(Line(" ".join(shown), goes_on=goes_on, begins=is_far, middle=float(top + bottom) / 2))
        before = bottom
    return lines


def is_right_to_left(code: int) -> bool:
    """Whether a character belongs to a script that is read from right to left: Hebrew, Arabic and their neighbours."""
    return 0x590 <= code <= 0x8FF or 0xFB1D <= code <= 0xFDFF or 0xFE70 <= code <= 0xFEFF


def _reads_leftwards(texts: list[str]) -> bool:
    letters = [ord(letter) for text in texts for letter in text if letter.isalpha()]
    return 2 * sum(map(is_right_to_left, letters)) > len(letters)


def words_of(lines: list[Line]) -> set[str]:
    """The words of some lines in lower case, except halves of those that are divided between two lines."""
    words: set[str] = set()
    is_divided = False
    for line in lines:
        found = _WORD.findall(line.text.lower())
        begun, is_divided = is_divided, line.text.endswith(_HYPHENS)
        words.update(found[1 if begun else 0 : len(found) - is_divided])
    return words


def join_lines(lines: list[Line], words: set[str]) -> str:
    """Return lines as text: those that go on are joined, and words that were divided are put together.

    A hyphen at the end of a line stays if both parts are words of the document and the whole is not: `well-known`.
    """
    made = ""
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else None
        if before is None or line.begins:
            made += line.text if before is None else f"\n\n{line.text}"
        elif made.endswith(_HYPHENS) and _WORD_START.match(line.text) and _WORD_END.search(made[-_LONGEST_WORD:]):
            made = _put_together(made, line.text, words)
        else:
            made += (" " if before.goes_on else "\n") + line.text
    return _CONTROL.sub("", made.replace("\x02", "-"))


def _put_together(before: str, behind: str, words: set[str]) -> str:
    first, second = _WORD_END.search(before[-_LONGEST_WORD:]), _WORD_START.match(behind)
    if first is None or second is None:
        return before + behind
    parts = first[1].lower(), second[1].lower()
    has_hyphen = "".join(parts) not in words and all(part in words for part in parts)
    return before[:-1] + ("-" if has_hyphen else "") + behind
