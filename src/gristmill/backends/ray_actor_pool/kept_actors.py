"""`KeptActors`: actors that outlive a run, for the next one to begin with. Starting one takes a second of a core.

Worker actors wait here under the machine they are on and the CPUs Ray has set aside for them, keepers under their
machine. What is kept holds CPUs of the cluster, so it makes room for an actor of another size. Workers with a GPU, or
with an environment of their own, or grown large, are not kept: what they hold is given back only when they end.
"""

import contextlib
from collections import defaultdict
from typing import Any

CLOSE_S = 5.0
MOST_BYTES = 1 << 30  # resident, at any time in its life: processes do not always give back what they free


class KeptActors:
    """What runs in a row share on a Ray cluster. With `keeps_workers=False`, only keepers, until the run ends."""

    def __init__(self, *, keeps_workers: bool) -> None:
        self.keeps_workers = keeps_workers
        self._workers: dict[str, list[tuple[float, Any]]] = defaultdict(list)  # by node: CPUs and handles
        self._keepers: dict[str, Any] = {}  # by node: handles

    def put_worker(self, node_id: str, cpus: float, actor: Any) -> None:  # Ray has no type for the handle of an actor
        """Keep an actor that has nothing to do."""
        self._workers[node_id].append((cpus, actor))

    def take_worker(self, node_id: str, cpus: float) -> Any:
        """An actor with exactly these CPUs on this node, or None."""
        for number, (has, actor) in enumerate(self._workers[node_id]):
            if has == cpus:
                del self._workers[node_id][number]
                return actor
        return None

    def make_room(self, node_id: str) -> None:
        """Give back the CPUs that are kept on a node, so that an actor of another size can start there."""
        import ray

        for cpus, actor in self._workers[node_id]:
            if cpus:
                ray.kill(actor)
        self._workers[node_id] = [(cpus, actor) for cpus, actor in self._workers[node_id] if not cpus]

    def put_keeper(self, node_id: str, keeper: Any) -> None:
        """Keep the keeper of a machine."""
        self._keepers[node_id] = keeper

    def take_keeper(self, node_id: str) -> Any:
        """The keeper of a machine, or None."""
        return self._keepers.pop(node_id, None)

    def close(self) -> None:
        """End them all."""
        workers = [actor for kept in self._workers.values() for _, actor in kept]
        keepers = list(self._keepers.values())
        self._workers.clear()
        self._keepers.clear()
        if not workers and not keepers:
            return
        import ray

        if not ray.is_initialized():  # what ended the connection ended them too
            return
        with contextlib.suppress(ray.exceptions.RayError):
            ray.wait([keeper.close.remote() for keeper in keepers], num_returns=len(keepers), timeout=CLOSE_S)
        for actor in (*workers, *keepers):
            ray.kill(actor)
