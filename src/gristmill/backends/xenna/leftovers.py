"""`ended`: no process of Cosmos-Xenna outlives a run.

Its workers and the monitor it starts on every node have threads that never end. The monitors stay for ever; workers
stay when a run fails. Both go on after Ray itself is gone (0.3.0: half an hour later, at 2 % of a core each). So what
Xenna makes is noted on the way, and killed at the end. Private names of Xenna are used here, and nowhere else.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

LOOK_S = 2.0


@contextlib.contextmanager
def ended() -> Iterator[None]:
    """Run Xenna inside this context, and nothing of it is left."""
    import ray
    from cosmos_xenna.pipelines.private import monitoring
    from cosmos_xenna.ray_utils import actor_pool

    pools: list[Any] = []
    monitors: list[Any] = []
    with _noted(actor_pool, "ActorPool", pools), _noted(monitoring, "RayResourceMonitor", monitors):
        try:
            yield
        finally:
            for pool in pools:
                pool.stop()
            for monitor in monitors:
                for actor in getattr(monitor, "_monitors", ()):
                    ray.kill(actor)


@contextlib.contextmanager
def _noted(module: Any, name: str, made: list[Any]) -> Iterator[None]:
    """While this is open, every new object of a class is noted."""
    original: Any = getattr(module, name)

    class Noted(original):  # type: ignore[misc]  # without types
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    setattr(module, name, Noted)
    try:
        yield
    finally:
        setattr(module, name, original)


def end_with_parent() -> None:
    """Called in a worker: end it when the Ray that started it is gone, whatever its threads do."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
