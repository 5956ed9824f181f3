"""A small quiet Ray on this machine: no dashboard, no reports to anybody, little memory.

Tests that use it are marked `xdist_group("ray")`, so that one process runs them all and there is one Ray at a time.
"""

import contextlib

import pytest

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
HEAD = {**NODE, "num_cpus": 2, "include_dashboard": False, "dashboard_port": 0}
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_memory_monitor_refresh_ms": "0",
}


@contextlib.contextmanager
def started():
    """Start a head node; nobody is connected to it yet."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        cluster = Cluster(initialize_head=True, head_node_args=HEAD)
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
