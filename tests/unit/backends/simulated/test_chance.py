"""What is left to chance belongs to the item, and slows down as the spec says."""

import math

import pytest

from gristmill.backends.simulated.chance import Chance, probes
from gristmill.backends.simulated.spec import SimulationSpec


def chance(**document):
    return Chance(SimulationSpec.parse({"items": 1, "stages": [{"name": "a"}], **document}))


def test_the_longest_item_is_bounded():
    draws = chance(stages=[{"name": "a", "service_s": 2, "sigma": 1.5, "longest": 3}])

    times = [draws.service_s(0, f"item-{i}") for i in range(500)]
    assert max(times) == 6.0
    assert min(times) < 1.0


def test_a_broken_fan_out_is_right_on_average():
    draws = chance(stages=[{"name": "a", "fan_out": 2.5}])

    counts = [draws.fan_out(0, f"item-{i}") for i in range(1000)]
    assert set(counts) == {2, 3}
    assert sum(counts) == pytest.approx(2500, rel=0.05)


@pytest.mark.parametrize(
    ("started", "work_s", "lasts_s"),
    [
        (0.0, 5.0, 5.0),  # over before it begins
        (8.0, 4.0, 10.0),  # 2 s at full speed, 2 s of work at a quarter
        (10.0, 3.0, 10.5),  # ten seconds do 2.5 s of work; the rest is as fast as ever
        (20.0, 3.0, 3.0),
    ],
)
def test_work_slows_down_while_its_stage_does(started, work_s, lasts_s):
    draws = chance(slowdowns=[{"stage": "a", "from_s": 10, "until_s": 20, "factor": 4}])

    assert draws.lasts_s(0, started, work_s) == lasts_s


def test_a_stage_that_stands_still_goes_on_where_it_was():
    draws = chance(slowdowns=[{"stage": "a", "from_s": 10, "until_s": 70, "factor": math.inf}])

    assert draws.lasts_s(0, 8.0, 5.0) == 65.0


def test_finding_bad_rows_by_halving_takes_two_probes_a_level():
    assert probes(range(64), ()) == 2  # the halves pass: nothing is there
    assert probes(range(64), (17,)) == 2 * 6
    assert probes(range(1), (0,)) == 0
