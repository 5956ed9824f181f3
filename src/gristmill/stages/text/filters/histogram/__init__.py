"""Filters that compare a text's characters with those of a language."""

from gristmill.stages.text.filters.histogram.histogram import HistogramFilter

__all__ = ["HistogramFilter"]
