"""On a Ray cluster too, whatever does not return is named with its stage and method, its process and its node."""

import importlib.util

import pytest
from tests.fault.test_hangs import HELD_UP, Hangs, HangsOnNode, Listener, run

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.backends.xenna import XennaExecutor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(120),
]

NAMED = {
    "setup": ("of hangs on node ", "has been setting up for", "(in setup of stage hangs)"),
    "process": ("of hangs on node ", "has been busy with part-00000 for", "(in stage hangs, one of "),
    "teardown": ("of hangs on node ", "has been ending for", "(in teardown of stage hangs)"),
    "setup_on_node": (HELD_UP, "waiting for node ", "setup_on_node included"),
}


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("method", NAMED)
def test_a_method_that_does_not_return_is_named_with_its_stage_and_node(tmp_path, monkeypatch, method):
    gate = tmp_path / "gate"
    listener = Listener(NAMED[method], lambda line: gate.touch())
    stage = HangsOnNode(method, gate) if method == "setup_on_node" else Hangs(method, gate)
    executor = RayActorPoolExecutor({"watchdog_s": 1.0}, show_progress=False)
    result = run(stage, listener, monkeypatch, executor=executor)

    assert gate.exists(), listener.said
    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == [1, 2, 3]


NEEDS_XENNA = pytest.mark.skipif(importlib.util.find_spec("cosmos_xenna") is None, reason="needs cosmos-xenna")
DELEGATED = [
    pytest.param(RayDataExecutor, "setup", id="ray_data-setup"),
    pytest.param(RayDataExecutor, "process", id="ray_data-process"),
    pytest.param(XennaExecutor, "process", id="xenna-process", marks=NEEDS_XENNA),
]
AT = {
    "setup": ("a worker of hangs (process ", "on node ", "has been setting up for", "in setup of stage hangs, at "),
    "process": ("a worker of hangs (process ", "has been busy with part-0000", "in process of stage hangs, at "),
}


@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize(("executor", "method"), DELEGATED)
def test_workers_of_another_engine_say_what_they_are_at(tmp_path, monkeypatch, executor, method):
    gate = tmp_path / "gate"
    listener = Listener(AT[method], lambda line: gate.touch())
    result = run(Hangs(method, gate), listener, monkeypatch, executor=executor({"watchdog_s": 1.0}))

    assert gate.exists(), listener.said
    assert sorted(n for task in result for n in task.to_pyarrow()["n"].to_pylist()) == [1, 2, 3]


class HoldsCores:
    """An actor of somebody else's."""

    def ready(self):
        return True


@pytest.mark.usefixtures("ray_cluster")
def test_a_cluster_without_a_free_core_is_named(monkeypatch, tmp_path):
    import ray

    other = ray.remote(HoldsCores).options(num_cpus=4).remote()
    ray.get(other.ready.remote())
    words = ("nothing has moved for", "no worker of hangs has become ready", "0 of 4 CPUs are free")
    listener = Listener(words, lambda line: ray.kill(other))
    result = run(Hangs("", tmp_path), listener, monkeypatch, executor=RayDataExecutor({"watchdog_s": 1.0}))

    assert [word for word in words if word not in listener.said] == []
    assert len(result) == 2
