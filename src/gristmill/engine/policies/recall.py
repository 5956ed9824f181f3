"""Whether to take tasks back that wait behind another, when others could have them.

A worker holds a task or two in advance so that it need not wait for the driver. If the one it runs turns out to be
long, those behind it are stuck while others are idle. They are taken back: the worker skips what it has not begun.
Should it begin one at that very moment, both do it, and the first result counts.
"""

# Not worth a message if shorter. And on a busy machine a worker with quick tasks that waits for a core for a few
# hundredths of a second looks like one with a long task: it would do what is taken back before it hears of it.
RECALL_S = 0.1


def is_worth_it(waiting: int, *, mean_service_s: float | None, running_s: float) -> bool:
    """Whether the last of so many tasks behind one that has run for `running_s` would wait longer than messages take.

    A task that has run longer than the mean is expected to need as long again: that is what long tails are like.
    """
    mean = running_s if mean_service_s is None else mean_service_s
    rest = running_s if running_s > mean else mean - running_s
    return waiting > 0 and rest + (waiting - 1) * mean >= RECALL_S
