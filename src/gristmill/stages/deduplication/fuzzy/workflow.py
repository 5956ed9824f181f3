"""`FuzzyDeduplicationWorkflow` under the path users know."""

from gristmill.workflows.deduplication.fuzzy_dedup import FuzzyDeduplicationWorkflow

__all__ = ["FuzzyDeduplicationWorkflow"]
