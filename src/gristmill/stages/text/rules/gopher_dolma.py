"""Gopher's rules as Dolma 1.5 tags and mixes them: tagger `gopher_v1` or `gopher_v2`, thresholds of its mixer.

Words are what stands between white space. The taggers differ in lines: v1 cuts at every newline, v2 at runs of them.
All occurrences of a repeated line or n-gram count, not only those after the first, over the characters that are not
white space (though a repeated line counts with its white space). The reasons are the names of Dolma's attributes.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median
from typing import Literal

from gristmill.errors import ConfigError
from gristmill.stages.text.judging.rule import LazyMeasures, Measures, Rule, RuleSet, published, share
from gristmill.stages.text.rules.gopher_datatrove import DUP_N_GRAMS, STOP_WORDS, TOP_N_GRAMS
from gristmill.stages.text.rules.word_ngrams import WordNGrams

_SYMBOLS = ("#", "…")
_BULLETS = ("*", "-")


@dataclass
class DolmaGopher(RuleSet):
    """Drop what does not read like prose or repeats itself.

    The median length of words is bounded, not the mean; a symbol is a word that contains # or …; common words count as
    often as they occur. `dup_line_char_frac` is 0.3 in Dolma's mixer where Gopher has 0.2.
    """

    tagger: Literal["gopher_v1", "gopher_v2"] = "gopher_v2"
    min_words: int | None = 50
    max_words: int | None = 100000
    min_median_word_length: float | None = 3
    max_median_word_length: float | None = 10
    max_symbol_word_ratio: float | None = 0.1
    min_alpha_words_ratio: float | None = 0.8
    min_required_words: int | None = 2
    max_bullet_lines_ratio: float | None = 0.9
    max_ellipsis_lines_ratio: float | None = 0.3
    dup_line_frac: float | None = 0.3
    dup_line_char_frac: float | None = 0.3
    top_n_grams: Sequence[tuple[int, float]] = TOP_N_GRAMS
    dup_n_grams: Sequence[tuple[int, float]] = DUP_N_GRAMS

    def __post_init__(self) -> None:
        if self.tagger not in ("gopher_v1", "gopher_v2"):
            raise ConfigError(f"DolmaGopher: expected tagger 'gopher_v1' or 'gopher_v2'; got {self.tagger!r}")

    def rules(self) -> list[Rule]:
        return published(
            Rule("word_count", "words", low=self.min_words, high=self.max_words),
            Rule("median_word_length", "median_word_length", self.min_median_word_length, self.max_median_word_length),
            Rule("symbol_to_word_ratio", "symbols_per_word", high=self.max_symbol_word_ratio),
            Rule(
                "fraction_of_words_with_alpha_character", "share_of_words_with_a_letter", low=self.min_alpha_words_ratio
            ),
            Rule("required_word_count", "required_words", low=self.min_required_words),
            Rule(
                "fraction_of_lines_starting_with_bullet_point",
                "share_of_bullet_lines",
                high=self.max_bullet_lines_ratio,
            ),
            Rule(
                "fraction_of_lines_ending_with_ellipsis", "share_of_ellipsis_lines", high=self.max_ellipsis_lines_ratio
            ),
            Rule("fraction_of_duplicate_lines", "share_of_repeated_lines", high=self.dup_line_frac),
            Rule(
                "fraction_of_characters_in_duplicate_lines",
                "share_of_characters_in_repeated_lines",
                high=self.dup_line_char_frac,
            ),
            *(
                Rule(f"fraction_of_characters_in_most_common_{n}grams", f"share_of_top_{n}_gram", high=limit)
                for n, limit in self.top_n_grams
            ),
            *(
                Rule(f"fraction_of_characters_in_duplicate_{n}grams", f"share_of_duplicated_{n}_grams", high=limit)
                for n, limit in self.dup_n_grams
            ),
        )

    def measure_document(self, text: str) -> Measures:
        read = _Text(text, self.tagger)
        return LazyMeasures(
            {
                "words": lambda: len(read.words),
                "median_word_length": lambda: median(map(len, read.words)) if read.words else 0.0,
                "symbols_per_word": lambda: read.share_of_words(lambda word: any(s in word for s in _SYMBOLS)),
                "share_of_words_with_a_letter": lambda: read.share_of_words(has_letter),
                "required_words": lambda: sum(word in STOP_WORDS for word in read.words),
                "share_of_bullet_lines": lambda: read.share_of_lines(lambda line: line.startswith(_BULLETS)),
                "share_of_ellipsis_lines": lambda: read.share_of_lines(lambda line: line.endswith("…")),
                "share_of_repeated_lines": lambda: read.repeated_lines[0] / len(read.lines),
                "share_of_characters_in_repeated_lines": lambda: read.repeated_lines[1] / read.chars,
                **{f"share_of_top_{n}_gram": partial(read.share_of_top, n) for n, _ in self.top_n_grams},
                **{f"share_of_duplicated_{n}_grams": partial(read.share_of_repeats, n) for n, _ in self.dup_n_grams},
            }
        )


@dataclass(frozen=True)
class _Text:
    """A text as the rules look at it."""

    text: str
    tagger: str

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n") if self.tagger == "gopher_v1" else re.split("\n+", self.text)

    @cached_property
    def chars(self) -> int:
        return max(sum(map(len, self.words)), 1)

    @cached_property
    def repeated_lines(self) -> tuple[int, int]:
        """All occurrences of lines that occur more than once, and their characters."""
        repeated = [(line, count) for line, count in Counter(self.lines).items() if count > 1]
        return sum(count for _, count in repeated), sum(len(line) * count for line, count in repeated)

    @cached_property
    def ngrams(self) -> WordNGrams:
        return WordNGrams(self.words)

    def share_of_words(self, is_one: Callable[[str], bool]) -> float:
        return share(sum(map(is_one, self.words)), len(self.words))

    def share_of_lines(self, is_one: Callable[[str], bool]) -> float:
        return sum(map(is_one, self.lines)) / len(self.lines)

    def share_of_top(self, n: int) -> float:
        """Characters of all occurrences of the most frequent n-gram, the first seen of several; it may occur once."""
        found = self.ngrams.of(n)
        if not len(found.kinds):
            return 0.0
        first = found.firsts[found.most_frequent].min()
        return int(found.chars[first] * found.counts.max()) / self.chars

    def share_of_repeats(self, n: int) -> float:
        """Characters of n-grams that occur more than once over those of all n-grams; overlaps count on both sides."""
        found = self.ngrams.of(n)
        return share(int(found.chars[found.is_repeated].sum()), int(found.chars.sum()))


def has_letter(word: str) -> bool:
    """Whether some character of a word is a letter."""
    return word.isalpha() or any(map(str.isalpha, word))
