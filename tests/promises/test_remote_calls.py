"""An async stage keeps its window of requests full: what a user of `lanes` is promised."""

import pytest
from benchmarks.lanes import bare, rate_of, through_gristmill
from tests.slow_http import serving, take_statistics

REQUESTS = 1500
WINDOW = 64


@pytest.mark.slow
@pytest.mark.parametrize("documents", [1, 16])
def test_as_many_requests_are_under_way_as_were_asked_for(documents):
    with serving() as port:
        expected = rate_of(port, lambda: bare(port, REQUESTS, WINDOW))
        take_statistics(port)
        through_gristmill(port, REQUESTS, WINDOW, documents)
        seen = take_statistics(port)

    rate = seen.requests / (seen.last_s - seen.first_s)
    assert len(seen.answered) == REQUESTS
    assert seen.most_in_flight > 0.9 * WINDOW
    # Machines of tests are busy; `benchmarks/lanes.py` measures.
    assert rate > 0.3 * expected, f"{rate:.0f} of {expected:.0f} requests a second"
