"""A small quiet Ray on this machine: no reports to anybody, little memory, a dashboard only where Xenna asks for one.

Tests that use it are marked `xdist_group("ray")`, so that one process runs them all and there is one Ray at a time.
"""

import contextlib
import importlib.util
import socket

import pytest

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
# Cosmos-Xenna asks the dashboard which actors there are.
DASHBOARD = importlib.util.find_spec("cosmos_xenna") is not None
HEAD = {**NODE, "num_cpus": 2, "include_dashboard": DASHBOARD}
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_memory_monitor_refresh_ms": "0",
}


def _free_port():
    """A port for the dashboard. Told to find one itself, it may go on saying that it is at port 0."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def started():
    """Start a head node; nobody is connected to it yet."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        cluster = Cluster(initialize_head=True, head_node_args={**HEAD, "dashboard_port": _free_port()})
        try:
            yield cluster
        finally:
            cluster.shutdown()


@contextlib.contextmanager
def connected(cluster):
    """Be a driver on a cluster."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()
