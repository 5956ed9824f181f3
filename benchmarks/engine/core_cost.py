"""Suite row B14: what one event costs the scheduler, and whether that grows with the number of workers.

    python -m benchmarks.engine.core_cost [--record]

Three stages in virtual time, a few items for every worker, service times that differ, so that news comes one by one.
Counted is processor time within the scheduler, plans included; the simulator around it is not. The first plan, which
starts everybody, is given apart: it happens once.
"""

import time

from benchmarks.record import header, record

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.scheduler import Scheduler

SIZES = (1_000, 10_000, 100_000)
CPUS_PER_NODE = 100
ITEMS_PER_WORKER = 3


class _Clocked(Scheduler):
    """A scheduler that knows how long it has thought."""

    first_s = 0.0
    rest_s = 0.0
    num_events = 0

    def handle(self, *events: e.Event) -> list[c.Command]:
        began = time.process_time()
        commands = super().handle(*events)
        spent = time.process_time() - began
        if any(isinstance(event, e.NodeJoined) for event in events):
            self.first_s += spent
        else:
            self.rest_s += spent
            self.num_events += sum(not isinstance(event, e.Ticked) for event in events)
        return commands


def measure(workers: int) -> dict[str, float]:
    """Run once on so many workers."""
    document = {
        "items": workers * ITEMS_PER_WORKER,
        "nodes": {"count": workers // CPUS_PER_NODE, "cpus": CPUS_PER_NODE, "memory": "512GB"},
        "stages": [
            {"name": "read", "service_s": 1.0, "sigma": 0.3, "item_bytes": "1KB"},
            {"name": "filter", "service_s": 2.0, "sigma": 0.3, "item_bytes": "1KB"},
            {"name": "write", "service_s": 1.0, "sigma": 0.3},
        ],
    }
    simulation = Simulation(SimulationSpec.parse(document))
    simulation.scheduler = scheduler = _Clocked(simulation.groups, simulation.scheduler.config)
    began = time.process_time()
    result = simulation.run()
    return {
        "workers": sum(result.peak_workers.values()),
        "events": scheduler.num_events,
        "us_per_event": round(1e6 * scheduler.rest_s / scheduler.num_events, 1),
        "events_per_s": round(scheduler.num_events / scheduler.rest_s),
        "first_plan_s": round(scheduler.first_s, 2),
        "all_s": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Print one line for each size."""
    began = header()
    record("core_cost", began, {f"{workers} workers": measure(workers) for workers in SIZES})


if __name__ == "__main__":
    main()
