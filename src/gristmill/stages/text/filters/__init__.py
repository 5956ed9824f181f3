"""Text filters: three stages, and the filter objects they are given."""

from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter import Filter
from gristmill.stages.text.filters.score import Score
from gristmill.stages.text.filters.score_filter import ScoreFilter

__all__ = ["DocumentFilter", "Filter", "Score", "ScoreFilter"]
