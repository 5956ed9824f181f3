"""PDF: the text of pages in the order they are read."""

from gristmill.stages.text.pdf.pdf_extractor import PdfExtractStage
from gristmill.stages.text.pdf.pdf_reader import PdfReader

__all__ = ["PdfExtractStage", "PdfReader"]
