"""Modifiers: one stage, and the objects it is given to change documents with."""

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.stages.text.modifiers.fasttext import FastTextLabelModifier
from gristmill.stages.text.modifiers.modify import Modify
from gristmill.stages.text.modifiers.pii import PiiModifier
from gristmill.stages.text.modifiers.string import (
    BoilerPlateStringModifier,
    LineRemover,
    MarkdownRemover,
    NewlineNormalizer,
    QuotationRemover,
    Slicer,
    UrlRemover,
)
from gristmill.stages.text.modifiers.unicode import UnicodeReformatter

__all__ = [
    "BoilerPlateStringModifier",
    "DocumentModifier",
    "FastTextLabelModifier",
    "LineRemover",
    "MarkdownRemover",
    "Modify",
    "NewlineNormalizer",
    "PiiModifier",
    "QuotationRemover",
    "Slicer",
    "UnicodeReformatter",
    "UrlRemover",
]
