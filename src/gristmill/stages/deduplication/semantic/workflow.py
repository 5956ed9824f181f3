"""`SemanticDeduplicationWorkflow` under the path users know."""

from gristmill.workflows.deduplication.semantic_dedup import SemanticDeduplicationWorkflow

__all__ = ["SemanticDeduplicationWorkflow"]
