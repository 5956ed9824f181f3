"""The executors every pipeline is to give the same bytes on. A new one is added here, and nowhere else in `parity`."""

import pytest

ON_RAY = [pytest.mark.xdist_group("ray")]


def local():
    from gristmill.backends.local import LocalExecutor

    return LocalExecutor(num_workers=2)


def ray_actor_pool():
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    return RayActorPoolExecutor(show_progress=False)


EXECUTORS = [pytest.param(local, id="local"), pytest.param(ray_actor_pool, id="ray_actor_pool", marks=ON_RAY)]
