"""The executor on a Ray cluster: gristmill's scheduler, with actors for workers."""

from gristmill.backends.ray_actor_pool.executor import RayActorPoolExecutor

__all__ = ["RayActorPoolExecutor"]
