"""`StagePerfStats` under the path users know."""

from gristmill.tasks.task import StagePerfStats

__all__ = ["StagePerfStats"]
