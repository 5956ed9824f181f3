"""What goes wrong in a simulated run, and when: workers and nodes that are lost. Seeded, so it is repeatable."""

import random
from typing import TYPE_CHECKING

from gristmill.engine import events as e

if TYPE_CHECKING:  # the faults are part of a simulation, in a file of their own
    from gristmill.backends.simulated.simulation import Simulation


class Faults:
    """Kills what the spec says."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self._spec = simulation.spec.faults
        self._random = random.Random(simulation.spec.seed)

    def begin(self) -> None:
        """Set the alarms."""
        at = self._simulation.at
        if self._spec.kill_worker_every_s:
            at(self._spec.kill_worker_every_s, self._kill_one)
        if self._spec.lose_node_every_s:
            at(self._spec.lose_node_every_s, self._lose_node)
        for second, share in self._spec.kill_at.items():
            at(float(second), lambda share=share: self._kill_many(share))  # type: ignore[misc]

    def _ready(self) -> list[int]:
        return [number for number, worker in self._simulation.workers.items() if worker.ready]

    def _kill_one(self) -> None:
        ready = self._ready()
        if ready:
            self._kill(self._random.choice(ready))
        self._simulation.at(self._spec.kill_worker_every_s or 0.0, self._kill_one)

    def _kill_many(self, share: float) -> None:
        ready = self._ready()
        for number in self._random.sample(ready, round(share * len(ready))):
            self._kill(number)

    def _kill(self, number: int) -> None:
        worker = self._simulation.workers[number]
        self._simulation.kill(worker, "killed by the simulation", self._simulation.place_of(worker))

    def _lose_node(self) -> e.Event | None:
        simulation = self._simulation
        node, kind = self._random.choice(list(simulation.accounts.nodes.items()))
        lost = simulation.lose_machine(node)
        simulation.accounts.lose_node(node)
        simulation.at(self._spec.node_back_s, lambda: simulation.accounts.add_node(kind))
        simulation.at(self._spec.lose_node_every_s or 0.0, self._lose_node)
        return lost
