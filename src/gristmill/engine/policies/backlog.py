"""How far a group may run ahead of the next one, in seconds of the next one's work.

What limits data in flight is memory, in bytes (`backpressure.py`). This is the other limit: a queue that lasts longer
than a change takes is of no use. A change means starting a worker of the next group, so the queue has to last for that.
While the first of them start nobody can tell how long it takes, and a pause would only leave this group's workers idle:
they go on.
"""

MAX_BACKLOG_S = 5.0
SETUPS = 2.0  # starts of a worker the queue has to last for: a change of plan, and the one after it
MAX_UNMEASURED = 20_000  # tasks; each costs the driver about a kilobyte


def is_far_ahead(queued: int, *, workers: int, batch_size: int, mean_service_s: float | None, setup_s: float) -> bool:
    """Whether so many tasks queued for a group of so many workers are enough, so that the group before it pauses."""
    handed_out_soon = 2 * max(8, workers * batch_size)
    if queued <= handed_out_soon:
        return False
    if mean_service_s is None:
        return queued > max(MAX_UNMEASURED, handed_out_soon)
    return queued * mean_service_s / max(1, workers) > MAX_BACKLOG_S + SETUPS * setup_s
