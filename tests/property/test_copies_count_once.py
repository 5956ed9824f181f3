"""Stragglers that are run twice, with failures, deaths and repeated messages on the way, count once."""

import random

import pytest
from tests.property.scripts import Fanning

from gristmill.engine import events as e
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import VirtualRun, group

SHAPES = (Resources(), Resources(cpus=0.5), Resources(gpus=1), Resources(gpus=0.5))
REPEATED = (e.TaskFinished, e.TaskEmitted, e.Committed, e.WorkerReady)
MAX_STEPS = 3000


def anything(run, dice):
    """Let one thing happen; now and then time passes that makes a straggler of what is running."""
    chance = dice.random()
    if chance < 0.1 and run.source_notices:
        run.tell_source()
    elif chance < 0.2 and run.notices:
        run.tell_notice()
    elif chance < 0.6 and run.able():
        run.now += dice.choice((0, 0.05, 0.2, 2.5))
        run.act(dice.choice(run.able()))
    elif chance < 0.62 and run.running():
        run.fail_task(dice.choice(run.running()), transient=dice.random() < 0.5)
    elif chance < 0.63 and run.running():
        run.lose(dice.choice(run.running()))
    elif chance < 0.64:
        old = [event for event in run.events[-60:] if isinstance(event, REPEATED)]
        run.repeat(dice.choice(old or [e.Ticked(0.0)]))
    else:
        run.next_step()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_every_partition_comes_out_once(seed):
    for each in range(seed, seed + 10):
        dice = random.Random(each)
        groups = tuple(
            group(i, batch_size=dice.choice((1, 1, 2, 4)), resources=dice.choice(SHAPES), may_run_twice=True)
            for i in range(dice.randint(1, 3))
        )
        run = VirtualRun(groups, [dice.randint(0, 60) for _ in range(dice.randint(0, 12))], Fanning(each))
        run.join(cpus=4, gpu_memory_gb=(8.0, 5.5, 8.0), memory_bytes=dice.choice((50, 400, 10**9)))
        for _ in range(MAX_STEPS):
            if run.finish is None:
                anything(run, dice)

        run.check_books()
