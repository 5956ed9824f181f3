"""Gopher's rules as DCLM applies them (Li et al., 2024, https://arxiv.org/abs/2406.11794), also for RefinedWeb.

Most rules take what stands between white space for words; repetition takes the words of Unicode's segmentation (UAX 29)
that begin with a letter or digit, for which the package `uniseg` is needed (`pip install 'gristmill[dclm]'`). Lines and
paragraphs are stripped, and blank ones do not count. DCLM gives no reasons; here they are the names of its functions.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.text.judging.rule import LazyMeasures, Measures, Rule, RuleSet, published, share
from gristmill.stages.text.rules import word_ngrams
from gristmill.stages.text.rules.gopher_datatrove import STOP_WORDS, RepetitionLimits
from gristmill.stages.text.rules.gopher_dolma import has_letter
from gristmill.stages.text.rules.word_ngrams import WordNGrams, unicode_words

_BULLETS = ("●", "•", "*", "-")
_ELLIPSES = ("...", ". . .", "…")
_FASTTEXT_GAPS = re.compile("[ \n\r\t\v\f\0]+")


def counted_words(text: str) -> list[str]:
    """The words of length rules: between ASCII white space, as fastText cuts, beginning with a letter or digit."""
    return [word for word in _FASTTEXT_GAPS.split(text) if word[:1].isalnum()]


def _filled(text: str, gap: str) -> list[str]:
    return [piece for piece in map(str.strip, text.split(gap)) if piece]


@dataclass
class DclmGopherQuality(RuleSet):
    """Drop what does not read like prose. Common words count as often as they occur, in upper or lower case.

    An empty text, and one without words, is dropped for its length.
    """

    min_words: int | None = 50
    max_words: int | None = 100000
    min_mean_word_length: float | None = 3
    max_mean_word_length: float | None = 10
    max_symbol_to_word_ratio: float | None = 0.1
    max_bullet_start_ratio: float | None = 0.9
    max_ellipsis_end_ratio: float | None = 0.3
    max_non_alpha_words_ratio: float | None = 0.2
    min_stop_word: int | None = 2

    def rules(self) -> list[Rule]:
        return published(
            Rule("page_length_filter", "words", low=self.min_words, high=self.max_words),
            Rule("word_length_filter", "mean_word_length", self.min_mean_word_length, self.max_mean_word_length),
            Rule("symbol_ratio_filter", "symbols_per_word", high=self.max_symbol_to_word_ratio),
            Rule("bullet_count_filter", "share_of_bullet_lines", high=self.max_bullet_start_ratio),
            Rule("ellipsis_count_filter", "share_of_ellipsis_lines", high=self.max_ellipsis_end_ratio),
            Rule(
                "alphabetic_word_ratio_filter", "share_of_words_without_a_letter", high=self.max_non_alpha_words_ratio
            ),
            Rule("stop_word_filter", "stop_words", low=self.min_stop_word),
        )

    def measure_document(self, text: str) -> Measures:
        words, lines = text.split(), _filled(text, "\n")
        symbols = sum(map(text.count, ("#", *_ELLIPSES)))
        return LazyMeasures(
            {
                "words": lambda: len(counted_words(text)),
                "mean_word_length": lambda: share(sum(map(len, words)), len(words)),
                "symbols_per_word": lambda: share(symbols, len(words)),
                "share_of_bullet_lines": lambda: share(sum(line.startswith(_BULLETS) for line in lines), len(lines)),
                "share_of_ellipsis_lines": lambda: share(sum(line.endswith(_ELLIPSES) for line in lines), len(lines)),
                "share_of_words_without_a_letter": lambda: share(sum(not has_letter(w) for w in words), len(words)),
                "stop_words": lambda: sum(word.lower() in STOP_WORDS for word in words),
            }
        )


@dataclass
class DclmGopherRepetition(RepetitionLimits):
    """Drop what repeats itself. All occurrences of what is repeated count, over the characters of lines or words alone.

    A text of one line is not judged by its lines, and n-grams that occur once do not count. An empty text is dropped.
    """

    def check_ready(self) -> None:
        word_ngrams.check_ready()

    def rules(self) -> list[Rule]:
        return published(
            Rule("empty", "lines", low=1),
            Rule("dup_line_frac", "share_of_repeated_lines", high=self.dup_line_frac),
            Rule("dup_para_frac", "share_of_repeated_paragraphs", high=self.dup_para_frac),
            Rule("dup_line_char_frac", "share_of_characters_in_repeated_lines", high=self.dup_line_char_frac),
            Rule("dup_para_char_frac", "share_of_characters_in_repeated_paragraphs", high=self.dup_para_char_frac),
            *(Rule(f"top_{n}_gram", f"share_of_top_{n}_gram", high=limit) for n, limit in self.top_n_grams),
            *(Rule(f"dup_{n}_grams", f"share_of_duplicated_{n}_grams", high=limit) for n, limit in self.dup_n_grams),
        )

    def measure_document(self, text: str) -> Measures:
        lines = _filled(text, "\n")
        line_share, line_chars = _repeated(lines)
        paragraph_share, paragraph_chars = _repeated(_filled(text, "\n\n"))
        words = _Words(text)
        return LazyMeasures(
            {
                "lines": lambda: len(lines),
                "share_of_repeated_lines": lambda: line_share,
                "share_of_characters_in_repeated_lines": lambda: line_chars,
                "share_of_repeated_paragraphs": lambda: paragraph_share,
                "share_of_characters_in_repeated_paragraphs": lambda: paragraph_chars,
                **{f"share_of_top_{n}_gram": partial(words.share_of_top, n) for n, _ in self.top_n_grams},
                **{f"share_of_duplicated_{n}_grams": partial(words.share_covered, n) for n, _ in self.dup_n_grams},
            }
        )


@dataclass(frozen=True)
class _Words:
    """The words of a text by Unicode's rules, and what repeats among them."""

    text: str

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return WordNGrams.lengths_of(self.words)

    @cached_property
    def words(self) -> list[str]:
        return unicode_words(self.text)

    @cached_property
    def ngrams(self) -> WordNGrams:
        return WordNGrams(self.words)

    def share_of_top(self, n: int) -> float:
        """Count times characters of the most frequent n-gram, the longest of several; 0 if none is repeated."""
        found = self.ngrams.of(n)
        most = int(found.counts.max(initial=0))
        longest = int(found.chars[found.firsts[found.most_frequent]].max(initial=0))
        return share(most * longest if most > 1 else 0, int(self.lengths.sum()))

    def share_covered(self, n: int) -> float:
        """Characters of the words that are in some n-gram that occurs more than once, each word counted once."""
        repeated = np.flatnonzero(self.ngrams.of(n).is_repeated)
        depth = np.zeros(len(self.words) + 1, np.int64)
        np.add.at(depth, repeated, 1)
        np.add.at(depth, repeated + n, -1)
        covered = self.lengths[np.cumsum(depth[:-1]) > 0]
        return share(int(covered.sum()), int(self.lengths.sum()))


def _repeated(pieces: list[str]) -> tuple[float, float]:
    """The share of pieces that occur more than once, and of their characters; none of a single piece."""
    repeated = {piece: count for piece, count in Counter(pieces).items() if count > 1}
    chars = sum(len(piece) * count for piece, count in repeated.items())
    return share(sum(repeated.values()), len(pieces)), share(chars, sum(map(len, pieces)))
