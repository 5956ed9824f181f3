"""`TextSemanticDeduplicationWorkflow` under the path users know."""

from gristmill.deduplication.text_semantic import TextSemanticDeduplicationWorkflow

__all__ = ["TextSemanticDeduplicationWorkflow"]
