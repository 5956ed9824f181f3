"""Modifiers: one stage, and the objects it is given to change documents with."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
    from gristmill.stages.text.modifiers.fasttext import FastTextLabelModifier
    from gristmill.stages.text.modifiers.modify import Modify
    from gristmill.stages.text.modifiers.pii.pii_modifier import PiiModifier
    from gristmill.stages.text.modifiers.string.boilerplate_string import BoilerPlateStringModifier
    from gristmill.stages.text.modifiers.string.line_remover import LineRemover
    from gristmill.stages.text.modifiers.string.markdown_remover import MarkdownRemover
    from gristmill.stages.text.modifiers.string.newline_normalizer import NewlineNormalizer
    from gristmill.stages.text.modifiers.string.quotation_remover import QuotationRemover
    from gristmill.stages.text.modifiers.string.slicer import Slicer
    from gristmill.stages.text.modifiers.string.url_remover import UrlRemover
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

_HOMES = {
    "document_modifier": ("DocumentModifier",),
    "fasttext": ("FastTextLabelModifier",),
    "modify": ("Modify",),
    "pii.pii_modifier": ("PiiModifier",),
    "string.boilerplate_string": ("BoilerPlateStringModifier",),
    "string.line_remover": ("LineRemover",),
    "string.markdown_remover": ("MarkdownRemover",),
    "string.newline_normalizer": ("NewlineNormalizer",),
    "string.quotation_remover": ("QuotationRemover",),
    "string.slicer": ("Slicer",),
    "string.url_remover": ("UrlRemover",),
    "unicode": ("UnicodeReformatter",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
