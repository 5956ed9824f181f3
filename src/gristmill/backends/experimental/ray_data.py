"""`RayDataExecutor` under a path users know."""

from gristmill.backends.ray_data import RayDataExecutor

__all__ = ["RayDataExecutor"]
