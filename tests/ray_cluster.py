"""A small quiet Ray on this machine: no reports to anybody, little memory, a dashboard only where Xenna asks for one.

Tests that use it are marked `cluster` and `xdist_group("ray")`, so that one process runs them all, in a row; the first
test without that mark ends it.
"""

import contextlib
import importlib.util
import socket
import tempfile

import pytest

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
# Cosmos-Xenna asks the dashboard which actors there are.
DASHBOARD = importlib.util.find_spec("cosmos_xenna") is not None
# Cosmos-Xenna wants a core for each of its stages, and one to spare; they are logical, the machine may have fewer.
HEAD = {**NODE, "num_cpus": 4, "include_dashboard": DASHBOARD}
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_memory_monitor_refresh_ms": "0",
}


def _free_port():
    """A port nobody has. Told to find one itself, the dashboard may go on saying that it is at port 0."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class SharedCluster:
    """One Ray for all tests of a process that need one: started by the first, stopped when none is left."""

    def __init__(self):
        self._open = None
        self._cluster = None

    def connected(self):
        """The cluster, with this process as its driver. Tests may add nodes, and remove those."""
        if self._open is None:
            with contextlib.ExitStack() as opened:
                self._cluster = self._start(opened)
                self._open = opened.pop_all()
        return self._cluster

    def close(self):
        """Stop it, if it runs."""
        opened, self._open, self._cluster = self._open, None, None
        if opened is not None:
            opened.close()

    @staticmethod
    def _start(opened):
        import ray
        from ray.cluster_utils import Cluster

        patch = opened.enter_context(pytest.MonkeyPatch.context())
        # Short, because sockets go below it, and one of its own, where no cluster that is gone has left its address.
        # Workers that end a moment after their cluster may still write there while it is removed.
        directory = tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp", ignore_cleanup_errors=True)
        patch.setenv("RAY_TMPDIR", opened.enter_context(directory))
        for name, value in QUIET.items():
            patch.setenv(name, value)
        # Ports of its own: two Rays at the usual one would both listen there, and answer each other's drivers.
        ports = {"dashboard_port": _free_port(), "gcs_server_port": _free_port()}
        cluster = Cluster(initialize_head=True, head_node_args={**HEAD, **ports})
        opened.callback(cluster.shutdown)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        opened.callback(ray.shutdown)
        return cluster


shared = SharedCluster()
