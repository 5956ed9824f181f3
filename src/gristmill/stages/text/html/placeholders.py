"""`Placeholders`: words that stand for formulas and code while an extractor works, whichever extractor that is.

Extractors break formulas into their characters, drop scripts, join the lines of code and take short paragraphs for
menus. None of them changes a word. So each formula and each piece of code is replaced by a word that does not occur in
the page, and put back into the text afterwards. A long block of code is represented by several copies of its word:
extractors judge paragraphs by their length.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resiliparse.parse.html import DOMNode

_PREFIXES = ("qzx", "qxz", "zqj", "jqz", "xqj", "vqx", "qvj", "jvq")  # no language has words like these
_WEIGHT_CHARS = 240  # of a long block: enough to be taken for a paragraph by any extractor
_BLANK = re.compile(r"[ \t]+")


@dataclass
class Placeholders:
    """The words of one page, and what they stand for."""

    prefix: str
    kept: list[tuple[str, bool]] = field(default_factory=list)  # text, whether it is a block
    num_lost: int = 0  # after `restore`: those the extractor has left out

    @classmethod
    def for_page(cls, page: str) -> "Placeholders":
        """Return an empty set whose words do not occur in the page."""
        for prefix in _PREFIXES:
            if prefix not in page:
                return cls(prefix)
        number = 0
        while f"{_PREFIXES[0]}{_letters(number)}q" in page:
            number += 1
        return cls(f"{_PREFIXES[0]}{_letters(number)}q")

    def word(self, number: int) -> str:
        """Return the word that stands for a piece."""
        return f"{self.prefix}{_letters(number)}x"

    def words(self) -> frozenset[str]:
        """Return all words there are, which an extractor may take for stop words."""
        return frozenset(map(self.word, range(len(self.kept))))

    def keep(self, text: str, *, block: bool = False) -> str:
        """Remember a piece of text; return what stands for it. A block gets a weight like its own."""
        self.kept.append((text, block))
        word = self.word(len(self.kept) - 1)
        weight = min(len(text), _WEIGHT_CHARS) if block else 0
        return " ".join([word] * max(1, weight // (len(word) + 1)))

    def restore(self, paragraphs: Sequence[str]) -> list[str]:
        """Return the paragraphs with what the words stand for, each once; count those that are gone."""
        if not self.kept:
            return list(paragraphs)
        seen: set[int] = set()
        pattern = re.compile(rf"({self.prefix}([a-p]+)x)(?:[ \t]+\1)*")
        made = []
        for paragraph in paragraphs:
            text = pattern.sub(lambda found: self._piece(found, seen), paragraph)
            if text.strip() or paragraph == text:
                made.append(text)
        self.num_lost = len(self.kept) - len(seen)
        return made

    def _piece(self, found: "re.Match[str]", seen: set[int]) -> str:
        number = _number(found[2])
        if number >= len(self.kept):
            return found[0]
        if number in seen:
            return ""
        seen.add(number)
        text, block = self.kept[number]
        if not block:
            return text
        before, after = found.string[: found.start()], found.string[found.end() :]
        return ("\n" if before.strip() else "") + text + ("\n" if after.strip() else "")


def _letters(number: int) -> str:
    """A number in letters: digits at the end of a word are cut off by some tools."""
    return "".join(chr(ord("a") + int(digit, 16)) for digit in f"{number:02x}")


def _number(letters: str) -> int:
    return int("".join(f"{ord(letter) - ord('a'):x}" for letter in letters), 16)


def is_attached(node: "DOMNode") -> bool:
    """Whether a node is still in its page, and not in something that was replaced."""
    at = node
    while at.parent is not None:
        at = at.parent
    return bool(at.tag == "#document")
