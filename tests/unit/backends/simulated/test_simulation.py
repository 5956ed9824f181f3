"""The scheduler comes close to the bound in virtual time, and the same seed gives the same run."""

import pytest

from gristmill.backends.simulated.chance import Chance
from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.errors import ConfigError


def simulate(**document):
    return Simulation(SimulationSpec.parse(document)).run()


def test_gpu_memory_is_divided_as_the_rates_ask():
    result = simulate(
        items=1000,
        nodes={"cpus": 64, "gpus": 1, "gpu_memory_gb": 102},
        stages=[
            {"name": "encode", "cpus": 0, "gpu_memory_gb": 1, "service_s": 2},
            {"name": "pick", "service_s": 1},
            {"name": "caption", "cpus": 0, "gpu_memory_gb": 10, "service_s": 10},
        ],
    )

    assert result.makespan_s <= 1.05 * 1000
    assert result.peak_workers["caption"] == 10
    assert result.resource == "gpu"


def test_all_gpus_start_at_once_when_one_stage_wants_them():
    result = simulate(
        items=400,
        nodes={"cpus": 8, "gpus": 4},
        stages=[{"name": "caption", "gpus": 1, "service_s": 1, "setup_s": 40}],
    )

    assert result.workers_started == {"caption": 4}
    assert result.makespan_s == pytest.approx(40 + 400 / 4, rel=0.01)


def test_a_production_pipeline_comes_within_five_percent_of_its_best_packing():
    rows = [
        ("download", 0.25, 0, 0.67, 40),
        ("remux", 1, 0, 4000, None),
        ("decode", 3, 0, 0.77, None),
        ("shots", 1, 0.25, 3.55, None),
        ("encode", 5, 0, 0.28, None),
        ("prepare", 16, 0, 0.034, None),
        ("caption", 1, 4, 0.033, None),
        ("text", 1, 1, 0.98, None),
        ("write", 0.25, 0, 0.016, 80),
    ]
    stages = [
        {"name": name, "cpus": cpus, "gpus": gpus, "service_s": 1 / rate, "num_workers": workers}
        for name, cpus, gpus, rate, workers in rows
    ]
    nodes = {"count": 10, "cpus": 182, "gpus": 8}
    result = simulate(items=3000, rescale_interval_s=30, nodes=nodes, stages=stages)

    assert 3000 / result.makespan_s >= 0.95 * 0.627


def test_workers_that_are_killed_cost_their_work_and_little_more():
    stages = [{"name": "a", "service_s": 1}]
    calm = simulate(items=300, nodes={"cpus": 8}, stages=stages)
    struck = simulate(items=300, nodes={"cpus": 8}, stages=stages, faults={"kill_worker_every_s": 10})

    assert struck.shares["wasted"] > 0
    assert struck.makespan_s <= 1.1 * calm.makespan_s


def test_poison_is_tried_once_more_and_the_rest_is_done():
    stages = [{"name": "a", "service_s": 1}]
    result = simulate(items=300, nodes={"cpus": 8}, stages=stages, faults={"poison_share": 0.05})

    assert result.makespan_s <= 1.15 * 300 / 8


def test_a_bounded_memory_is_enough_for_an_explosion_before_a_slow_stage():
    stages = [{"name": "decode", "fan_out": 20, "item_bytes": "10MB"}, {"name": "embed", "service_s": 0.2}]
    bounded = simulate(items=100, nodes={"cpus": 8, "memory": "4GB"}, stages=stages)
    unbounded = simulate(items=100, nodes={"cpus": 8, "memory": "1000GB"}, stages=stages)

    assert bounded.makespan_s <= unbounded.makespan_s / 0.95


def test_a_lost_node_is_replaced_and_costs_no_item():
    nodes, stages = {"count": 3, "cpus": 4}, [{"name": "a", "service_s": 2}, {"name": "b"}]
    calm = simulate(items=300, nodes=nodes, stages=stages)
    faults = {"lose_node_every_s": 30, "node_back_s": 10, "kill_at": {20: 0.5}}
    struck = simulate(items=300, nodes=nodes, stages=stages, faults=faults)

    assert struck.digest == calm.digest
    assert struck.killed_s > 0
    assert struck.started_over > 0
    assert struck.useful_s == pytest.approx(calm.useful_s)
    assert len(struck.peak_bytes) > 3  # machines that came back have numbers of their own


def test_documents_that_end_their_worker_are_quarantined_and_no_others():
    stages = [{"name": "a"}]
    result = simulate(items=50, documents=8, nodes={"cpus": 4}, stages=stages, faults={"fatal_share": 0.02})
    chance = Chance(
        SimulationSpec.parse({"items": 50, "documents": 8, "stages": stages, "faults": {"fatal_share": 0.02}})
    )

    assert result.quarantined == sum(len(chance.bad_documents(item)[1]) for item in range(50)) > 0


def test_moving_data_over_a_slow_link_takes_time():
    stages = [{"name": "a", "item_bytes": "100MB", "num_workers": 1}, {"name": "b", "num_workers": 1}]
    nodes = {"count": 2, "cpus": 1}
    near = simulate(items=20, nodes=nodes, stages=stages)
    far = simulate(items=20, nodes=nodes | {"link": "100MB"}, stages=stages)

    assert far.makespan_s == pytest.approx(near.makespan_s + 20, abs=1.5)  # a second for every item


def test_a_run_goes_on_from_what_another_has_committed():
    spec = SimulationSpec.parse({"items": 30, "nodes": {"cpus": 2}, "stages": [{"name": "a"}, {"name": "b"}]})
    whole, first = Simulation(spec), Simulation(spec)
    whole.run()
    first.begin()
    while first.num_events < 40:
        first.step()
    second = Simulation(spec, done=first.manifest.roots)
    second.run()

    assert 0 < len(first.manifest.roots) < 30
    assert not first.manifest.roots.keys() & second.manifest.roots.keys()
    assert first.manifest.roots | second.manifest.roots == whole.manifest.roots


def test_the_same_seed_gives_the_same_run():
    document = {
        "items": 200,
        "seed": 3,
        "nodes": {"cpus": 4},
        "stages": [{"name": "a", "sigma": 1.0}, {"name": "b", "batch_size": 4}],
        "faults": {"kill_worker_every_s": 20, "poison_share": 0.02},
    }

    assert simulate(**document) == simulate(**document)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"items": 1, "stages": []}, "expected a list of stages"),
        ({"items": 1, "stages": [{"name": "a", "servce_s": 1}]}, r"stages\[0\].*did you mean 'service_s'"),
        ({"stages": [{"name": "a"}]}, "expected 'items'; it is missing"),
        (
            {"items": 1, "stages": [{"name": "ab"}], "slowdowns": [{"stage": "aB"}]},
            r"slowdowns\[0\].*did you mean 'ab'",
        ),
        ({"items": 1, "stages": [{"name": "a"}], "nodes": 3}, "nodes: expected names with values"),
    ],
)
def test_mistakes_in_a_spec_are_named(document, words):
    with pytest.raises(ConfigError, match=words):
        SimulationSpec.parse(document)
