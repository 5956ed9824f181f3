"""A filter on phrases that belong to the page and not to its text."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.filters.column_filter import ColumnFilter, Counts, shares
from gristmill.stages.text.filters.document_filter import Bounds
from gristmill.stages.text.statistics.statistic import LOREM_IPSUM, NUM_PARAGRAPHS, POLICY_PARAGRAPHS, Statistic
from gristmill.stages.text.statistics.tables import LOREM_IPSUM_PHRASE, POLICY_PHRASES


@dataclass
class BoilerPlateStringFilter(ColumnFilter[float]):
    """Drop texts that contain "lorem ipsum", or of whose paragraphs too many contain a phrase on cookies or terms.

    `remove_if_at_top_or_bottom` is accepted because users pass it; it has no effect.
    """

    measure: ClassVar[str] = "share of boilerplate paragraphs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    remove_if_at_top_or_bottom: bool = True
    max_boilerplate_string_ratio: float = 0.4

    def score_document(self, text: str) -> float:
        paragraphs = text.lower().split("\n\n")
        if any(LOREM_IPSUM_PHRASE in paragraph for paragraph in paragraphs):
            return 1.0
        return sum(any(phrase in p for phrase in POLICY_PHRASES) for p in paragraphs) / len(paragraphs)

    def statistics(self) -> tuple[Statistic, ...]:
        return LOREM_IPSUM, NUM_PARAGRAPHS, POLICY_PARAGRAPHS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        found = shares(counts[POLICY_PARAGRAPHS], counts[NUM_PARAGRAPHS], of_nothing=0.0)
        found[counts[LOREM_IPSUM] > 0] = 1.0
        return found

    def bounds(self) -> Bounds:
        return None, self.max_boilerplate_string_ratio
