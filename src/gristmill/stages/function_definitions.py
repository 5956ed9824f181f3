"""Another name of `gristmill.stages.function_decorators`, used by published examples."""

from gristmill.stages.function_decorators import processing_stage

__all__ = ["processing_stage"]
