"""`connect`: the Ray cluster of a run. The one this process is connected to, that of `RAY_ADDRESS`, or a new one here.

A cluster that was started here stays until the process ends: the next run begins at once, and final tasks of a
pipeline without a writer can still be looked at. One that somebody else started is never stopped.
"""

import os
from dataclasses import dataclass
from typing import Any

from gristmill.errors import ConfigError, require


@dataclass(frozen=True)
class RayCluster:
    """What a run may use."""

    address: str
    cpus: float
    gpus: float
    head_id: str


def connect(who: str, *, dashboard: bool = False, ignore_head_node: bool = False) -> RayCluster:
    """Connect to a cluster, or start one. `who` asks, for messages; `dashboard` is for one that is started here."""
    ray: Any = require("ray", extra="ray")
    if not ray.is_initialized():
        _initialise(ray, who, dashboard=dashboard)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    heads = [node["NodeID"] for node in nodes if "node:__internal_head__" in node["Resources"]]
    used = [node["Resources"] for node in nodes if not (ignore_head_node and node["NodeID"] in heads)]
    cpus = sum(resources.get("CPU", 0.0) for resources in used)
    if not cpus:
        raise ConfigError(f"{who}: expected a Ray cluster with cores to work on; got {len(used)} machines without any")
    gpus = sum(resources.get("GPU", 0.0) for resources in used)
    return RayCluster(ray.get_runtime_context().gcs_address, cpus, gpus, heads[0] if heads else "")


def _initialise(ray: Any, who: str, *, dashboard: bool) -> None:
    given = os.environ.get("RAY_ADDRESS")
    try:
        if given:
            ray.init(address=given, log_to_driver=False)
        else:
            # Without an address Ray would join whatever it finds on this machine, another user's included.
            ray.init(address="local", include_dashboard=dashboard, log_to_driver=False, _node_ip_address="127.0.0.1")
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at RAY_ADDRESS={given!r}" if given else "to start on this machine"
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{who}: expected a Ray cluster {where}; {reason}. "
            f"This is Ray {ray.__version__}; a cluster must have the same version"
        ) from error
