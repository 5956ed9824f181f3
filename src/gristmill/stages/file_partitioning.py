"""The path users know. `stages/io/partitioning.py` has what stands behind it."""

from gristmill.stages.io.partitioning import FilePartitioningStage

__all__ = ["FilePartitioningStage"]
