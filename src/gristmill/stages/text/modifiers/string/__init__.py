"""Modifiers that cut and replace: no model, one idea per file."""

from gristmill.stages.text.modifiers.string.boilerplate_string import BoilerPlateStringModifier
from gristmill.stages.text.modifiers.string.line_remover import LineRemover
from gristmill.stages.text.modifiers.string.markdown_remover import MarkdownRemover
from gristmill.stages.text.modifiers.string.newline_normalizer import NewlineNormalizer
from gristmill.stages.text.modifiers.string.quotation_remover import QuotationRemover
from gristmill.stages.text.modifiers.string.slicer import Slicer
from gristmill.stages.text.modifiers.string.url_remover import UrlRemover

__all__ = [
    "BoilerPlateStringModifier",
    "LineRemover",
    "MarkdownRemover",
    "NewlineNormalizer",
    "QuotationRemover",
    "Slicer",
    "UrlRemover",
]
