"""A run is simulated with what it measured, on the machine somebody asks about."""

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.what_if import changed, spec_of
from gristmill.errors import ConfigError
from gristmill.runs.progress import MeasuredGroup, MeasuredRun


def measured(*, tasks=400, fan_out=1.0):
    decode = MeasuredGroup("decode", 1.0, 0.0, 0.0, 1, None, tasks, 0.1, 0.0, 0.0, 0.0, fan_out, 1000.0)
    embed = MeasuredGroup("embed", 0.0, 1.0, 0.0, 1, None, tasks, 0.5, 0.2, 2.0, 0.01, 1.0, 0.0)
    return MeasuredRun("demo", 8.0, (80.0,), 10**9, 1.0, 500.0, (decode, embed), 206.0, 202.0, "gpu", {})


def test_what_was_measured_is_simulated():
    spec = spec_of(measured(fan_out=2.5))
    decode, embed = spec.stages

    assert (spec.items, spec.source_bytes) == (400, 500)
    assert (decode.fan_out, decode.item_bytes) == (2.5, 1000)
    assert (embed.service_s, embed.sigma, embed.setup_s, embed.dispatch_s) == (0.5, 0.2, 2.0, 0.01)
    assert spec.nodes[0].gpus == 1


def test_four_gpus_are_nearly_four_times_as_fast():
    spec = spec_of(measured())
    one, four = Simulation(spec).run(), Simulation(changed(spec, ["gpus=4"])).run()

    assert one.bottleneck == four.bottleneck == "embed"
    assert one.makespan_s / four.makespan_s == pytest.approx(4, rel=0.1)


def test_changes_are_numbers_or_multiples():
    node = changed(spec_of(measured()), ["nodes=4", "cpus=2x", "memory=2x", "gpu_memory_gb=40", "items=0.5x"])

    assert node.items == 200
    assert node.nodes[0].count == 4
    assert (node.nodes[0].cpus, node.nodes[0].memory, node.nodes[0].gpu_memory_gb) == (16.0, 2 * 10**9, 40.0)
    assert changed(spec_of(measured()), ["memory=3GB"]).nodes[0].memory == 3 * 10**9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("gpu=2", "did you mean 'gpus'"),
        ("gpus", "expected --what-if NAME=VALUE"),
        ("gpus=many", "expected gpus as a number or a multiple such as 2x; got 'many'"),
        ("cpus=0", "expected cpus as a number"),
    ],
)
def test_mistakes_are_named(change, words):
    with pytest.raises(ConfigError, match=words):
        changed(spec_of(measured()), [change])


def test_a_run_that_did_nothing_cannot_be_simulated():
    with pytest.raises(ConfigError, match="expected a run that has done something"):
        spec_of(measured(tasks=0))
