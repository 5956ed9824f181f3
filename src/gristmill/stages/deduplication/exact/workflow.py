"""`ExactDeduplicationWorkflow` under the path users know."""

from gristmill.workflows.deduplication.exact_dedup import ExactDeduplicationWorkflow

__all__ = ["ExactDeduplicationWorkflow"]
