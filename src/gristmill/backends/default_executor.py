"""`default_executor`: where a pipeline runs if nothing else is said."""

from gristmill.backends.base import BaseExecutor
from gristmill.backends.local import LocalExecutor


def default_executor() -> BaseExecutor:
    """Ray, if RAY_ADDRESS is set or this program has initialised Ray; else this machine."""
    from gristmill.backends.ray_connection import in_use

    if not in_use():
        return LocalExecutor()
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    return RayActorPoolExecutor()
