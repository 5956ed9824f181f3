"""Models that grade documents about mathematics."""

from gristmill.stages.math.classifiers.finemath import FineMathClassifier

__all__ = ["FineMathClassifier"]
