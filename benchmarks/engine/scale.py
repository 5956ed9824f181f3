"""Row B14: what an event costs the scheduler with a thousand, ten thousand and a hundred thousand workers."""

import gc
import time
from collections.abc import Callable

from benchmarks.engine.outcome import Outcome, Row

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec
from gristmill.engine import commands as c
from gristmill.engine import events as e

SIZES = (1_000, 10_000, 100_000)
EVENTS = 30_000
WARM_UP_S = 120.0  # of virtual time: all workers are there, and the first have been moved between stages
FLAT = 3.0  # the largest may cost so many times the smallest


def spec_of(workers: int) -> SimulationSpec:
    """Three stages on nodes of a hundred cores."""
    return SimulationSpec(
        items=3 * workers + EVENTS,
        nodes=(NodeSpec(count=workers // 100, cpus=100),),
        stages=(
            StageSpec(name="a", service_s=60, sigma=0.3),
            StageSpec(name="b", service_s=30, sigma=0.3),
            StageSpec(name="c", service_s=10, sigma=0.3),
        ),
        rescale_interval_s=60,
    )


class Recording:
    """What a pretended cluster told its scheduler, call by call.

    It is played to a second scheduler, so that what is measured is the scheduler alone. Looking at the clock in every
    call would not do: that takes up to 40 µs on a virtual machine, half of what is to be measured, and how much
    to take off again differs from minute to minute.
    """

    def __init__(self, workers: int) -> None:
        self.simulation = Simulation(spec_of(workers))
        self.calls: list[tuple[e.Event, ...]] = []
        self._handle = self.simulation.scheduler.handle
        self.simulation.scheduler.handle = self._record  # type: ignore[method-assign]
        self.simulation.begin()

    def go_on(self, until: Callable[[], bool]) -> None:
        """Record until something holds. A limit of real time would have a slow machine measure other events."""
        while not until():
            self.simulation.step()

    def _record(self, *events: e.Event) -> list[c.Command]:
        self.calls.append(events)
        return self._handle(*events)


def recorded(workers: int) -> tuple[SimulationSpec, list[tuple[e.Event, ...]], int]:
    """Return what was simulated, the calls of its scheduler, and how many of them come before anything is measured."""
    recording = Recording(workers)
    simulation = recording.simulation
    recording.go_on(lambda: simulation.now >= WARM_UP_S)
    warm_up, before = len(recording.calls), simulation.num_events
    recording.go_on(lambda: simulation.num_events - before >= EVENTS)
    return simulation.spec, recording.calls, warm_up


def microseconds_per_event(workers: int) -> float:
    """Once the workers are there and have had work for a while."""
    spec, calls, warm_up = recorded(workers)
    scheduler = Simulation(spec).scheduler
    for events in calls[:warm_up]:
        scheduler.handle(*events)
    gc.collect()
    began = time.process_time()
    for events in calls[warm_up:]:
        scheduler.handle(*events)
    return (time.process_time() - began) / sum(map(len, calls[warm_up:])) * 1e6


def _measure() -> list[Outcome]:
    costs = {workers: microseconds_per_event(workers) for workers in SIZES}
    growth = costs[SIZES[-1]] / costs[SIZES[0]]
    outcomes = [
        Outcome(f"{workers:,} workers", "≤ 100 µs an event", f"{cost:.0f} µs", cost <= 100)
        for workers, cost in costs.items()
    ]
    return [*outcomes, Outcome("cost at 100,000 / at 1,000", f"≤ {FLAT:g}", f"{growth:.1f}", growth <= FLAT)]


ROWS = (Row("B14", "V", "three stages, 1,000 to 100,000 workers", _measure),)
