"""The executors every pipeline is to give the same bytes on. A new one is added here, and nowhere else in `parity`."""

import importlib.util

import pytest

ON_RAY = [pytest.mark.cluster, pytest.mark.heavy, pytest.mark.xdist_group("ray")]
NO_XENNA = pytest.mark.skipif(importlib.util.find_spec("cosmos_xenna") is None, reason="cosmos-xenna is an extra")


def local():
    from gristmill.backends.local import LocalExecutor

    return LocalExecutor(num_workers=2)


def ray_actor_pool():
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    return RayActorPoolExecutor(show_progress=False)


def ray_data():
    from gristmill.backends.ray_data import RayDataExecutor

    return RayDataExecutor({"cpus": 2})


def xenna():
    from gristmill.backends.xenna import XennaExecutor

    return XennaExecutor()


EXECUTORS = [
    pytest.param(local, id="local"),
    pytest.param(ray_actor_pool, id="ray_actor_pool", marks=ON_RAY),
    pytest.param(ray_data, id="ray_data", marks=ON_RAY),
    pytest.param(xenna, id="xenna", marks=[*ON_RAY, NO_XENNA]),
]
