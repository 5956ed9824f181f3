"""Workers that grow alike are not replaced together."""

import itertools

from gristmill.engine.caretaker import SPREAD, own_limit


def test_no_worker_may_grow_beyond_what_is_allowed():
    limits = [own_limit(worker, 1000.0) for worker in range(100)]

    assert max(limits) == 1000.0
    assert min(limits) > 1000.0 * (1 - SPREAD)


def test_the_limits_of_neighbours_are_well_apart():
    limits = sorted(own_limit(worker, 1000.0) for worker in range(8, 12))

    assert all(b - a > 1000.0 * SPREAD / 10 for a, b in itertools.pairwise(limits))
