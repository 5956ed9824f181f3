"""`clean_lines`: the lines of texts that C4's rules keep, for a whole column."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.layout import JAVASCRIPT, LOREM, POLICY, ROOM_BEHIND
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.rules.tokenizer import character_classes
from gristmill.stages.text.statistics.tables import phrase_table
from gristmill.stages.text.statistics.text_column import ROOM_BEFORE, TextColumn

POLICY_PHRASES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")

_clean_lines = CompiledKernel("tokens.c4_lines", "clean_lines")


class LineRules(NamedTuple):
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
class CleanLines:
    """Kept lines, with a newline behind each; text d has lines firsts[d] to firsts[d + 1]."""

    lines: TextColumn
    firsts: NDArray[np.int64]  # [D + 1]
    fates: NDArray[np.int64]  # [D] KEPT, LOREM_IPSUM or CURLY_BRACKET
    texts: TextColumn  # the kept lines of each text, joined with newlines and stripped

    @property
    def num_lines(self) -> NDArray[np.int64]:
        """int64[D]."""
        return np.diff(self.firsts)


def clean_lines(texts: TextColumn, rules: LineRules) -> CleanLines:
    """Apply the line rules to every text."""
    total = texts.num_bytes + len(texts)
    out = np.empty(ROOM_BEFORE + total + ROOM_BEHIND, np.uint8)
    lines = np.empty((total, 2), np.int64)
    firsts, fates = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), np.int64)
    bounds = np.zeros((len(texts), 2), np.int64)
    _clean_lines(
        *(texts.data, texts.starts, texts.stops, len(texts), np.array(rules, np.int64)),
        *(character_classes(), _phrases(), out, ROOM_BEFORE, lines, firsts, fates, bounds),
    )
    kept = lines[: firsts[-1]]
    return CleanLines(_texts_at(out, kept), firsts, fates, _texts_at(out, bounds))


def _texts_at(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> TextColumn:
    return TextColumn(data, bounds[:, 0].copy(), bounds[:, 1].copy())


@cache
def _phrases() -> NDArray[np.uint8]:
    policies = [(phrase, POLICY) for phrase in POLICY_PHRASES]
    return phrase_table([*policies, ("javascript", JAVASCRIPT), ("lorem ipsum", LOREM)])
