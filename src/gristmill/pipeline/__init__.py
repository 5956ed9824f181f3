"""Pipelines: what users build, and how it compiles to a plan."""

from gristmill.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]
