"""Gopher's rules as Dolma 1.5 tags and mixes them: tagger `gopher_v1` or `gopher_v2`, thresholds of its mixer.

Words are what stands between white space. The taggers differ in lines: v1 cuts at every newline, v2 at runs of them.
All occurrences of a repeated line or n-gram count, not only those after the first, over the characters that are no
white space (though a repeated line counts with its white space). The reasons are the names of Dolma's attributes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from gristmill.errors import ConfigError
from gristmill.stages.text.rules.gopher_datatrove import STOP_WORDS, share
from gristmill.stages.text.rules.repetition_limits import DUP_N_GRAMS, TOP_N_GRAMS
from gristmill.stages.text.rules.rule_set import Measures, Rule, RuleSet

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
        return [
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
        ]

    def measure_document(self, text: str) -> Measures:
        words = text.split()
        lines = text.split("\n") if self.tagger == "gopher_v1" else re.split("\n+", text)
        repeated = [(line, count) for line, count in Counter(lines).items() if count > 1]
        chars = max(sum(map(len, words)), 1)
        return {
            "words": len(words),
            "median_word_length": median(map(len, words)) if words else 0.0,
            "symbols_per_word": share(sum(any(s in word for s in _SYMBOLS) for word in words), len(words)),
            "share_of_words_with_a_letter": share(sum(any(map(str.isalpha, word)) for word in words), len(words)),
            "required_words": sum(word in STOP_WORDS for word in words),
            "share_of_bullet_lines": sum(line.startswith(_BULLETS) for line in lines) / len(lines),
            "share_of_ellipsis_lines": sum(line.endswith("…") for line in lines) / len(lines),
            "share_of_repeated_lines": sum(count for _, count in repeated) / len(lines),
            "share_of_characters_in_repeated_lines": sum(len(line) * count for line, count in repeated) / chars,
            **{f"share_of_top_{n}_gram": _top_chars(words, n) / chars for n, _ in self.top_n_grams},
            **{f"share_of_duplicated_{n}_grams": _repeated_share(words, n) for n, _ in self.dup_n_grams},
        }


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def _chars(ngram: tuple[str, ...]) -> int:
    return sum(map(len, ngram))


def _top_chars(words: Sequence[str], n: int) -> int:
    """Characters of all occurrences of the most frequent n-gram, the first one seen of several; it may occur once."""
    ngram, count = max(_ngrams(words, n).items(), key=lambda item: item[1], default=((), 0))
    return _chars(ngram) * count


def _repeated_share(words: Sequence[str], n: int) -> float:
    """Characters of n-grams that occur more than once over those of all n-grams; overlaps count twice on both sides."""
    counts = _ngrams(words, n)
    repeated = sum(_chars(ngram) * count for ngram, count in counts.items() if count > 1)
    return share(repeated, sum(_chars(ngram) * count for ngram, count in counts.items()))
