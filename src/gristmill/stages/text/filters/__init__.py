"""Text filters: three stages, and the filter objects they are given. How they work is in `judging`."""

from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.judging.stages import Filter, Score, ScoreFilter

__all__ = ["DocumentFilter", "Filter", "Score", "ScoreFilter"]
