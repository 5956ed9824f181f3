"""`TextDuplicatesRemovalWorkflow` under the path users know."""

from gristmill.deduplication.removal import TextDuplicatesRemovalWorkflow

__all__ = ["TextDuplicatesRemovalWorkflow"]
