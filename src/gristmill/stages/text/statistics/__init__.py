"""Counts of characters, words, lines, paragraphs and n-grams, for all documents of a column at once."""

from gristmill.stages.text.statistics.measure import measure
from gristmill.stages.text.statistics.statistic import Statistic
from gristmill.stages.text.statistics.text_column import TextColumn

__all__ = ["Statistic", "TextColumn", "measure"]
