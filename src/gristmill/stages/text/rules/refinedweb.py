"""RefinedWeb's corrections of lines as DCLM applies them (Penedo et al., 2023, https://arxiv.org/abs/2306.01116).

Lines that are shouted, numbers, counters or single words go, and a few phrases are cut out of short lines; a document
that loses too many words is dropped. The steps follow each other over the whole text, which is stripped between
them. Filters on URLs and on the language are not part of this set.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.stages.text.judging.rule import Measures, Rule, RuleSet, published, share
from gristmill.stages.text.rules.gopher_dclm import counted_words

_MANY_NEWLINES = re.compile(r"\n{3,}")
_COUNTED = "likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes|downvotes|downloads|views|followers"
_COUNTER = re.compile(rf"^\W*\d(?:,|\.|\d)*(?:k|m|b)?\s+(?:{_COUNTED})\W*$")


class _Phrase(NamedTuple):
    """A phrase as it is cut out of a line, and what must be somewhere in a text that has it."""

    pattern: re.Pattern[str]
    somewhere: re.Pattern[str]


# As the tool has them, where a full stop stands for any character.
_PHRASES = tuple(
    _Phrase(re.compile(pattern, re.IGNORECASE), re.compile(somewhere, re.IGNORECASE))
    for pattern, somewhere in (
        (r"\s?(?:items in cart)", "items in cart"),
        (r"\s?(?:read more...)$", "read more"),
        (r"^(?:sign-in)\s?", "sign-in"),
    )
)
_UPPER, _DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"


@dataclass
class RefinedWebLines(RuleSet):
    """Drop lines of menus and counters, and documents that lose more than `max_removed_ratio` of their words.

    Words are counted between white space if they begin with a letter or digit.
    """

    max_uppercase_ratio: float = 0.5
    max_numeric_ratio: float = 0.999999
    min_words_per_line: int = 2
    max_words_with_phrase: int = 10
    max_removed_ratio: float = 0.05

    def rules(self) -> list[Rule]:
        return published(
            Rule("empty", "words_left", low=1),
            Rule("word_removal_ratio_filter", "share_of_words_removed", high=self.max_removed_ratio),
        )

    def measure_document(self, text: str) -> Measures:
        before, left = len(counted_words(text)), len(counted_words(self.rewrite_document(text)))
        # A line separator that is stripped may expose a word that was not counted before.
        return {"words_left": left, "share_of_words_removed": share(max(0, before - left), before)}

    def rewrite_document(self, text: str) -> str:
        text = _MANY_NEWLINES.sub("\n\n", text)
        text = _keep_lines(text, lambda line: _share_of(str.isupper, _UPPER, line) <= self.max_uppercase_ratio).strip()
        text = _keep_lines(text, lambda line: _share_of(str.isdigit, _DIGITS, line) <= self.max_numeric_ratio).strip()
        text = _keep_lines(text, lambda line: not _is_counter(line)).strip()
        text = _keep_lines(text, lambda line: not line or len(line.split()) >= self.min_words_per_line)
        for phrase in _PHRASES:
            is_there = phrase.somewhere.search(text) is not None
            cut = [self._cut(line, phrase.pattern if is_there else None) for line in text.split("\n")]
            text = "\n".join(line for line in cut if line is not None).strip()
        return text

    def _cut(self, line: str, phrase: re.Pattern[str] | None) -> str | None:
        """Take a phrase out of a short line; a line that was nothing else goes, as does a blank one."""
        if phrase is None:
            return None if self.max_words_with_phrase >= 0 and line.isspace() else line
        if len(line.split()) > self.max_words_with_phrase:
            return line
        left = phrase.sub("", line)
        return None if line and not left.strip() else left


def _keep_lines(text: str, keep: Callable[[str], bool]) -> str:
    return "\n".join(filter(keep, text.split("\n")))


def _is_counter(line: str) -> bool:
    return any(map(str.isdigit, line)) and _COUNTER.search(line.lower()) is not None


def _share_of(kind: Callable[[str], bool], in_ascii: bytes, line: str) -> float:
    """The share of characters of a kind; `in_ascii` are those of them that are ASCII, which are counted faster."""
    if not line.isascii():
        return share(sum(map(kind, line)), len(line))
    return share(len(line) - len(line.encode().translate(None, in_ascii)), len(line))
