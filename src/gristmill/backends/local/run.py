"""One execution of one plan by the local executor: open the run directory, drive, close the books."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.backends.base import RunOptions
from gristmill.backends.books import Books, number_lines
from gristmill.backends.event_recorder import EventRecorder
from gristmill.backends.local.driver import Driver
from gristmill.backends.local.gpus import Gpu, find_gpus
from gristmill.backends.local.inline_pool import InlinePool
from gristmill.backends.local.node_setup import set_up_node
from gristmill.backends.local.stop_signals import StopSignals
from gristmill.backends.processes.launch import Server
from gristmill.backends.processes.limits import allow_many_files
from gristmill.backends.processes.memory import default_limit, resident_bytes
from gristmill.backends.processes.pool import ProcessPool
from gristmill.backends.profiles import open_store, priors, remember
from gristmill.backends.run_directory import RunDirectory
from gristmill.backends.run_result import RunResult
from gristmill.backends.worker import RunSettings
from gristmill.engine.commands import Finish
from gristmill.engine.events import NodeJoined
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.errors import ConfigError, EngineBug, Interrupted, RunFailed, TooManyQuarantined
from gristmill.storage.atomic_write import remove
from gristmill.storage.file_system import is_url
from gristmill.storage.sizes import parse_size

if TYPE_CHECKING:  # the executor imports this file when it runs something
    from gristmill.backends.local.executor import LocalExecutor
    from gristmill.backends.local.pool import Pool

WORKER_BYTES = 48 << 20  # what a worker holds beyond the pages it shares with the fork server
SPARE_FILES = 256  # descriptors left for everything but queued tasks
LEAST_BYTES = 64 << 20  # for data, however small the limit


class LocalRun:
    """One execution of one plan."""

    def __init__(self, executor: "LocalExecutor", plan: Plan, options: RunOptions, server: Server | None) -> None:
        self.executor = executor
        self.plan = plan
        self.options = options
        self.server = server
        self.keeps_directory = True
        self.session = os.urandom(6).hex()
        self.started = time.monotonic()
        self.stop = StopSignals()
        self.books = Books(plan, {})
        self._scratch: str | None = None
        self.directory = RunDirectory(self._run_path(), session=self.session)
        self.pool: Pool | None = None
        self.resumable = options.checkpoint_path is not None and not options.fresh
        limit = executor.memory_limit
        self.memory_limit = default_limit() if limit is None else parse_size(limit, who="LocalExecutor: memory_limit")

    def _run_path(self) -> Path:
        if self.options.checkpoint_path is not None:
            return self.options.checkpoint_path
        outputs = [path for path in self.plan.output_directories if not is_url(path)]
        if outputs:
            return Path(outputs[-1]) / ".gristmill"
        self.keeps_directory = False
        self._scratch = tempfile.mkdtemp(prefix="gristmill-")
        return Path(self._scratch)

    def execute(self) -> RunResult:
        """Run to the end, or stop cleanly on Ctrl-C and SIGTERM."""
        with self.stop.handled():
            try:
                return self._execute()
            except KeyboardInterrupt:
                raise Interrupted(self._interrupted()) from None

    def _execute(self) -> RunResult:
        self.directory.acquire()
        committed = {}
        if self.resumable:
            committed = self.directory.resume(self.plan, rejects_path=self.options.rejects_path)
            committed = self.directory.finish_publication(committed)
        books = self.books = Books(self.plan, committed)
        # Without a writer the final tasks live in memory only: there is nothing to continue from.
        if committed and not self.plan.ends_in_writer:
            raise ConfigError(
                f"{self.directory.path}: expected a pipeline that ends in a writer; only such a run can be continued"
            )
        if committed and len(committed) == len(self.plan.sources):
            return self._already_finished(books)
        return self._drive(books)

    def _prepare_outputs(self, *, resuming: bool) -> list[str]:
        """Make room for this run and do what the writers' modes say; return what to tell the user."""
        removed = []
        if not self.resumable:
            published = self.directory.clear()
            if self.options.fresh:  # starting over means that nothing of the earlier run is left among the new files
                removed = published
                for path in removed:
                    remove(path)
            self.directory.resume(self.plan, rejects_path=self.options.rejects_path)
        self.directory.remove_report()
        self.directory.claim_staging(self._sinks())
        self.directory.make_staging()
        stages = [stage for group in self.plan.groups for stage in group.stages]
        removed += [path for stage in stages for path in stage.prepare_output(resuming=resuming)]
        plural = "s" * (len(removed) != 1)
        return [f"removed {len(removed)} file{plural} of an earlier run: {removed[:3]}"] if removed else []

    def _already_finished(self, books: Books) -> RunResult:
        result = books.result(run_dir=self.directory.path, rejects_path=self.options.rejects_path)
        result.already_finished = True
        result.wall_s = time.monotonic() - self.started
        self.directory.claim_staging(self._sinks())
        if self.directory.has_report():
            result.messages.append(f"{self.directory.path}: this run is finished already; nothing was changed")
        else:  # it was killed after its last commit
            number_lines(books.records.values(), result.quarantine_files)
            self.directory.write_report(result.to_json())
            result.messages.append(f"{self.directory.path}: everything was committed already; closed the books")
        self._check_quarantine_limit(result)
        return result

    def _sinks(self) -> list[str]:
        """Every directory this run publishes files in."""
        rejects = [self.options.rejects_path] if self.options.rejects_path else []
        return [*self.plan.output_directories, str(self.directory.quarantine), *rejects]

    def _drive(self, books: Books) -> RunResult:
        settings = RunSettings(self.session, self.options.rejects_path, str(self.directory.quarantine))
        gpus = find_gpus(self.executor.gpus, self.executor.gpu_memory_gb)
        node = self._node(gpus)
        if self.server is None:
            self.pool = InlinePool(self.plan.groups, settings)
        else:
            self.pool = ProcessPool(
                self.plan.groups, settings, self.server, tuple(gpu.name for gpu in gpus), self._scratch
            )
        self.pool.open()
        set_up_node(self.plan.groups)
        store = None if self.server is None else open_store(self.plan)
        config = self._config(len(self.plan.sources) - len(books.records), node)
        known = priors(self.plan, node.gpu_memory_gb, store)
        # In this process one task runs at a time: those behind it are no stragglers.
        config = replace(config, priors=known, copies=self.server is not None)
        scheduler = Scheduler(self.plan.groups, config)
        durable = self.directory if self.keeps_directory else None
        driver = Driver(
            self.plan,
            scheduler,
            self.pool,
            books,
            durable,
            self.options.observer,
            node=node,
            memory_limit=self.memory_limit,
            logging_interval=self.executor.logging_interval,
        )
        # Last, when nothing can be refused any more: a run that does not start removes nothing.
        driver.messages += self._prepare_outputs(resuming=bool(books.records))
        # In this process a stage may take any time, so there the signal has to interrupt it.
        with contextlib.nullcontext() if self.server is None else self.stop.only_noted(), self._recorded(driver):
            try:
                finish = driver.run(lambda: self.stop.noted)
            except KeyboardInterrupt:
                driver.tell_end("stopped")
                raise
        self.pool.close()
        result = self._close_books(driver, books, finish)
        if store is not None:
            remember(self.plan, driver.measured(), store)
        return result

    @contextlib.contextmanager
    def _recorded(self, driver: Driver) -> Iterator[None]:
        """Write the event log while the run is driven, if it has a directory that stays."""
        if not self.keeps_directory or not self.executor.event_log:
            yield
            return
        recorder = EventRecorder(self.directory.path, self.plan.groups, driver.scheduler.config)
        driver.recorder = recorder
        try:
            yield
        finally:
            recorder.close()
            driver.recorder = None
            driver.messages += [recorder.problem] if recorder.problem else []

    def _config(self, num_sources: int, node: NodeJoined) -> SchedulerConfig:
        # Its share of the memory and what it shares with the others: beyond that it has kept something it should not.
        worker_memory = int(node.memory_bytes / node.cpus) + 4 * WORKER_BYTES
        lifetime = self.executor.worker_max_lifetime_m
        return SchedulerConfig(
            num_sources=num_sources,
            barrier=self.executor.execution_mode == "batch",
            max_quarantined=None if self.executor.ignore_failures else self.options.max_quarantined,
            rescale_interval_s=self.executor.autoscale_interval_s,
            worker_max_lifetime_s=None if lifetime is None else lifetime * 60,
            worker_restart_interval_s=self.executor.worker_restart_interval_m * 60,
            max_queued=max(64, (allow_many_files() - SPARE_FILES) // len(self.plan.groups)),
            worker_memory_bytes=worker_memory,
        )

    def _node(self, gpus: tuple[Gpu, ...]) -> NodeJoined:
        workers = self.executor.num_workers
        cpus = self.executor.cpus() if workers is None else max(workers, 1)
        limit, total = self.executor.memory_limit, self.memory_limit
        # The driver is there already, and the fork server is about its size.
        ours = 2 * resident_bytes([os.getpid()]) + cpus * WORKER_BYTES
        if limit is not None and total < ours:
            raise ConfigError(
                f"LocalExecutor: expected a memory_limit of at least {(ours + LEAST_BYTES) >> 20} MiB "
                f"for {cpus} workers; got {limit!r}"
            )
        return NodeJoined(0, float(cpus), tuple(gpu.memory_gb for gpu in gpus), max(LEAST_BYTES, total - ours))

    def _interrupted(self) -> str:
        done = f"stopped; {len(self.books.records)} of {len(self.plan.sources)} source partitions are committed"
        if self.options.checkpoint_path is None:
            return done + ". Pass checkpoint_path to be able to continue a run."
        return done + ". Run the same command again to continue."

    def _close_books(self, driver: Driver, books: Books, finish: Finish) -> RunResult:
        run_dir = self.directory.path if self.keeps_directory else None
        if finish.outcome == "failed":
            driver.tell_end("failed")
            raise RunFailed(f"{self.plan.name}: {finish.error}")
        if finish.outcome == "stopped":
            driver.tell_end("stopped")
            raise Interrupted(self._interrupted())
        result = books.result(run_dir=run_dir, rejects_path=self.options.rejects_path)
        result.messages = list(driver.messages)
        account = driver.scheduler.account
        result.efficiency = account.efficiency(driver.scheduler.groups, driver.scheduler.now)
        result.wall_s = time.monotonic() - self.started
        if not self.keeps_directory:
            result.quarantine_files = []  # gone with the temporary directory
        if finish.outcome == "finished":
            number_lines(books.records.values(), result.quarantine_files)
        if not result.balanced:
            raise EngineBug(f"{self.plan.name}: the books do not balance: {result.to_json()}")
        if finish.outcome == "finished" and len(books.records) != len(self.plan.sources):
            raise EngineBug(f"{self.plan.name}: {len(books.records)} of {len(self.plan.sources)} partitions committed")
        driver.tell_end("finished" if finish.outcome == "finished" else "stopped")
        if self.keeps_directory:
            self.directory.write_report(result.to_json())
            self.directory.write_measured(driver.measured())
        self._check_quarantine_limit(result, stopped=finish.outcome == "quarantine_limit")
        return result

    def _check_quarantine_limit(self, result: RunResult, *, stopped: bool = False) -> None:
        limit = None if self.executor.ignore_failures else self.options.max_quarantined
        if limit is None:
            return
        allowed = limit * result.read if isinstance(limit, float) else limit
        # What was under way when a share was exceeded may have brought it down again; the run is incomplete anyway.
        if stopped or result.quarantined > allowed:
            error = TooManyQuarantined(
                f"{self.plan.name}: expected at most {limit} quarantined documents; "
                f"got {result.quarantined} of {result.read} read. What is good is committed; "
                f"see {result.run_dir}/quarantine"
            )
            error.result = result
            raise error

    def close(self) -> None:
        """Leave nothing behind: no process, no temporary file."""
        if self.pool is not None:
            self.pool.close()
        self.directory.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
