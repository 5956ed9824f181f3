"""Drives a run by gristmill's own scheduler: the same for worker processes of one machine and for actors of a cluster.

An executor brings a pool, the machines and what the scheduler may do; from there on nothing is its own.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from gristmill.backends.scheduled.driver import Driver
from gristmill.backends.scheduled.event_recorder import FILE_NAME, EventRecorder
from gristmill.backends.scheduled.pool import Pool
from gristmill.backends.scheduled.profiles import ProfileStore, priors, remember
from gristmill.engine.events import NodeJoined
from gristmill.engine.policies.quarantine_limit import Failed
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.runs.segment import Ending, Segment


class Shell(msgspec.Struct, frozen=True):
    """What one executor brings to a run."""

    pool: Pool
    nodes: Sequence[NodeJoined]  # there at the start; the pool tells of others
    config: SchedulerConfig  # priors are added here
    memory_limit: int  # shown beside what is used
    logging_interval: float
    event_log: bool
    profiles: ProfileStore | None
    notes_signals: bool  # False where a stage runs in this process, and the signal has to interrupt it


def drive(run: Segment, shell: Shell) -> Ending:
    """Drive a run to its end. The pool is open, and is closed at the end; if this raises, the caller closes it."""
    gpus = tuple(memory_gb for node in shell.nodes for memory_gb in node.gpu_memory_gb)
    config = replace(
        shell.config,
        priors=priors(run.plan, gpus, shell.profiles),
        limit=run.limit,
        input_bytes=run.plan.input_bytes,
        passed_before=tuple(run.books.totals[name].has_passed for name in run.plan.stage_names),
        failed_before=Failed.of(run.books.totals.values(), 0),
    )
    driver = Driver(
        run.plan,
        Scheduler(run.plan.groups, config),
        shell.pool,
        run.books,
        run.durable_directory,
        run.options.observer,
        nodes=shell.nodes,
        memory_limit=shell.memory_limit,
        logging_interval=shell.logging_interval,
    )
    driver.messages += run.prepare_outputs()
    noted = run.stop.only_noted() if shell.notes_signals else contextlib.nullcontext()
    with noted, _recorded(run, driver, shell):
        try:
            finish = driver.run(lambda: run.stop.noted)
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):  # Ctrl-C stops a run whose status cannot be written, too
                driver.tell_end("stopped")
            raise
    run.keep_errors(finish)
    shell.pool.close()
    measured = driver.measured()
    if shell.profiles is not None and finish.outcome == "finished":
        remember(run.plan, measured, shell.profiles)
    account, scheduler = driver.scheduler.account, driver.scheduler
    return Ending(
        finish,
        messages=driver.messages,
        efficiency=account.efficiency(scheduler.groups, scheduler.now),
        measured=measured,
        tell=driver.tell_end,
    )


@contextlib.contextmanager
def _recorded(run: Segment, driver: Driver, shell: Shell) -> Iterator[None]:
    """Write the event log while the run is driven, if it has a directory that stays."""
    if not run.keeps_directory or not shell.event_log:
        yield
        return
    with contextlib.suppress(OSError):  # a run goes on without its log
        run.directory.private_file(FILE_NAME)
    recorder = EventRecorder(run.directory.path, run.plan.groups, driver.scheduler.config)
    driver.recorder = recorder
    try:
        yield
    finally:
        recorder.close()
        driver.recorder = None
        driver.messages += [recorder.problem] if recorder.problem else []
