"""`TextDuplicatesRemovalStage` under the path users know."""

from gristmill.deduplication.removal import TextDuplicatesRemovalStage

__all__ = ["TextDuplicatesRemovalStage"]
