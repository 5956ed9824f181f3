"""`TextDuplicatesRemovalWorkflow` under the path users know."""

from gristmill.workflows.deduplication.duplicate_removal import TextDuplicatesRemovalWorkflow

__all__ = ["TextDuplicatesRemovalWorkflow"]
