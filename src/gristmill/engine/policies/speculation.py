"""When a task has run for so long that a second run elsewhere is likely to be done first.

Only tasks of stages that say so (`may_run_twice`), only when there is nothing else an idle worker could do, and each
task once. There is no chance in the decision: the same events lead to the same copies.
"""

FACTOR = 3.0  # times the mean; a slow machine or a stuck download takes longer than that
LEAST_S = 1.0  # a copy costs a message, an input and the worker that loses


def is_straggler(running_s: float, mean_service_s: float | None) -> bool:
    """Whether a task that has run for so long should be given to somebody else as well."""
    return mean_service_s is not None and running_s > max(LEAST_S, FACTOR * mean_service_s)
