"""The same events give the same commands in another process under another hash seed (I13, I20)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.property.scripts import Fanning

from gristmill.engine import events as e
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import VirtualRun, group


def troubled_run():
    """A run in which workers and a node are lost and tasks raise, always at the same points."""
    shapes = (Resources(), Resources(gpus=0.5), Resources())
    groups = tuple(group(i, batch_size=1 + i, resources=shape) for i, shape in enumerate(shapes))
    config = SchedulerConfig(num_sources=30, worker_max_lifetime_s=0.5)
    run = VirtualRun(groups, range(30), Fanning(seed=7), config=config)
    run.join(gpu_memory_gb=(8.0,), memory_bytes=2000)
    run.join(gpu_memory_gb=(8.0, 8.0), memory_bytes=2000)
    for step in range(400):
        if run.finish is not None:
            break
        run.next_step()
        if step % 37 == 11 and run.running():
            run.lose(run.running()[0], crumb=e.Crumb(0, 0, 1))
        if step % 41 == 17 and run.running():
            run.fail_task(run.running()[-1], transient=step % 2 == 0)
        if step == 150:
            run.lose_node(1)
    run.run()
    return run


@pytest.mark.slow
def test_replaying_the_events_elsewhere_gives_the_same_commands():
    run = troubled_run()
    assert run.finish is not None
    program = "from tests.property.test_scheduler_is_pure import troubled_run; print(troubled_run().commands)"
    here = os.pathsep.join([os.fspath(Path(__file__).parents[2]), *sys.path])  # the very same gristmill
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": here},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "4242")
    ]

    assert outputs == [str(run.commands)] * 2


def test_replaying_the_events_on_a_new_scheduler_gives_the_same_commands():
    run = troubled_run()
    again = Scheduler(run.groups, run.config)
    commands = []
    for tick, event in steps(run.events):
        commands += again.handle(tick, *event)

    assert commands == run.commands


def steps(events):
    """Cut the list at its ticks: each step is one tick and what came with it."""
    step = None
    for event in events:
        if isinstance(event, e.Ticked):
            if step is not None:
                yield step
            step = (event, [])
        else:
            step[1].append(event)
    yield step
