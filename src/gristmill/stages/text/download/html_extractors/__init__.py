"""What finds the text of a page, under the names users know."""

from gristmill.stages.text.download.html_extractors.base import HTMLExtractorAlgorithm
from gristmill.stages.text.download.html_extractors.cascade import CascadeExtractor
from gristmill.stages.text.download.html_extractors.justext import JusTextExtractor
from gristmill.stages.text.download.html_extractors.resiliparse import ResiliparseExtractor
from gristmill.stages.text.download.html_extractors.trafilatura import TrafilaturaExtractor

__all__ = [
    "CascadeExtractor",
    "HTMLExtractorAlgorithm",
    "JusTextExtractor",
    "ResiliparseExtractor",
    "TrafilaturaExtractor",
]
