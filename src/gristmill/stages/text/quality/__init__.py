"""Scores of quality: by classifiers you trained, combined, and sorted into buckets and levels."""

from gristmill.stages.text.quality.apply_classifier import ApplyClassifier
from gristmill.stages.text.quality.bucket_scores import BucketScores
from gristmill.stages.text.quality.combine_scores import CombineScores

__all__ = ["ApplyClassifier", "BucketScores", "CombineScores"]
