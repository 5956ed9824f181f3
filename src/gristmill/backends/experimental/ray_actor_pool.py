"""`RayActorPoolExecutor` under a path users know."""

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

__all__ = ["RayActorPoolExecutor"]
