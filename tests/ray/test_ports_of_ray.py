"""The ports of a real Ray: its head is recognised, and a node's own port is not taken for one."""

import pytest

from gristmill.backends.ray_connection import check_address
from gristmill.errors import RunFailed

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.heavy, pytest.mark.xdist_group("ray")]


def test_the_port_of_a_head_is_told_from_the_port_of_a_node(ray_cluster):
    import ray

    here = ray.get_runtime_context().get_node_id()
    (node,) = (node for node in ray.nodes() if node["NodeID"] == here)
    port = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"

    check_address("RayDataExecutor", ray_cluster.address)
    with pytest.raises(RunFailed, match=rf"RAY_ADDRESS={port}; got: a server that speaks gRPC, .* is not a Ray head"):
        check_address("RayDataExecutor", port)
