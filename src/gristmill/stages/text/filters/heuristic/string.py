"""Filters on the characters, words and lines of a text.

Definitions, on Unicode code points: *words* are split at white space; *lines* are the pieces between newlines that are
not blank, unstripped. Both ends of every range are kept. Each filter is defined on every text, the empty one included.
The names, parameters, defaults and scores are those of NVIDIA NeMo Curator.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, require
from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.document_filter import Bounds, ColumnFilter, Counts
from gristmill.stages.text.judging.rule import share, shares
from gristmill.stages.text.judging.statistics import Statistic

# `split_words`: what a word is, for every filter that counts words.

_SEGMENTERS = {"zh": "jieba", "ja": "fugashi"}  # the extra is named like the language


def is_segmented(lang: str) -> bool:
    """Whether the words of a language are found with a dictionary: there is no white space between them."""
    return lang in _SEGMENTERS


def check_segmenter(lang: str) -> None:
    """Raise MissingDependency if the words of this language cannot be found here: better now than in every worker."""
    if is_segmented(lang):
        require(_SEGMENTERS[lang], extra=lang)


def split_words(text: str, lang: str) -> list[str]:
    """Split at Unicode white space; Chinese ("zh") and Japanese ("ja") are segmented."""
    if is_segmented(lang):
        return [word for word in _segmenter(lang)(text.strip()) if not word.isspace()]
    return text.split()  # equal to text.strip().split()


@cache  # a segmenter loads a dictionary, which takes about a second: once in each worker
def _segmenter(lang: str) -> Callable[[str], list[str]]:
    library = require(_SEGMENTERS[lang], extra=lang)
    if lang == "zh":
        library.setLogLevel("WARNING")  # otherwise it reports loading the dictionary in every worker
        return lambda text: list(library.cut(text))
    tagger = library.Tagger("-Owakati")
    return lambda text: str(tagger.parse(text)).split()


ELLIPSIS_MARKS = ("...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more")
END_MARKS = (".", "?", "!", '"', "'")
BULLETS = tuple("•‣⁃⁌⁍∙○●◘◦⦾⦿")
WHITE_SPACE = "\t\n\r\b "
PARENTHESES = "{}⟨⟩[]()"
COMMON_ENGLISH_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with"))

_ALPHA_NUMERIC = re.compile(r"[a-zA-Z0-9\n?!,.]+")
# ASCII only: the scores users compare with leave "١٢٣" and "１２３" uncounted (tests/parity holds such texts).
_DIGITS = re.compile(r"[0-9]+")
_HASHES = re.compile(r"#+")


def split_lines(text: str) -> list[str]:
    """The lines of a text that are not blank, as they stand."""
    return [line for line in text.split("\n") if line and not line.isspace()]


@dataclass
class NonAlphaNumericFilter(ColumnFilter[float]):
    """Drop texts with too many characters outside a–z, A–Z, 0–9, newline and ? ! , . ."""

    measure: ClassVar[str] = "share of non-alphanumeric characters"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_non_alpha_numeric_to_text_ratio: float = 0.25

    def score_document(self, text: str) -> float:
        return share(len(_ALPHA_NUMERIC.sub("", text)), len(text), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.PLAIN_CHARS, s.NUM_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.NUM_CHARS] - counts[s.PLAIN_CHARS], counts[s.NUM_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_non_alpha_numeric_to_text_ratio


@dataclass
class SymbolsToWordsFilter(ColumnFilter[float]):
    """Drop texts with too many words that are an ellipsis, or in which # follows # again and again, as in "#a#b#"."""

    measure: ClassVar[str] = "share of symbols among words"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_symbol_to_word_ratio: float = 0.1
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)

    def score_document(self, text: str) -> float:
        words = split_words(text, self.lang)
        symbols = sum(word in ELLIPSIS_MARKS or len(_HASHES.findall(word)) / len(word) > 0.5 for word in words)
        return share(symbols, len(words), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return () if is_segmented(self.lang) else (s.SYMBOL_WORDS, s.NUM_WORDS)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.SYMBOL_WORDS], counts[s.NUM_WORDS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_symbol_to_word_ratio


@dataclass
class NumbersFilter(ColumnFilter[float]):
    """Drop texts with too many digits 0–9; digits of other scripts do not count."""

    measure: ClassVar[str] = "share of digits"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_number_to_text_ratio: float = 0.15

    def score_document(self, text: str) -> float:
        return share(sum(map(len, _DIGITS.findall(text))), len(text), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.DIGIT_CHARS, s.NUM_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.DIGIT_CHARS], counts[s.NUM_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_number_to_text_ratio


@dataclass
class BulletsFilter(ColumnFilter[float]):
    """Drop texts in which too many lines start with a bullet."""

    measure: ClassVar[str] = "share of lines that start with a bullet"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_bullet_lines_ratio: float = 0.9

    def score_document(self, text: str) -> float:
        lines = split_lines(text)
        return share(sum(line.strip().startswith(BULLETS) for line in lines), len(lines), of_nothing=0.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.BULLET_LINES, s.NUM_LINES

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.BULLET_LINES], counts[s.NUM_LINES], of_nothing=0.0)

    def bounds(self) -> Bounds:
        return None, self.max_bullet_lines_ratio


@dataclass
class WhiteSpaceFilter(ColumnFilter[float]):
    """Drop texts with too much white space."""

    measure: ClassVar[str] = "share of white space"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_white_space_ratio: float = 0.25

    def score_document(self, text: str) -> float:
        return share(sum(map(text.count, WHITE_SPACE)), len(text), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.SPACE_CHARS, s.NUM_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.SPACE_CHARS], counts[s.NUM_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_white_space_ratio


@dataclass
class ParenthesesFilter(ColumnFilter[float]):
    """Drop texts with too many brackets."""

    measure: ClassVar[str] = "share of brackets"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_parentheses_ratio: float = 0.1

    def score_document(self, text: str) -> float:
        return share(sum(map(text.count, PARENTHESES)), len(text), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.BRACKET_CHARS, s.NUM_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.BRACKET_CHARS], counts[s.NUM_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_parentheses_ratio


@dataclass
class LongWordFilter(ColumnFilter[int]):
    """Drop texts with a word that is longer than real words are."""

    measure: ClassVar[str] = "characters in the longest word"
    score_type: ClassVar[pa.DataType] = pa.int64()

    max_word_length: int = 1000
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)

    def score_document(self, text: str) -> int:
        return max(map(len, split_words(text, self.lang)), default=0)

    def statistics(self) -> tuple[Statistic, ...]:
        return () if is_segmented(self.lang) else (s.LONGEST_WORD_CHARS,)

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        return counts[s.LONGEST_WORD_CHARS]

    def bounds(self) -> Bounds:
        return None, self.max_word_length


@dataclass
class WordCountFilter(ColumnFilter[int]):
    """Drop texts that are too short or too long."""

    measure: ClassVar[str] = "words"
    score_type: ClassVar[pa.DataType] = pa.int64()

    min_words: int = 50
    max_words: int = 100000
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)

    def score_document(self, text: str) -> int:
        return len(split_words(text, self.lang))

    def statistics(self) -> tuple[Statistic, ...]:
        return () if is_segmented(self.lang) else (s.NUM_WORDS,)

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        return counts[s.NUM_WORDS]

    def bounds(self) -> Bounds:
        return self.min_words, self.max_words


@dataclass
class MeanWordLengthFilter(ColumnFilter[float]):
    """Drop texts whose words are, on average, too short or too long to be prose."""

    measure: ClassVar[str] = "characters per word"
    score_type: ClassVar[pa.DataType] = pa.float64()

    min_mean_word_length: float = 3
    max_mean_word_length: float = 10
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)

    def score_document(self, text: str) -> float:
        words = split_words(text, self.lang)
        return share(sum(map(len, words)), len(words), of_nothing=0.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return () if is_segmented(self.lang) else (s.WORD_CHARS, s.NUM_WORDS)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.WORD_CHARS], counts[s.NUM_WORDS], of_nothing=0.0)

    def bounds(self) -> Bounds:
        return self.min_mean_word_length, self.max_mean_word_length


@dataclass
class PunctuationFilter(ColumnFilter[float]):
    """Drop texts in which too many lines do not end like a sentence."""

    measure: ClassVar[str] = "share of lines without an end mark"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_num_sentences_without_endmark_ratio: float = 0.85

    def score_document(self, text: str) -> float:
        lines = split_lines(text)
        return share(sum(not line.strip().endswith(END_MARKS) for line in lines), len(lines), of_nothing=1.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.LINES_WITHOUT_END_MARK, s.NUM_LINES

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.LINES_WITHOUT_END_MARK], counts[s.NUM_LINES], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_num_sentences_without_endmark_ratio


@dataclass
class EllipsisFilter(ColumnFilter[float]):
    """Drop texts in which too many lines break off with an ellipsis."""

    measure: ClassVar[str] = "share of lines that end in an ellipsis"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_num_lines_ending_with_ellipsis_ratio: float = 0.3

    def score_document(self, text: str) -> float:
        lines = split_lines(text)
        return share(sum(line.strip().lower().endswith(ELLIPSIS_MARKS) for line in lines), len(lines), of_nothing=0.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.ELLIPSIS_LINES, s.NUM_LINES

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.ELLIPSIS_LINES], counts[s.NUM_LINES], of_nothing=0.0)

    def bounds(self) -> Bounds:
        return None, self.max_num_lines_ending_with_ellipsis_ratio


@dataclass
class CommonEnglishWordsFilter(ColumnFilter[int]):
    """Drop texts without the commonest English words, compared case-sensitively.

    With `stop_at_false` counting ends at the minimum, which is enough to decide, and is then the score.
    """

    measure: ClassVar[str] = "common English words"
    score_type: ClassVar[pa.DataType] = pa.int64()

    min_num_common_words: int = 2
    stop_at_false: bool = True

    def score_document(self, text: str) -> int:
        count = 0
        for word in text.split():
            count += word in COMMON_ENGLISH_WORDS
            if self.stop_at_false and count >= self.min_num_common_words:
                break
        return count

    def statistics(self) -> tuple[Statistic, ...]:
        # Counting to a minimum below 1 stops at the first word, whatever it is.
        return (s.COMMON_ENGLISH_WORDS,) if not self.stop_at_false or self.min_num_common_words >= 1 else ()

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        found = counts[s.COMMON_ENGLISH_WORDS]
        return np.minimum(found, self.min_num_common_words) if self.stop_at_false else found

    def bounds(self) -> Bounds:
        return self.min_num_common_words, None

    def for_any_threshold(self) -> "CommonEnglishWordsFilter":
        return replace(self, stop_at_false=False)


@dataclass
class WordsWithoutAlphabetsFilter(ColumnFilter[float]):
    """Drop texts in which too few words contain a letter, of whatever script."""

    measure: ClassVar[str] = "share of words with a letter"
    score_type: ClassVar[pa.DataType] = pa.float64()

    min_words_with_alphabets: float = 0.8
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)

    def score_document(self, text: str) -> float:
        words = split_words(text, self.lang)
        return share(sum(any(map(str.isalpha, word)) for word in words), len(words), of_nothing=0.0)

    def statistics(self) -> tuple[Statistic, ...]:
        return () if is_segmented(self.lang) else (s.WORDS_WITH_LETTER, s.NUM_WORDS)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.WORDS_WITH_LETTER], counts[s.NUM_WORDS], of_nothing=0.0)

    def bounds(self) -> Bounds:
        return self.min_words_with_alphabets, None


@dataclass
class SubstringFilter(ColumnFilter[int]):
    """Keep texts that hold `substring` at their start ("prefix"), at their end ("suffix") or anywhere ("any")."""

    measure: ClassVar[str] = "substring found"
    score_type: ClassVar[pa.DataType] = pa.int64()

    substring: str
    position: Literal["prefix", "suffix", "any"]

    def __post_init__(self) -> None:
        if self.position not in ("prefix", "suffix", "any"):
            raise ConfigError(f"SubstringFilter: expected position 'prefix', 'suffix' or 'any'; got {self.position!r}")

    def score_document(self, text: str) -> int:
        if self.position == "prefix":
            return int(text.startswith(self.substring))
        return int(text.endswith(self.substring) if self.position == "suffix" else self.substring in text)

    def statistics(self) -> tuple[Statistic, ...]:
        return (s.substring_found(self.substring, self.position),)

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        return counts[s.substring_found(self.substring, self.position)]

    def bounds(self) -> Bounds:
        return 1, None
