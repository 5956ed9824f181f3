"""No standstill: with next to no memory, with one GPU for two groups, with stages that stream into each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.scripts import Fanning

from gristmill.engine.commands import StartWorker
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=12),
    batches=st.lists(st.sampled_from((1, 2, 5)), min_size=1, max_size=4),
    memory=st.integers(0, 300),
    seed=st.integers(0, 10_000),
    lanes=st.sampled_from((1, 1, 3)),
)
def test_a_run_ends_however_small_the_memory(sizes, batches, memory, seed, lanes):
    groups = tuple(group(i, batch_size=size, lanes=lanes) for i, size in enumerate(batches))
    run = VirtualRun(groups, sizes, Fanning(seed, max_bytes=200))
    run.join(memory_bytes=memory)
    run.run()
    run.check_books()


@pytest.mark.parametrize("barrier", [False, True])
def test_a_stage_that_streams_more_than_fits_is_followed_by_the_next(barrier):
    def script(index, _assignment):
        return Deed(sizes=(60,) * 30, streamed=30) if index == 0 else Deed()

    run = VirtualRun((group(0), group(1)), [50], script, config=SchedulerConfig(num_sources=1, barrier=barrier))
    run.join(memory_bytes=100)
    run.run()
    run.check_books()


@pytest.mark.parametrize("streamed", [0, 5])
def test_two_groups_take_turns_on_one_gpu(streamed):
    groups = (group(0, resources=Resources(gpus=1)), group(1, resources=Resources(gpus=1)))
    run = VirtualRun(groups, [1] * 40, lambda index, _: Deed((1,) * 5, streamed) if index == 0 else Deed())
    run.join(gpu_memory_gb=(8.0,))
    run.run()
    run.check_books()

    turns = [command.group for command in run.commands if isinstance(command, StartWorker)]
    assert {0, 1} <= set(turns)
    assert len(turns) < 40  # a turn is worth its set-up


def test_a_group_of_two_gpus_gets_both_from_groups_that_use_one_each():
    groups = (group(0, resources=Resources(gpus=1)), group(1, resources=Resources(gpus=2)))
    run = VirtualRun(groups, [1] * 60)
    run.join(gpu_memory_gb=(8.0, 8.0))
    run.run()
    run.check_books()


def test_what_waits_is_bounded_by_memory_while_the_next_group_loads_its_model():
    held = []

    class Watched(VirtualRun):
        def feed(self, *events):
            commands = super().feed(*events)
            held.append(self.scheduler.memory.held_total)
            return commands

    def script(index, _assignment):
        return Deed((50,) if index == 0 else (1,))

    run = Watched((group(0), group(1, batch_size=64)), [10] * 100, script, setup_s=(0.01, 30.0))
    run.join(memory_bytes=1000)
    run.run()
    run.check_books()

    assert max(held) <= 1000
