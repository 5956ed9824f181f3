"""When too much has failed."""

import pytest

from gristmill.engine.breaker import DEFAULT_LIMIT, NO_LIMIT, Failed, QuarantineLimit


@pytest.mark.parametrize(
    ("limit", "failed", "while_running", "at_end"),
    [
        (NO_LIMIT, Failed(10**6, 10**6), False, False),
        (QuarantineLimit(2), Failed(2, 2), False, False),
        (QuarantineLimit(2), Failed(3, 3), True, True),
        (QuarantineLimit(2), Failed(2, 2, parts=1), True, True),
        (QuarantineLimit(0), Failed(0, 0, parts=1), True, True),
        (QuarantineLimit(0.5), Failed(9, 10), False, True),  # 10 documents say little, unless they are all there are
        (QuarantineLimit(0.5), Failed(501, 1000), True, True),
        (QuarantineLimit(0.5), Failed(500, 1000), False, False),
        (DEFAULT_LIMIT, Failed(999, 999), False, False),
        (DEFAULT_LIMIT, Failed(101, 1000), True, True),
        (DEFAULT_LIMIT, Failed(100, 1000), False, False),
        (DEFAULT_LIMIT, Failed(0, 1000, parts=1, part_bytes=11, input_bytes=100), True, True),
        (DEFAULT_LIMIT, Failed(0, 1000, parts=1, part_bytes=10, input_bytes=100), False, False),
        (DEFAULT_LIMIT, Failed(0, 5, parts=1, part_bytes=11, input_bytes=100), True, True),
    ],
)
def test_a_limit_is_exceeded_by_documents_or_by_parts_of_files(limit, failed, while_running, at_end):
    assert (limit.is_exceeded(failed), limit.is_exceeded(failed, at_end=True)) == (while_running, at_end)


@pytest.mark.parametrize(
    ("most", "words"), [(0.01, "1 %"), (0.005, "0.5 %"), (1, "1 document"), (1200, "1,200 documents")]
)
def test_a_limit_is_said_in_the_users_units(most, words):
    assert str(QuarantineLimit(most)) == words
