"""On a Ray cluster too, whatever does not return is named with its stage and method, its process and its node."""

import pytest
from tests.fault.test_hangs import HELD_UP, Hangs, HangsOnNode, Listener, run

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
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
