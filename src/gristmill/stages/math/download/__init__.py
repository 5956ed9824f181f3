"""Texts with formulas in them, out of pages, notebooks and plain files."""

from gristmill.stages.math.download.extract import MathContentExtractor, MathExtractStage

__all__ = ["MathContentExtractor", "MathExtractStage"]
