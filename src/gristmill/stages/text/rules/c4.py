"""C4's rules as datatrove 0.10 has them (Raffel et al., 2020, https://jmlr.org/papers/v21/20-074.html).

They work on lines and change the text: what is kept is the lines that pass, joined with newlines. "lorem ipsum" and
curly brackets drop the whole document, but only on a line that the rules before let pass. The paper keeps lines of five
words and documents of three sentences; datatrove's defaults, taken over here, are three words and five sentences.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import layout
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging import tokens
from gristmill.stages.text.judging.rule import Column, Measures, Rule, RuleSet, published
from gristmill.stages.text.judging.statistics import ROOM_BEFORE, TextColumn
from gristmill.stages.text.judging.tables import phrase_table
from gristmill.stages.text.judging.texts import Rows, Texts

CITATIONS = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
END_MARKS = (".", "?", "!", '"', "'")
DROP_THE_TEXT = ("lorem_ipsum", "curly_bracket")
POLICY_PHRASES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
OFF = -1

_clean_lines = CompiledKernel("tokens.c4_lines", "clean_lines")


class _LineRules(NamedTuple):
    """Which rules apply; -1 turns a number off."""

    max_word_length: int
    min_words_per_line: int
    remove_citations: bool
    filter_no_terminal_punct: bool
    filter_lorem_ipsum: bool
    filter_javascript: bool
    filter_curly_bracket: bool
    filter_policy: bool


@dataclass(frozen=True)
class _CleanLines:
    """Kept lines, with a newline behind each; text d has lines firsts[d] to firsts[d + 1]."""

    lines: TextColumn
    firsts: NDArray[np.int64]  # [D + 1]
    fates: NDArray[np.int64]  # [D] KEPT, LOREM_IPSUM or CURLY_BRACKET
    texts: TextColumn  # the kept lines of each text, joined with newlines and stripped

    @property
    def num_lines(self) -> NDArray[np.int64]:
        """int64[D]."""
        return np.diff(self.firsts)


@dataclass
class C4Quality(RuleSet):
    """Keep the lines that look like sentences, and documents that have enough of them.

    A line goes if a word has more than `max_word_length` characters, if it does not end with . ? ! " or ' (or ends with
    ...), if it has fewer than `min_words_per_line` words, or if it mentions JavaScript or a policy. -1 switches a
    rule off. FineWeb's pipeline has `filter_no_terminal_punct=False`.
    """

    remove_citations: bool = True
    filter_no_terminal_punct: bool = True
    min_num_sentences: int = 5
    min_words_per_line: int = 3
    max_word_length: int = 1000
    filter_lorem_ipsum: bool = True
    filter_javascript: bool = True
    filter_curly_bracket: bool = True
    filter_policy: bool = True

    def rules(self) -> list[Rule]:
        return published(
            Rule("lorem_ipsum", "text_without_lorem_ipsum", low=1),
            Rule("curly_bracket", "text_without_curly_bracket", low=1),
            Rule(
                "too_few_sentences", "sentences", low=None if self.min_num_sentences == OFF else self.min_num_sentences
            ),
        )

    def measure_document(self, text: str) -> Measures:
        fates = list(self._clean(text))
        last = fates[-1][0] if fates else "kept"
        lines = [line for fate, line in fates if fate == "kept"] if last not in DROP_THE_TEXT else []
        return {
            "text_without_lorem_ipsum": float(last != "lorem_ipsum"),
            "text_without_curly_bracket": float(last != "curly_bracket"),
            "sentences": sum(map(count_sentences, lines)),
        }

    def rewrite_document(self, text: str) -> str:
        return "\n".join(line for fate, line in self._clean(text) if fate == "kept").strip()

    def count_lines(self, text: str) -> dict[str, int]:
        """Return how many lines were kept, and how many were removed for each reason."""
        return dict(Counter(fate for fate, _ in self._clean(text)))

    def _clean(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what becomes of each line, and the line; nothing comes after one that drops the document."""
        for line in text.splitlines():
            fate, cleaned = self._judge_line(line.strip())
            yield fate, cleaned
            if fate in DROP_THE_TEXT:
                return

    def _judge_line(self, line: str) -> tuple[str, str]:
        words = line.split()
        if self.max_word_length != OFF and any(len(word) > self.max_word_length for word in words):
            return "too_long_word", ""
        line = CITATIONS.sub("", line) if self.remove_citations else line
        lower = line.lower()
        broken = [
            ("no_terminal_punct", self.filter_no_terminal_punct and not ends_well(line)),
            ("too_few_words", len(words) < self.min_words_per_line),
            ("lorem_ipsum", self.filter_lorem_ipsum and "lorem ipsum" in lower),
            ("javascript", self.filter_javascript and "javascript" in lower),
            ("curly_bracket", self.filter_curly_bracket and "{" in line),
            ("policy", self.filter_policy and any(phrase in lower for phrase in POLICY_PHRASES)),
        ]
        return next(((fate, "") for fate, is_broken in broken if is_broken), ("kept", line))

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        rows, lines = self._cleaned_lines(texts, wanted)
        fates = texts.spread(rows, lines.fates)[0]
        known["text_without_lorem_ipsum"] = (fates != layout.LOREM_IPSUM).astype(np.float64)
        known["text_without_curly_bracket"] = (fates != layout.CURLY_BRACKET).astype(np.float64)
        if name == "sentences":
            counts = _sentences_of(texts, lines, wanted[rows], self.min_num_sentences)
            known[name] = texts.spread(rows, counts)[0].astype(np.float64)
        return known[name]

    def rewrite(self, texts: Texts, wanted: NDArray[np.bool_]) -> Texts:
        rows, lines = self._cleaned_lines(texts, wanted)
        starts, stops = (texts.spread(rows, bounds)[0] for bounds in (lines.texts.starts, lines.texts.stops))
        return texts.rewritten(TextColumn(lines.texts.data, starts, stops))

    def _cleaned_lines(self, texts: Texts, wanted: NDArray[np.bool_]) -> tuple[Rows, _CleanLines]:
        rules = _LineRules(
            self.max_word_length,
            self.min_words_per_line,
            self.remove_citations,
            self.filter_no_terminal_punct,
            self.filter_lorem_ipsum,
            self.filter_javascript,
            self.filter_curly_bracket,
            self.filter_policy,
        )

        def clean() -> tuple[Rows, _CleanLines]:
            rows = np.flatnonzero(wanted)
            return rows, _cleaned(texts.column.take(rows), rules)

        return texts.remember(rules, clean)


def ends_well(line: str) -> bool:
    """Whether a line ends like a sentence and does not break off."""
    return line.endswith(END_MARKS) and not line.endswith("...")


def count_sentences(line: str) -> int:
    """Return the sentences of one line, at least one."""
    from gristmill.kernels.tokens.english import split_english
    from gristmill.kernels.tokens.marks import SENTENCE_ENDS, is_punctuation

    sentences, ended = 1, False
    for token in split_english(line):
        if token in SENTENCE_ENDS:
            ended = True
        elif ended and not is_punctuation(token):
            sentences, ended = sentences + 1, False
    return sentences


def _sentences_of(texts: Texts, lines: _CleanLines, wanted: NDArray[np.bool_], enough: int) -> NDArray[np.int64]:
    """Return the sentences of every text; one with enough lines has enough of them, so they are not counted."""
    few = wanted & (lines.num_lines < enough)
    chosen = np.flatnonzero(np.repeat(few, lines.num_lines))
    sentences = np.zeros(len(lines.lines) + 1, np.int64)
    sentences[1 + chosen] = tokens.count_sentences(texts.tokenizer().cut(lines.lines.take(chosen)))
    total = np.cumsum(sentences)
    return np.where(few, total[lines.firsts[1:]] - total[lines.firsts[:-1]], lines.num_lines)


def _cleaned(texts: TextColumn, rules: _LineRules) -> _CleanLines:
    """Apply the line rules to every text."""
    total = texts.num_bytes + len(texts)
    out = np.empty(ROOM_BEFORE + total + layout.ROOM_BEHIND, np.uint8)
    lines = np.empty((total, 2), np.int64)
    firsts, fates = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), np.int64)
    bounds = np.zeros((len(texts), 2), np.int64)
    _clean_lines(
        *(texts.data, texts.starts, texts.stops, len(texts), np.array(rules, np.int64)),
        *(tokens.character_classes(), _phrases(), out, ROOM_BEFORE, lines, firsts, fates, bounds),
    )
    kept = lines[: firsts[-1]]
    return _CleanLines(_texts_at(out, kept), firsts, fates, _texts_at(out, bounds))


def _texts_at(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> TextColumn:
    return TextColumn(data, bounds[:, 0].copy(), bounds[:, 1].copy())


@cache
def _phrases() -> NDArray[np.uint8]:
    policies = [(phrase, layout.POLICY) for phrase in POLICY_PHRASES]
    return phrase_table([*policies, ("javascript", layout.JAVASCRIPT), ("lorem ipsum", layout.LOREM)])
