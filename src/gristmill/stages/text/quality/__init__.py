"""Scores turned into decisions about a whole dataset: combined, and sorted into buckets and levels."""

from gristmill.stages.text.quality.bucket_scores import BucketScores
from gristmill.stages.text.quality.combine_scores import CombineScores

__all__ = ["BucketScores", "CombineScores"]
