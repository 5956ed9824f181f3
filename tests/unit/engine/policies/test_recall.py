"""Tasks are taken back only where they would wait for longer than the messages take."""

import pytest

from gristmill.engine.caretaker import RECALL_S, is_worth_it


@pytest.mark.parametrize(
    ("waiting", "mean_service_s", "running_s", "expected"),
    [
        (0, 10.0, 0.0, False),
        (1, 10.0, 0.0, True),
        (1, 10.0, 10.0 - RECALL_S / 2, False),  # about to end
        (1, 0.001, 5.0, True),  # five seconds instead of a millisecond: as long again
        (1, RECALL_S / 2, 0.0, False),
        (2, RECALL_S / 3, 0.0, False),
        (1, 10.0, 10.0, False),  # due now
        (3, RECALL_S / 2, 0.0, True),  # the last of them waits for all before it
        (1, None, RECALL_S / 2, False),
        (2, None, RECALL_S, True),
    ],
)
def test_what_would_wait_for_long_is_taken_back(waiting, mean_service_s, running_s, expected):
    assert is_worth_it(waiting, mean_service_s=mean_service_s, running_s=running_s) is expected
