"""Pipelines: what users build, and how it compiles to a plan."""

from gristmill.pipeline.pipeline import Pipeline
from gristmill.stages.context import Observation

__all__ = ["Observation", "Pipeline"]
