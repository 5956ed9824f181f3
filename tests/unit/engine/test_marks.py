"""What the scheduler must reach in virtual time, each case against the best anybody could do."""

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine import commands as c
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group

MB = 10**6
GPU = Resources(gpus=1.0)


class Watched(VirtualRun):
    """A run that remembers the most bytes of data every machine has held."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.peaks = {}

    def feed(self, *events):
        commands = super().feed(*events)
        for node, book in self.scheduler.memory.nodes.items():
            self.peaks[node] = max(self.peaks.get(node, 0), book.held_total)
        return commands


def simulate(**document):
    return Simulation(SimulationSpec.parse(document)).run()


def best_with_setup(slots, items, fast_s, slow_s, setup_s):
    """The shortest run of two stages on so many slots, the second of which takes `setup_s` to start a worker."""
    return min(
        max(items * fast_s / (slots - slow), setup_s + items * slow_s / slow, (items * (fast_s + slow_s)) / slots)
        for slow in range(1, slots)
    )


def test_a_fast_stage_works_while_the_workers_of_a_slow_one_start():
    stages = [{"name": "fast", "service_s": 0.17}, {"name": "slow", "service_s": 0.21, "setup_s": 10}]
    result = simulate(items=12_600, nodes={"cpus": 126}, stages=stages, rescale_interval_s=1.0)

    assert best_with_setup(126, 12_600, 0.17, 0.21, 10) / result.makespan_s >= 0.95


def config(num_sources):
    """In a world where nothing is computed, no task has working copies."""
    return SchedulerConfig(num_sources=num_sources, working_copies=0.0)


def decoding(memory_bytes):
    """Items of 10 MB become 200 MB each on CPUs, for two GPUs that take a second for each of them."""
    script = {0: Deed((200 * MB,), service_s=0.5), 1: Deed((), service_s=1.0)}
    groups = (group(0), group(1, resources=GPU))
    run = Watched(groups, [10 * MB] * 100, lambda index, _: script[index], config=config(100))
    run.join(cpus=16, gpu_memory_gb=(80.0, 80.0), memory_bytes=memory_bytes)
    run.run()
    run.check_books()
    return run


def test_an_explosion_before_a_gpu_stays_within_its_memory_and_costs_no_time():
    limit = 1_000 * MB
    bounded, unbounded = decoding(limit), decoding(1 << 50)

    assert bounded.peaks[0] <= limit < unbounded.peaks[0]
    assert bounded.now <= unbounded.now / 0.95


def test_no_machine_exceeds_its_memory_when_some_have_little():
    script = {0: Deed((30 * MB,) * 8, service_s=0.4), 1: Deed((), service_s=0.3)}
    run = Watched((group(0), group(1)), [0] * 120, lambda index, _: script[index], config=config(120))
    limits = {0: 1_000 * MB, 1: 4_000 * MB, 2: 1_000 * MB}
    for limit in limits.values():
        run.join(cpus=8, memory_bytes=limit)
    run.run()
    run.check_books()

    assert all(run.peaks[node] <= limit for node, limit in limits.items())
    assert run.peaks[0] > 0.9 * limits[0]  # it has come to the point


def test_items_of_unknown_size_that_become_large_do_not_end_up_in_single_file():
    stages = [
        {"name": "fetch", "service_s": 1, "fan_out": 20, "item_bytes": "10MB"},
        {"name": "read", "service_s": 0.1},
    ]
    result = simulate(items=200, nodes={"cpus": 16, "memory": "4GB"}, stages=stages)

    assert result.makespan_s <= (200 * 1 + 4000 * 0.1) / 16 / 0.93


def test_under_the_tightest_memory_several_tasks_still_run_at_a_time():
    stages = [
        {"name": "fetch", "service_s": 1, "fan_out": 20, "item_bytes": "10MB"},
        {"name": "read", "service_s": 0.1},
    ]
    result = simulate(items=200, nodes={"cpus": 16, "memory": "1GB"}, stages=stages)

    # An item takes 200 MB for the second it is fetched, and 20 times 10 MB for the 0.1 s each is read.
    assert result.makespan_s <= 200 * (0.2 * 1 + 20 * 0.01 * 0.1) / 1.0 / 0.75


def pausing(pause_s):
    """Items of a second on CPUs for a GPU stage with 90 s of set-up; those of the middle take so much longer."""

    def script(index, assignment):
        paused = index == 0 and 300 <= int(assignment.item_id.partition(".")[0][1:]) < 304
        return Deed(service_s=(1.0 if index == 0 else 0.9) + pause_s * paused)

    run = VirtualRun((group(0), group(1, resources=GPU)), [1] * 600, script, setup_s=90.0)
    run.join(cpus=6, gpu_memory_gb=(80.0, 80.0))
    run.run()
    run.check_books()
    return [x.group for x in run.commands if isinstance(x, c.StartWorker)]


def test_a_pause_shorter_than_a_set_up_costs_no_worker_that_took_long_to_start():
    assert pausing(60.0).count(1) == 2


def test_the_longest_of_very_different_tasks_cost_little():
    stages = [{"name": "a", "service_s": 1, "sigma": 1.5, "longest": 20}, {"name": "b", "service_s": 0.2}]
    result = simulate(items=3000, nodes={"cpus": 16}, stages=stages)

    assert result.makespan_s <= 1.1 * result.bound_s


def test_a_change_of_speed_half_way_is_followed():
    slower = {"stage": "a", "from_s": 60, "factor": 4}
    stages = [{"name": "a", "service_s": 1}, {"name": "b", "service_s": 0.5}]
    result = simulate(items=1200, nodes={"cpus": 16}, stages=stages, slowdowns=[slower], rescale_interval_s=1.0)

    # 16 / 1.5 items a second before, 16 / 4.5 after.
    best_s = 60 + (1200 - 60 * 16 / 1.5) / (16 / 4.5)
    assert best_s / result.makespan_s >= 0.9
