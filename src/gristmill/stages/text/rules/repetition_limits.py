"""`RepetitionLimits`: how much of a text may repeat itself (Rae et al., 2021, table A1).

The table gives the limits; what is counted as a repeat, and over what, differs from tool to tool and is defined there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.stages.text.rules.rule_set import RuleSet

NGramLimits = tuple[tuple[int, float], ...]
TOP_N_GRAMS: NGramLimits = ((2, 0.20), (3, 0.18), (4, 0.16))
DUP_N_GRAMS: NGramLimits = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))


@dataclass
class RepetitionLimits(RuleSet):
    """Limits for lines, paragraphs and their characters, for the most frequent n-gram and for n-grams that repeat."""

    dup_line_frac: float | None = 0.3
    dup_para_frac: float | None = 0.3
    dup_line_char_frac: float | None = 0.2
    dup_para_char_frac: float | None = 0.2
    top_n_grams: Sequence[tuple[int, float]] = TOP_N_GRAMS
    dup_n_grams: Sequence[tuple[int, float]] = DUP_N_GRAMS
