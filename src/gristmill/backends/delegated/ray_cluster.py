"""`connect`: what the Ray cluster of a run has to offer. How it is reached is `backends/ray_connection.py`'s."""

from dataclasses import dataclass

from gristmill.backends import ray_connection
from gristmill.errors import ConfigError


@dataclass(frozen=True)
class RayCluster:
    """What a run may use."""

    address: str
    node_cpus: tuple[float, ...]
    gpus: float
    head_id: str

    @property
    def cpus(self) -> float:
        """Cores of all machines."""
        return sum(self.node_cpus)


def connect(who: str, *, dashboard: bool = False, ignore_head_node: bool = False) -> RayCluster:
    """Connect to a cluster, or start one. `who` is named in messages; `dashboard` is for one that is started here."""
    ray = ray_connection.connect(who, dashboard=dashboard)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    heads = [node["NodeID"] for node in nodes if "node:__internal_head__" in node["Resources"]]
    used = [node["Resources"] for node in nodes if not (ignore_head_node and node["NodeID"] in heads)]
    cpus = tuple(resources.get("CPU", 0.0) for resources in used)
    if not sum(cpus):
        raise ConfigError(f"{who}: expected a Ray cluster with cores to work on; got {len(used)} machines without any")
    gpus = sum(resources.get("GPU", 0.0) for resources in used)
    return RayCluster(ray.get_runtime_context().gcs_address, cpus, gpus, heads[0] if heads else "")
