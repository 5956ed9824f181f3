"""A straggler is what has run much longer than the others."""

import pytest

from gristmill.engine.caretaker import FACTOR, LEAST_S, is_straggler


@pytest.mark.parametrize(
    ("running_s", "mean_service_s", "expected"),
    [
        (10 * FACTOR, 10.0, False),
        (10 * FACTOR + 0.1, 10.0, True),
        (LEAST_S, 0.001, False),
        (LEAST_S + 0.1, 0.001, True),
        (1e6, None, False),
    ],
)
def test_a_straggler_has_run_for_several_times_the_mean(running_s, mean_service_s, expected):
    assert is_straggler(running_s, mean_service_s) is expected
