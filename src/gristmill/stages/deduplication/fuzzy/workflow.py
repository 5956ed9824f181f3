"""`FuzzyDeduplicationWorkflow` under the path users know."""

from gristmill.deduplication.fuzzy import FuzzyDeduplicationWorkflow

__all__ = ["FuzzyDeduplicationWorkflow"]
