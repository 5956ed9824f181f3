"""One run by the local executor: what concerns this machine (GPUs, files, memory), and nothing else."""

import os
import resource
import sys
from typing import TYPE_CHECKING

from gristmill.backends.local.executor import Gpu, find_gpus
from gristmill.backends.local.launch import Server
from gristmill.backends.local.process_pool import ProcessPool
from gristmill.backends.scheduled.driver import Shell, drive, node_work, set_up_node
from gristmill.backends.scheduled.kept_records import open_store
from gristmill.engine.events import NodeJoined
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import ConfigError
from gristmill.runs.books import RunResult
from gristmill.runs.run import Ending, Run, Segment
from gristmill.runs.user import RunOptions
from gristmill.stages.worker_info import NodeInfo
from gristmill.storage.sizes import parse_size
from gristmill.worker.machine import default_limit, own_bytes, resident_bytes

if TYPE_CHECKING:  # the executor imports this file when it runs something
    from gristmill.backends.local.executor import LocalExecutor
    from gristmill.backends.scheduled.pool import Pool

# How many files this process may have open: every queued block of shared memory is one.

ENOUGH = 65_536


def allow_many_files() -> int:
    """Raise the soft limit as far as the system lets us, up to ENOUGH; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return ENOUGH if soft == resource.RLIM_INFINITY else soft


WORKER_BYTES = 48 << 20  # what a worker holds beyond the pages it shares with the fork server
SPARE_FILES = 256  # descriptors left for everything but queued tasks
LEAST_BYTES = 64 << 20  # for data, however small the limit


class LocalRun:
    """One execution of one plan."""

    def __init__(self, executor: "LocalExecutor", plan: Plan, options: RunOptions, server: Server | None) -> None:
        self.executor = executor
        self.server = server
        self.run = Run(plan, options, ignore_failures=executor.ignore_failures, durable=executor.durable)
        self.pool: Pool | None = None
        limit = executor.memory_limit
        self.memory_limit = default_limit() if limit is None else parse_size(limit, who="LocalExecutor: memory_limit")
        # Only if the user set it: what is free just now must not decide which documents are too large.
        self.run.memory_limit = 0 if limit is None else self.memory_limit

    def execute(self) -> RunResult:
        """Run to the end, or stop cleanly on Ctrl-C and SIGTERM."""
        return self.run.execute(self._drive)

    def _drive(self, segment: Segment) -> Ending:
        gpus = find_gpus(self.executor.gpus, self.executor.gpu_memory_gb)
        node = self._node(gpus)
        groups = segment.plan.groups
        if self.server is None:
            from gristmill.backends.local.inline_pool import (
                InlinePool,  # loads asyncio, which drivers with processes need not load
            )

            self.pool = InlinePool(groups, segment.settings)
        else:
            names = tuple(gpu.name for gpu in gpus)
            self.pool = ProcessPool(groups, segment.settings, self.server, names, segment.scratch)
        self.pool.open()
        work = node_work(groups)
        if work is not None:
            set_up_node(work, NodeInfo())
        shell = Shell(
            pool=self.pool,
            nodes=(node,),
            config=self._config(segment, node),
            memory_limit=self.memory_limit,
            logging_interval=self.executor.logging_interval,
            event_log=self.executor.event_log,
            profiles=None if self.server is None else open_store(segment.plan),
            notes_signals=self.server is not None,
            works_here=True,
        )
        return drive(segment, shell)

    def _config(self, segment: Segment, node: NodeJoined) -> SchedulerConfig:
        # A worker's part of the memory and what it shares with others: beyond that it keeps what it should not.
        worker_memory = int(node.memory_bytes / node.cpus) + 4 * WORKER_BYTES
        lifetime = self.executor.worker_max_lifetime_m
        return SchedulerConfig(
            num_sources=len(segment.plan.sources) - len(segment.books.records),
            barrier=self.executor.execution_mode == "batch",
            rescale_interval_s=self.executor.autoscale_interval_s,
            worker_max_lifetime_s=None if lifetime is None else lifetime * 60,
            worker_restart_interval_s=self.executor.worker_restart_interval_m * 60,
            max_queued=max(64, (allow_many_files() - SPARE_FILES) // len(segment.plan.groups)),
            worker_memory_bytes=worker_memory,
            worker_max_tasks=self.executor.worker_max_tasks,
            watchdog_s=self.executor.watchdog_s,
            # In this process one task runs at a time: those behind it are not stragglers.
            copies=self.server is not None,
        )

    def _node(self, gpus: tuple[Gpu, ...]) -> NodeJoined:
        workers = self.executor.num_workers
        cpus = self.executor.cpus() if workers is None else max(workers, 1)
        limit, total = self.executor.memory_limit, self.memory_limit
        if "pyarrow" in sys.modules:
            import pyarrow as pa

            pa.default_memory_pool().release_unused()  # what an earlier run in this process has left
        ours = self._standing_bytes(cpus)
        if limit is not None and total < ours:
            raise ConfigError(
                f"LocalExecutor: expected a memory_limit of at least {(ours + LEAST_BYTES) >> 20} MiB "
                f"for {cpus} workers; got {limit!r}"
            )
        return NodeJoined(0, float(cpus), tuple(gpu.memory_gb for gpu in gpus), max(LEAST_BYTES, total - ours))

    def _standing_bytes(self, cpus: int) -> int:
        """Bytes in use before there is any data."""
        if self.server is None:
            return own_bytes()
        driver = resident_bytes([os.getpid()])
        # A fork server that is still starting will be about the size of the driver, which has just started too.
        server = resident_bytes([self.server.process.pid]) if self.server.has_loaded else driver
        return driver + server + cpus * WORKER_BYTES

    def close(self) -> None:
        """Leave nothing behind: no process, no temporary file."""
        if self.pool is not None:
            self.pool.close()
        self.run.close()
