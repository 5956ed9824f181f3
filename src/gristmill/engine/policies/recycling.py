"""How large a worker may grow, and how many tasks it may do, before it is replaced.

Workers of a stage that keeps memory grow alike, and would all reach one limit together. So each has its own, between
three quarters of what is allowed and all of it, and they are replaced one after another.
"""

SPREAD = 0.25
GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over the unit interval, however many there are


def own_limit(worker: int, most: float) -> float:
    """Return the bytes, or the tasks, at which this worker is replaced; never more than `most`."""
    return most * (1 - SPREAD * (worker * GOLDEN % 1.0))
