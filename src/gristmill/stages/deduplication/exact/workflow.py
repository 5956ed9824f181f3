"""`ExactDeduplicationWorkflow` under the path users know."""

from gristmill.deduplication.exact import ExactDeduplicationWorkflow

__all__ = ["ExactDeduplicationWorkflow"]
