"""`Machines`: the nodes of a Ray cluster as the scheduler's machines, each with a keeper.

A Ray node has a number here from the moment its keeper has answered until it is lost; should it come back, it gets
another. What a machine has for data is its object store, so that Ray never spills.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gristmill.backends.ray_actor_pool.keeper import NodeKeeper, Place, versions
from gristmill.backends.ray_actor_pool.kept_actors import KeptActors
from gristmill.engine.events import NodeJoined

if TYPE_CHECKING:
    from concurrent.futures import Future

HEAD = "node:__internal_head__"
STORE_SHARE = 0.8  # of the object store, for tasks' data; Ray begins to spill at this share
DEFAULT_GPU_MEMORY_GB = 80.0  # Ray knows how many GPUs a node has, and not how large they are
OPEN_S = 120.0

RayNode = dict[str, Any]  # an entry of `ray.nodes()`


@dataclass
class Machine:
    """One node in use."""

    number: int
    node_id: str
    address: str
    keeper: Any  # a handle of a NodeKeeper
    crumbs: str
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int
    cpus_asked: float = 0.0  # of Ray, for our workers

    def joined(self) -> NodeJoined:
        return NodeJoined(self.number, self.cpus, self.gpu_memory_gb, self.memory_bytes)

    def ask_cpus(self, wanted: float) -> float:
        """CPUs to ask Ray for: where the scheduler has put more workers than there are CPUs, the last get none."""
        asked = min(wanted, max(0.0, self.cpus - self.cpus_asked))
        self.cpus_asked += asked
        return asked


class Machines:
    """All nodes in use, and those on their way to be."""

    def __init__(
        self,
        ray: ModuleType,
        kept: KeptActors,
        work: bytes | None,
        *,
        ignore_head_node: bool,
        memory_limit: int | None,
        gpu_gb: float,
    ) -> None:
        self.ray = ray
        self.kept = kept
        self.work = work
        self.ignore_head_node = ignore_head_node
        self.memory_limit = memory_limit
        self.gpu_gb = gpu_gb
        self.used: dict[int, Machine] = {}
        self._numbers: dict[str, int] = {}  # of nodes in use or on their way
        self._next = 0

    def alive(self) -> dict[str, RayNode]:
        """The nodes Ray knows that may be used, by id, in a steady order."""
        nodes = sorted(self.ray.nodes(), key=lambda node: str(node["NodeID"]))
        return {
            node["NodeID"]: node
            for node in nodes
            if node["Alive"]
            and node["Resources"].get("CPU")
            and not (self.ignore_head_node and HEAD in node["Resources"])
        }

    def fresh(self) -> list[RayNode]:
        """Nodes that are there and not yet in use, nor on their way."""
        return [node for node_id, node in self.alive().items() if node_id not in self._numbers]

    def gone(self) -> list[Machine]:
        """Machines whose nodes are no longer there."""
        alive = self.alive()
        return [machine for machine in self.used.values() if machine.node_id not in alive]

    def invite(self, node: RayNode) -> "tuple[Any, Future[tuple[Place, str]]]":
        """Start a keeper on a node, if none was kept; the future has what it says, and the error of its set-up."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node_id = node["NodeID"]
        self._numbers[node_id] = self._next
        self._next += 1
        keeper = self.kept.take_keeper(node_id)
        if keeper is None:
            strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
            keeper = self.ray.remote(NodeKeeper).options(num_cpus=0, scheduling_strategy=strategy).remote(node_id)
        answer: Future[tuple[Place, str]] = keeper.welcome.remote(self.work, versions()).future()
        return keeper, answer

    def admit(self, node: RayNode, keeper: Any, place: Place) -> Machine:
        """Use a node from now on; `misfit` has found nothing against it."""
        resources, number = node["Resources"], self._numbers[node["NodeID"]]
        store = int(resources.get("object_store_memory", 0))
        machine = Machine(
            number,
            node["NodeID"],
            node["NodeManagerAddress"],
            keeper,
            place.crumbs,
            cpus=float(resources["CPU"]),
            gpu_memory_gb=(self.gpu_gb,) * int(resources.get("GPU", 0)),
            memory_bytes=self.memory_limit or int(store * STORE_SHARE),
        )
        self.used[number] = machine
        return machine

    def leave(self) -> None:
        """Stop using all nodes."""
        for machine in self.used.values():
            self.kept.put_keeper(machine.node_id, machine.keeper)
        self.used.clear()

    def forget(self, node_id: str) -> None:
        """A node is lost, or was of no use; if it is still there or comes back, it counts as a new one."""
        number = self._numbers.pop(node_id, None)
        if number is not None:
            self.used.pop(number, None)


def misfit(address: str, place: Place) -> str:
    """Why a node cannot be used, or nothing."""
    here, there = versions(), place.versions
    wrong = [f"{name} {here[name]} as here; got {there[name]}" for name in here if here[name] != there[name]]
    if not wrong:
        return ""
    return f"node {address}: expected {', and '.join(wrong)}. Install the same version on every machine"
