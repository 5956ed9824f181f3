"""How many tasks a worker holds, and how many go into one call."""

from collections.abc import Iterable

PREFETCH_S = 0.005  # a round trip to a busy driver on a busy machine; measured 0.3–4 ms with both cores taken
MAX_PREFETCH = 256
# With lanes: calls that began together end together, and until the driver has heard of all of them nothing new comes.
BURST_S = 0.1
FLUSH_S = 0.05  # how long an incomplete batch waits for company while upstream still runs


def slots(mean_service_s: float | None, *, batch_size: int, lanes: int = 1, share: int | None = None) -> int:
    """Return how many tasks a worker may hold: what is running, and what bridges the round trip to the driver.

    Before anything is measured a worker holds what it can run at once, and at the tail no more than its `share` of what
    is left: a task waiting behind another is a task an idle worker cannot have.
    """
    at_once = lanes * batch_size
    if mean_service_s is None:
        return at_once
    bridged_s = PREFETCH_S if lanes == 1 else BURST_S
    ahead = MAX_PREFETCH if mean_service_s <= 0 else min(MAX_PREFETCH, int(bridged_s / mean_service_s) + 1)
    full = batch_size * (lanes + -(-ahead // batch_size))
    return full if share is None else min(full, max(at_once, share))


def fitting(
    sizes: Iterable[tuple[int, int]], *, batch_size: int, most_items: int | None, most_bytes: int | None
) -> tuple[int, bool]:
    """Return how many of the tasks, each with its (items, bytes), go into one call, and whether it is then full.

    One always goes, however large it is.
    """
    count = items = num_bytes = 0
    for more_items, more_bytes in sizes:
        items, num_bytes = items + more_items, num_bytes + more_bytes
        too_many = most_items is not None and items > most_items
        too_large = most_bytes is not None and num_bytes > most_bytes
        if count == batch_size or (count and (too_many or too_large)):
            return count, True
        count += 1
    full = (most_items is not None and items >= most_items) or (most_bytes is not None and num_bytes >= most_bytes)
    return count, full or count == batch_size


def tail_share(remaining: int, workers: int) -> int:
    """Return what one worker takes at a time when no more is coming: a quarter of its part of what is left."""
    return -(-remaining // (4 * max(workers, 1)))


def batch_of(
    queued: int, *, batch_size: int, remaining: int, workers: int, more_coming: bool, oldest_wait_s: float
) -> int:
    """Return how many of the queued tasks to put into one call now; 0 to wait for more.

    At the tail batches shrink, so that no worker is left alone with a full one.
    """
    if queued == 0:
        return 0
    if more_coming:
        return min(queued, batch_size) if queued >= batch_size or oldest_wait_s >= FLUSH_S else 0
    return max(1, min(queued, batch_size, tail_share(remaining, workers)))
