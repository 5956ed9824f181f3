"""The executor that hands a plan to Ray Data."""

from gristmill.backends.ray_data.executor import RayDataExecutor

__all__ = ["RayDataExecutor"]
