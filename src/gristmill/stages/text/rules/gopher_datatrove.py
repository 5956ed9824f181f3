"""Gopher's rules as datatrove 0.10 has them (Rae et al., 2021, https://arxiv.org/abs/2112.11446, table A1).

Words are the tokens of spaCy's blank English pipeline: punctuation marks are words of their own and count where all
words do. Parameters, order and reasons are datatrove's. Where datatrove would divide by zero (no words, no lines),
a share is 0.0 here, so that an empty document which the word count lets pass is judged instead of stopping the run.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.layout import LINES, PARAGRAPHS
from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.rule import Column, Measures, Rule, RuleSet, published, share, shares
from gristmill.stages.text.judging.texts import Texts
from gristmill.stages.text.judging.tokens import count_different, duplicate_ngram_chars, top_ngram_chars

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")

# How much of a text may be one n-gram, and n-grams that occurred before (table A1).
NGramLimits = tuple[tuple[int, float], ...]
TOP_N_GRAMS: NGramLimits = ((2, 0.20), (3, 0.18), (4, 0.16))
DUP_N_GRAMS: NGramLimits = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))

_PARAGRAPH_GAP = re.compile(r"\n{2,}")
_LINE_GAP = re.compile(r"\n+")


def split_words(text: str) -> list[str]:
    """Return the tokens that are not white space."""
    from gristmill.kernels.tokens.english import split_english

    return [token for token in split_english(text) if not token.isspace()]


def count_repeats(pieces: Sequence[str]) -> tuple[int, int]:
    """Return how many pieces occurred before, and their characters."""
    seen: set[str] = set()
    repeats = [piece for piece in pieces if piece in seen or seen.add(piece)]  # type: ignore[func-returns-value]
    return len(repeats), sum(map(len, repeats))


@dataclass
class GopherQuality(RuleSet):
    """Drop what does not read like prose: too short, odd words, symbols, bullets, few common words.

    `max_non_alpha_words_ratio` is, in spite of its name, the least share of words with a letter. Bounds that are
    None or 0 are off. Common words are counted once each and compared case-sensitively.
    """

    min_doc_words: int | None = 50
    max_doc_words: int | None = 100000
    min_avg_word_length: float | None = 3
    max_avg_word_length: float | None = 10
    max_symbol_word_ratio: float | None = 0.1
    max_bullet_lines_ratio: float | None = 0.9
    max_ellipsis_lines_ratio: float | None = 0.3
    max_non_alpha_words_ratio: float | None = 0.8
    min_stop_words: int | None = 2
    stop_words: Sequence[str] = STOP_WORDS

    def rules(self) -> list[Rule]:
        return published(
            Rule("gopher_short_doc", "words", low=self.min_doc_words),
            Rule("gopher_long_doc", "words", high=self.max_doc_words),
            Rule("gopher_below_avg_threshold", "characters_per_word", low=self.min_avg_word_length),
            Rule("gopher_above_avg_threshold", "characters_per_word", high=self.max_avg_word_length),
            Rule("gopher_too_many_hashes", "hashes_per_word", high=self.max_symbol_word_ratio),
            Rule("gopher_too_many_ellipsis", "ellipses_per_word", high=self.max_symbol_word_ratio),
            Rule("gopher_too_many_bullets", "share_of_bullet_lines", high=self.max_bullet_lines_ratio),
            Rule("gopher_too_many_end_ellipsis", "share_of_ellipsis_lines", high=self.max_ellipsis_lines_ratio),
            Rule("gopher_below_alpha_threshold", "share_of_words_with_a_letter", low=self.max_non_alpha_words_ratio),
            Rule("gopher_enough_stop_words", "different_stop_words", low=self.min_stop_words),
        )

    def measure_document(self, text: str) -> Measures:
        from gristmill.kernels.tokens.marks import SYMBOLS

        tokens = split_words(text)
        words = [token for token in tokens if not SYMBOLS.issuperset(token)]
        lines = text.splitlines()
        return {
            "words": len(words),
            "characters_per_word": fmean(map(len, words)) if words else math.nan,
            "hashes_per_word": share(text.count("#"), len(tokens)),
            "ellipses_per_word": share(text.count("...") + text.count("…"), len(tokens)),
            "share_of_bullet_lines": share(sum(line.lstrip().startswith(("•", "-")) for line in lines), len(lines)),
            "share_of_ellipsis_lines": share(sum(line.rstrip().endswith(("...", "…")) for line in lines), len(lines)),
            "share_of_words_with_a_letter": share(sum(any(map(str.isalpha, t)) for t in tokens), len(tokens)),
            "different_stop_words": len(set(self.stop_words).intersection(tokens)),
        }

    def statistics(self) -> tuple[s.Statistic, ...]:
        return s.HASHES, s.ELLIPSES, s.SPLIT_LINES, s.SPLIT_BULLET_LINES, s.SPLIT_ELLIPSIS_LINES

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        rows, tokens = texts.tokens(wanted)
        num_tokens = texts.spread(rows, tokens.num_tokens)[0]
        words, word_chars, with_letter = texts.spread(rows, tokens.counts)
        stop_words = texts.spread(rows, count_different(tokens, self.stop_words))[0]
        hashes, ellipses, lines, bullets, trailing = texts.counts(wanted, self.statistics())
        with np.errstate(invalid="ignore"):
            length = word_chars / words  # NaN without words
        known |= {
            "words": words.astype(np.float64),
            "characters_per_word": length,
            "hashes_per_word": shares(hashes, num_tokens),
            "ellipses_per_word": shares(ellipses, num_tokens),
            "share_of_bullet_lines": shares(bullets, lines),
            "share_of_ellipsis_lines": shares(trailing, lines),
            "share_of_words_with_a_letter": shares(with_letter, num_tokens),
            "different_stop_words": stop_words.astype(np.float64),
        }
        return known[name]


@dataclass
class RepetitionLimits(RuleSet):
    """How much of a text may repeat itself: lines, paragraphs, their characters, one n-gram, all n-grams.

    The table gives the limits; what counts as a repeat, and over what, differs from tool to tool: subclasses define it.
    """

    dup_line_frac: float | None = 0.3
    dup_para_frac: float | None = 0.3
    dup_line_char_frac: float | None = 0.2
    dup_para_char_frac: float | None = 0.2
    top_n_grams: Sequence[tuple[int, float]] = TOP_N_GRAMS
    dup_n_grams: Sequence[tuple[int, float]] = DUP_N_GRAMS


@dataclass
class GopherRepetition(RepetitionLimits):
    """Drop what repeats itself: paragraphs, lines, one n-gram (`top_n_grams`), all n-grams (`dup_n_grams`).

    All shares of characters are of the whole text, white space included. The most frequent n-gram may have occurred
    only once, so very short texts are dropped. An empty text is dropped as "empty".
    """

    def rules(self) -> list[Rule]:
        return published(
            Rule("empty", "characters", low=1),
            Rule("dup_para_frac", "share_of_repeated_paragraphs", high=self.dup_para_frac),
            Rule("dup_para_char_frac", "share_of_characters_in_repeated_paragraphs", high=self.dup_para_char_frac),
            Rule("dup_line_frac", "share_of_repeated_lines", high=self.dup_line_frac),
            Rule("dup_line_char_frac", "share_of_characters_in_repeated_lines", high=self.dup_line_char_frac),
            *(Rule(f"top_{n}_gram", f"share_of_top_{n}_gram", high=limit) for n, limit in self.top_n_grams),
            *(
                Rule(f"duplicated_{n}_n_grams", f"share_of_duplicated_{n}_grams", high=limit)
                for n, limit in self.dup_n_grams
            ),
        )

    def measure_document(self, text: str) -> Measures:
        paragraphs, lines, words = _PARAGRAPH_GAP.split(text.strip()), _LINE_GAP.split(text), split_words(text)
        repeated_paragraphs, paragraph_chars = count_repeats(paragraphs)
        repeated_lines, line_chars = count_repeats(lines)
        top = {f"share_of_top_{n}_gram": share(_top_chars(words, n), len(text)) for n, _ in self.top_n_grams}
        repeated = {
            f"share_of_duplicated_{n}_grams": share(_repeated_chars(words, n), len(text)) for n, _ in self.dup_n_grams
        }
        return {
            "characters": len(text),
            "share_of_repeated_paragraphs": share(repeated_paragraphs, len(paragraphs)),
            "share_of_characters_in_repeated_paragraphs": share(paragraph_chars, len(text)),
            "share_of_repeated_lines": share(repeated_lines, len(lines)),
            "share_of_characters_in_repeated_lines": share(line_chars, len(text)),
            **top,
            **repeated,
        }

    def statistics(self) -> tuple[s.Statistic, ...]:
        return s.NUM_CHARS, *s.pieces(PARAGRAPHS), *s.pieces(LINES)

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        [chars] = texts.counts(wanted, (s.NUM_CHARS,))
        known["characters"] = chars.astype(np.float64)
        for kind, noun in ((PARAGRAPHS, "paragraphs"), (LINES, "lines")):
            if noun in name:
                pieces, distinct, distinct_chars, all_chars = texts.counts(wanted, s.pieces(kind))
                known[f"share_of_repeated_{noun}"] = shares(pieces - distinct, pieces)
                known[f"share_of_characters_in_repeated_{noun}"] = shares(all_chars - distinct_chars, chars)
        if "gram" in name:
            known |= self._measure_ngrams(name, texts, wanted, chars)
        return known[name]

    def _measure_ngrams(
        self, name: str, texts: Texts, wanted: NDArray[np.bool_], chars: NDArray[np.int64]
    ) -> dict[str, Column]:
        """Measure all n-grams of the kind that is asked for: the largest share of one, or of all that repeat.

        Shares are 0 where they cannot exceed their limits; of repeats, also where shorter n-grams exceed theirs.
        """
        rows, tokens = texts.tokens(wanted)
        is_top = "top" in name
        count = top_ngram_chars if is_top else duplicate_ngram_chars
        limits = self.top_n_grams if is_top else self.dup_n_grams
        found = count(tokens, limits, chars[rows], wanted[rows])
        return {
            f"share_of_top_{n}_gram" if is_top else f"share_of_duplicated_{n}_grams": shares(part, chars)
            for n, part in zip(sorted({n for n, _ in limits}), texts.spread(rows, found), strict=True)
        }


def _top_chars(words: Sequence[str], n: int) -> int:
    """Count times length of the most frequent n-gram, joined with blanks; the first one seen of several."""
    counts = Counter(" ".join(words[at : at + n]) for at in range(len(words) - n + 1))
    ngram, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return len(ngram) * count


def _repeated_chars(words: Sequence[str], n: int) -> int:
    """Characters of n-grams seen before, which are jumped over; written together without blanks."""
    seen: set[str] = set()
    chars = at = 0
    while at <= len(words) - n:
        ngram = "".join(words[at : at + n])
        chars += len(ngram) if ngram in seen else 0
        at += n if ngram in seen else 1
        seen.add(ngram)
    return chars
