"""`Statistic`: the name of something that can be counted in a text. All of them are whole numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Statistic:
    """What is counted: `n` is the number of words if it is about n-grams, `text` what is looked for if something is."""

    name: str
    n: int = 0
    text: str = ""


NUM_CHARS = Statistic("num_chars")
PLAIN_CHARS = Statistic("plain_chars")  # a–z A–Z 0–9 newline ? ! , .
DIGIT_CHARS = Statistic("digit_chars")  # 0–9
SPACE_CHARS = Statistic("space_chars")  # tab, newline, carriage return, backspace, space
BRACKET_CHARS = Statistic("bracket_chars")  # { } ⟨ ⟩ [ ] ( )

NUM_WORDS = Statistic("num_words")
WORD_CHARS = Statistic("word_chars")
LONGEST_WORD_CHARS = Statistic("longest_word_chars")
WORDS_WITH_LETTER = Statistic("words_with_letter")
SYMBOL_WORDS = Statistic("symbol_words")  # an ellipsis mark, or more than half as many runs of # as characters
COMMON_ENGLISH_WORDS = Statistic("common_english_words")  # the be to of and that have with

NUM_LINES = Statistic("num_lines")  # between newlines, not blank
BULLET_LINES = Statistic("bullet_lines")
LINES_WITHOUT_END_MARK = Statistic("lines_without_end_mark")
ELLIPSIS_LINES = Statistic("ellipsis_lines")
DISTINCT_LINES = Statistic("distinct_lines")
DISTINCT_LINE_CHARS = Statistic("distinct_line_chars")
LINE_CHARS = Statistic("line_chars")

NUM_PARAGRAPHS = Statistic("num_paragraphs")  # between double newlines, empty ones included
DISTINCT_PARAGRAPHS = Statistic("distinct_paragraphs")
DISTINCT_PARAGRAPH_CHARS = Statistic("distinct_paragraph_chars")
PARAGRAPH_CHARS = Statistic("paragraph_chars")

URL_CHARS = Statistic("url_chars")
PORN_URLS = Statistic("porn_urls")

LOREM_IPSUM = Statistic("lorem_ipsum")
POLICY_PARAGRAPHS = Statistic("policy_paragraphs")


def top_ngram_chars(n: int) -> Statistic:
    """Characters that vanish when the most frequent n-gram of words is deleted wherever it stands."""
    return Statistic("top_ngram_chars", n)


def duplicate_ngram_chars(n: int) -> Statistic:
    """Characters of n-grams of words that occurred before, overlapping ones counted once."""
    return Statistic("duplicate_ngram_chars", n)


def substring_found(substring: str, position: str) -> Statistic:
    """1 if the text has the substring at its start ("prefix"), at its end ("suffix") or anywhere ("any")."""
    return Statistic(f"substring_{position}", text=substring)
