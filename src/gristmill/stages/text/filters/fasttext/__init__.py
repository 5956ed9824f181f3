"""Filters with a fastText model: which language a text is in, and how good it is."""

from gristmill.stages.text.filters.fasttext.lang_id import FastTextLangId
from gristmill.stages.text.filters.fasttext.quality import FastTextQualityFilter

__all__ = ["FastTextLangId", "FastTextQualityFilter"]
