"""Another name of `gristmill.stages.base`, used by published examples."""

from gristmill.stages.base import CompositeStage, ProcessingStage, get_stage_class

__all__ = ["CompositeStage", "ProcessingStage", "get_stage_class"]
