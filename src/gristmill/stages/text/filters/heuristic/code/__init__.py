"""Filters for source code: comments, line counts, letters, markup."""

from gristmill.stages.text.filters.heuristic.code.comments import GeneralCommentToCodeFilter, PythonCommentToCodeFilter
from gristmill.stages.text.filters.heuristic.code.markup import HTMLBoilerplateFilter, XMLHeaderFilter
from gristmill.stages.text.filters.heuristic.code.per_extension import PerExtensionFilter
from gristmill.stages.text.filters.heuristic.code.size import AlphaFilter, NumberOfLinesOfCodeFilter
from gristmill.stages.text.filters.heuristic.code.tokenizer_fertility import TokenizerFertilityFilter

__all__ = [
    "AlphaFilter",
    "GeneralCommentToCodeFilter",
    "HTMLBoilerplateFilter",
    "NumberOfLinesOfCodeFilter",
    "PerExtensionFilter",
    "PythonCommentToCodeFilter",
    "TokenizerFertilityFilter",
    "XMLHeaderFilter",
]
