"""FineWeb's own rules as datatrove 0.10 has them (Penedo et al., 2024, https://arxiv.org/abs/2406.17557, section 3.6).

The paper prints two thresholds for characters in repeated lines: 0.1 in its text, with the share of tokens it removed,
and 0.01 in an appendix, which is also datatrove's default. Both are here by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.rule import Column, Measures, Rule, RuleSet, published, share, shares
from gristmill.stages.text.judging.texts import Texts
from gristmill.stages.text.rules.gopher_datatrove import count_repeats, split_words

CHAR_DUPLICATES_DATATROVE = 0.01
CHAR_DUPLICATES_PAPER = 0.1


@dataclass
class FineWebQuality(RuleSet):
    """Drop pages that are lists or menus. Lines are those between newlines that are not blank, unstripped.

    A line ends well if its very last character is a mark that ends sentences in some script; quotes do not count,
    and a blank behind the mark hides it. With `line_punct_exclude_zero` a text in which no line does is kept.
    """

    line_punct_thr: float = 0.12
    line_punct_exclude_zero: bool = False
    short_line_thr: float = 0.67
    short_line_length: int = 30
    char_duplicates_ratio: float = CHAR_DUPLICATES_DATATROVE
    new_line_ratio: float = 0.3

    def rules(self) -> Sequence[Rule]:
        return published(
            Rule("empty", "lines", low=1),
            Rule("line_punct_ratio", "share_of_lines_with_end_mark", low=self.line_punct_thr),
            Rule("short_line_ratio", "share_of_short_lines", high=self.short_line_thr),
            Rule("char_dup_ratio", "share_of_characters_in_repeated_lines", high=self.char_duplicates_ratio),
            Rule("list_ratio", "newlines_per_word", high=self.new_line_ratio),
        )

    def measure_document(self, text: str) -> Measures:
        from gristmill.kernels.tokens.marks import LINE_ENDS

        lines = [line for line in text.split("\n") if line.strip()]
        newlines = text.count("\n")
        ended = share(sum(line[-1] in LINE_ENDS for line in lines), len(lines))
        return {
            "lines": len(lines),
            "share_of_lines_with_end_mark": 1.0 if self.line_punct_exclude_zero and ended == 0 else ended,
            "share_of_short_lines": share(sum(len(line) <= self.short_line_length for line in lines), len(lines)),
            "share_of_characters_in_repeated_lines": share(count_repeats(lines)[1], len(text) - newlines),
            "newlines_per_word": share(newlines, len(split_words(text))),
        }

    def statistics(self) -> tuple[s.Statistic, ...]:
        lines = (s.NUM_LINES, s.LINES_WITH_END_MARK, s.short_lines(self.short_line_length), s.NEWLINES)
        return *lines, s.LINE_CHARS, s.DISTINCT_LINE_CHARS, s.NUM_CHARS

    def measure(self, name: str, texts: Texts, wanted: NDArray[np.bool_], known: dict[str, Column]) -> Column:
        lines, ended, short, newlines, line_chars, distinct_chars, chars = texts.counts(wanted, self.statistics())
        if name == "newlines_per_word":
            rows, tokens = texts.tokens(wanted)
            known[name] = shares(newlines, texts.spread(rows, tokens.num_tokens)[0])
            return known[name]
        well_ended = shares(ended, lines)
        known |= {
            "lines": lines.astype(np.float64),
            "share_of_lines_with_end_mark": np.where(self.line_punct_exclude_zero & (well_ended == 0), 1.0, well_ended),
            "share_of_short_lines": shares(short, lines),
            "share_of_characters_in_repeated_lines": shares(line_chars - distinct_chars, chars - newlines),
        }
        return known[name]
