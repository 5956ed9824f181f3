"""`run_stages`, for executors that are given a list of stages in place of a plan."""

from gristmill.pipeline.pipeline import run_stages

__all__ = ["run_stages"]
