"""Row B14: what an event costs the scheduler with a thousand, ten thousand and a hundred thousand workers."""

import gc
import time
from dataclasses import dataclass

from benchmarks.engine.outcome import Outcome, Row

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import NodeSpec, SimulationSpec, StageSpec
from gristmill.engine import commands as c
from gristmill.engine import events as e

SIZES = (1_000, 10_000, 100_000)
EVENTS = 30_000
BUDGET_S = 20.0
FLAT = 3.0  # the largest may cost so many times the smallest


@dataclass
class Stopwatch:
    """Counts the processor time spent in the scheduler, which is what is measured, not the pretended cluster."""

    simulation: Simulation
    spent_s: float = 0.0

    def __post_init__(self) -> None:
        self._clock_s = _clock_s()
        self._handle = self.simulation.scheduler.handle
        self.simulation.scheduler.handle = self.handle  # type: ignore[method-assign]

    def handle(self, *events: e.Event) -> list[c.Command]:
        began = time.process_time()
        commands = self._handle(*events)
        self.spent_s += time.process_time() - began - self._clock_s
        return commands


def _clock_s() -> float:
    """What one look at the clock costs: up to 40 µs on a virtual machine, half of what is to be measured."""
    began = time.process_time()
    for _ in range(1_000):
        time.process_time()
    return (time.process_time() - began) / 1_000


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


def microseconds_per_event(workers: int) -> float:
    """Once the workers are there and have had work for a while."""
    simulation = Simulation(spec_of(workers))
    simulation.begin()
    began = time.process_time()
    while simulation.now < 240 and time.process_time() - began < BUDGET_S:
        simulation.step()
    watch, before, began = Stopwatch(simulation), simulation.num_events, time.process_time()
    gc.collect()
    while simulation.num_events - before < EVENTS and time.process_time() - began < BUDGET_S:
        simulation.step()
    return watch.spent_s / max(1, simulation.num_events - before) * 1e6


def _measure() -> list[Outcome]:
    costs = {workers: microseconds_per_event(workers) for workers in SIZES}
    growth = costs[SIZES[-1]] / costs[SIZES[0]]
    outcomes = [
        Outcome(f"{workers:,} workers", "≤ 100 µs an event", f"{cost:.0f} µs", cost <= 100)
        for workers, cost in costs.items()
    ]
    return [*outcomes, Outcome("cost at 100,000 / at 1,000", f"≤ {FLAT:g}", f"{growth:.1f}", growth <= FLAT)]


ROWS = (Row("B14", "V", "three stages, 1,000 to 100,000 workers", _measure),)
