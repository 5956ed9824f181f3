"""What a run may do: the settings of its scheduler."""

import msgspec

from gristmill.engine.breaker import NO_LIMIT, NOTHING_FAILED, Failed, QuarantineLimit
from gristmill.engine.policies.rates import Prior

WATCHDOG_S = 40.0


class SchedulerConfig(msgspec.Struct, frozen=True):
    """What a run may do."""

    num_sources: int
    barrier: bool = False  # stage after stage, for comparison
    limit: QuarantineLimit = NO_LIMIT
    input_bytes: int = 0  # of all partitions, those of earlier sessions included
    passed_before: tuple[bool, ...] = ()  # by stage: whether documents have passed it in an earlier session
    failed_before: Failed = NOTHING_FAILED  # in earlier sessions
    rescale_interval_s: float = 1.0
    worker_max_lifetime_s: float | None = None
    worker_restart_interval_s: float = 0.0
    watchdog_s: float = WATCHDOG_S
    max_queued: int = 1 << 30  # tasks waiting for one group; an executor that holds a descriptor for each has a limit
    working_copies: float = 3.0  # of its input while a task runs: parsed, filtered, one not given back by the allocator
    copies: bool = True  # whether stragglers may be copied, where their stages allow it
    priors: tuple[Prior | None, ...] = ()  # of every group: what an earlier run or the user says
    worker_memory_bytes: int | None = None  # a worker that has grown beyond this is replaced
    worker_max_tasks: int | None = None  # and so is one that has done this many tasks
