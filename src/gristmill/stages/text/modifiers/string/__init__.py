"""Modifiers that cut and replace: no model, one idea per file."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
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

_HOMES = {
    "boilerplate_string": ("BoilerPlateStringModifier",),
    "line_remover": ("LineRemover",),
    "markdown_remover": ("MarkdownRemover",),
    "newline_normalizer": ("NewlineNormalizer",),
    "quotation_remover": ("QuotationRemover",),
    "slicer": ("Slicer",),
    "url_remover": ("UrlRemover",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
