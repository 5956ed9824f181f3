"""`Segment`: what a run does between two exchanges, which is all of it in a run without one.

What an executor brings is `drive`: from the books of what is committed to how it ended. Everything a user can rely on
lies around that and is the same everywhere: resuming, the ledger, what is removed before a run, the balance of the
books, `max_quarantined`. No worker, process or actor is known here.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gristmill.engine.account import Efficiency
from gristmill.engine.breaker import Failed, QuarantineLimit
from gristmill.engine.commands import Finish
from gristmill.engine.plan import Plan
from gristmill.errors import (
    ConfigError,
    EngineBug,
    InputsChanged,
    Interrupted,
    MachineFailed,
    RunFailed,
    SpendingLimitReached,
    StageBroken,
    TooManyQuarantined,
)
from gristmill.metrics.log_lines import VARIABLE as LOG_FORMAT_VARIABLE
from gristmill.metrics.snapshot import ErrorCount
from gristmill.runs.books import Books, RunResult, read_errors
from gristmill.runs.directory import COMMIT_S, RunDirectory
from gristmill.runs.ledger import CommitRecord
from gristmill.runs.progress import MeasuredRun
from gristmill.runs.publication import OptionsOf, check_apart, environment_only, publish_all
from gristmill.runs.summary import too_many_quarantined
from gristmill.runs.user import RunOptions, StopSignals
from gristmill.stages.context import HearsOfCommits
from gristmill.storage.file_system import StorageOptions, file_system, is_hidden
from gristmill.worker.failing import account_of
from gristmill.worker.job import RunSettings

# `Commits`: what is done is on record, then visible. The same on every executor.
#
# A ledger line is forced to disk before the files it names get their final names (`directory.py` says why). Lines
# that wait are forced together, because a disk takes as long for one as for a hundred.

__all__ = ["COMMIT_S", "Commits"]


class Commits:
    """The path of a finished source partition into the ledger, the books and the output directory."""

    def __init__(self, books: Books, directory: RunDirectory | None, options_of: OptionsOf = environment_only) -> None:
        self.books = books
        self.directory = directory  # None: a run that cannot be continued keeps no ledger
        self._options_of = directory.options_of if directory is not None else options_of
        self._waiting: list[CommitRecord] = []
        self._names: dict[str, str] = {}  # of partitions, by the files they gave, if there is no ledger
        self._last = 0.0
        self._joined: tuple[str, ...] = ()
        if any(stage.makes_small_tasks for group in books.plan.groups for stage in group.stages):
            from gristmill.runs.joined_files import joined_directories  # loads Arrow, which not every run has

            self._joined = joined_directories(books.plan)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, record: CommitRecord) -> None:
        """Take a partition whose files have all been written under temporary names."""
        if self._joined:
            from gristmill.runs.joined_files import join_small_files

            durable = self.directory is not None and self.directory.durable
            record = join_small_files(record, self._joined, durable=durable)
        self._waiting.append(record)

    def force(self, *, at_once: bool = True) -> list[int]:
        """Commit and publish what waits, or nothing if there is time to wait for company. Return the partitions."""
        if not self._waiting:
            return []
        now = time.monotonic()
        if self.directory is not None:
            if not at_once and now - self._last < self.directory.commit_s:
                return []
            self.directory.check_not_in_the_way(self._waiting)
            self.directory.remove_superseded(self._waiting)
            self.directory.append(self._waiting)
        else:
            check_apart(self._waiting, self._names)
        self._last = now
        files = [file for record in self._waiting for file in (*record.files, *record.side_files)]
        publish_all(files, self._options_of)
        if self.directory is not None:
            self.directory.keep_private(files)
        for record in self._waiting:
            self.books.add(record)
        tell_stages(self.books.plan, self._waiting)
        committed = [record.root for record in self._waiting]
        self._waiting.clear()
        return committed


def tell_stages(plan: Plan, records: Iterable[CommitRecord]) -> None:
    """Tell stages that want to know what is committed."""
    named = ((name, stage) for group in plan.groups for name, stage in zip(group.names, group.stages, strict=True))
    hearing = {name: stage for name, stage in named if isinstance(stage, HearsOfCommits)}
    for record in records if hearing else ():
        for name, stage in hearing.items():
            facts = [fact for of, fact in record.facts if of == name]
            if facts:
                stage.after_commit(facts)


# What a run raises, by how it ended; the other endings have books to close.
FAILURES: dict[str, type[RunFailed]] = {"failed": RunFailed, "broken": StageBroken, "machine": MachineFailed}


_FILES_SHOWN = 10  # of those that changed


def _nobody_listens(state: str) -> None:
    del state


class Ending(msgspec.Struct):
    """How a drive ended. `tell` shows the run's last state to those who watch it."""

    finish: Finish
    messages: list[str] = []
    efficiency: Efficiency | None = None
    measured: MeasuredRun | None = None
    tell: Callable[[str], None] = _nobody_listens
    peak_memory_bytes: int = 0


def cannot_be_continued(directory: RunDirectory) -> ConfigError:
    """What to raise if a finished run kept its tasks in memory."""
    return ConfigError(
        f"{directory.shown}: expected a pipeline that ends in a writer; only such a run can be continued"
    )


def segment_directories(directory: RunDirectory) -> list[Path]:
    """Return those of all segments that were ever begun here, whichever pipeline they belong to."""
    found = (path for path in directory.path.glob("segment-*") if path.name.removeprefix("segment-").isdecimal())
    return sorted(path for path in found if (path / "header.json").exists() or (path / "ledger.jsonl").exists())


def clear_segments(directory: RunDirectory) -> list[str]:
    """Forget a run with exchanges, however many segments it had. Return what was removed of its outputs."""
    removed = []
    for path in segment_directories(directory):
        segment = RunDirectory(path, session="", root=directory.path, options_of=directory.options_of)
        segment.acquire()
        try:
            rows_in_between = f"{directory.path}/exchange-"
            removed += [path for path in segment.clear() if not path.startswith(rows_in_between)]
        finally:
            segment.close()
    for rows in directory.path.glob("exchange-*"):
        if rows.name.removeprefix("exchange-").isdecimal():  # otherwise not ours
            shutil.rmtree(rows, ignore_errors=True)
    return removed


class Whole(msgspec.Struct, frozen=True):
    """The run a segment is one of several of, as far as the segment's messages and file names depend on it."""

    limit: QuarantineLimit  # as the user gave it: the segment has what earlier ones have left of it
    joined: Callable[[RunResult], RunResult]  # the books of the run up to this segment
    is_temporary: bool  # it cannot be continued
    stages_before: int = 0  # in earlier segments


class Segment:
    """One plan of a run, and how far it is. `scratch` is its temporary directory, where the run leaves none behind."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        directory: RunDirectory,
        stop: StopSignals,
        *,
        limit: QuarantineLimit,
        memory_limit: int = 0,
        durable: bool = False,
        resumable: bool = True,
        scratch: str | None = None,
        whole: Whole | None = None,
    ) -> None:
        self.plan = plan
        self.options = options
        self.directory = directory
        self.stop = stop
        self.limit = limit
        self.memory_limit = memory_limit
        self.durable = durable
        self.resumable = resumable
        self.scratch = scratch
        self.keeps_directory = scratch is None
        self._whole = whole or Whole(limit, lambda result: result, is_temporary=scratch is not None)
        self.session = directory.session
        self.started = time.monotonic()
        self.books = Books(plan, {})
        self._continues = False
        self._kept_errors: list[ErrorCount] | None = None
        self._kept_evidence: str | None = None

    def _outputs(self) -> list[str]:
        return [*self.plan.output_directories, *([self.options.rejects_path] if self.options.rejects_path else [])]

    # What a drive may ask

    @property
    def settings(self) -> RunSettings:
        """What every worker of this run has to know."""
        most = self.limit.most
        return RunSettings(
            self.session,
            self.options.rejects_path,
            self.directory.quarantine_path,
            self.durable,
            self.memory_limit,
            most if isinstance(most, int) and not self.limit.is_default else None,
            (self.directory.options_of(self.options.rejects_path or ""), self._quarantine_options()),
            self._whole.stages_before,
            self.options.observation,
            self.directory.measures_path if self.keeps_directory else None,
            os.environ.get(LOG_FORMAT_VARIABLE, ""),
        )

    @property
    def is_done(self) -> bool:
        """Whether everything of it is committed."""
        return len(self.books.records) == len(self.plan.sources)

    @property
    def kept_directory(self) -> RunDirectory | None:
        """The run directory, if it outlives the run."""
        return self.directory if self.keeps_directory else None

    def prepare_outputs(self) -> list[str]:
        """Make room for this run and do what the writers' modes say; return what to tell the user.

        A drive calls this last, when the run can no longer be refused: one that does not start removes nothing.
        """
        removed = []
        # Starting over means that nothing of the earlier run is left among the new files.
        if not self.resumable and self.keeps_directory:
            removed = [*clear_segments(self.directory), *self.directory.clear()]
            self.directory.resume(self.plan, rejects_path=self.options.rejects_path)
        self.directory.remove_report()
        self.directory.claim_staging(self._sinks())
        self.directory.make_staging()
        stages = [stage for group in self.plan.groups for stage in group.stages]
        resuming = self._continues
        removed += [path for stage in stages for path in stage.prepare_output(resuming=resuming)]
        if self.keeps_directory:
            self.directory.begin()
            self.directory.write_recipe(self.options.recipe)
        plural = "s" * (len(removed) != 1)
        told = [f"removed {len(removed)} file{plural} of an earlier run: {removed[:3]}"] if removed else []
        return told if resuming else [*told, *self._others_there()]

    def _others_there(self) -> Iterator[str]:
        """Say which files are already where this run publishes. They stay, and are not replaced."""
        for directory in dict.fromkeys(self._sinks()):
            fs = file_system(directory, self.directory.options_of(directory))
            names = [name for name in fs.list_names(directory) if not is_hidden(name)]
            # Behind an exchange there are rejects of the same run; whatever was there before has been reported already.
            is_told = directory == self.options.rejects_path and self._whole.stages_before
            is_own = directory in (self.directory.quarantine_path, self.directory.measures_path)
            if names and not is_own and not is_told:
                plural = f"{len(names)} files were" if len(names) > 1 else "1 file was"
                yield f"{directory}: {plural} there before this run, and will be left alone: {names[:3]}"

    def keep_errors(self, finish: Finish) -> None:
        """Remember what is in quarantine if it is about to be removed, as may happen when a pool closes."""
        if self.scratch is not None:
            _, quarantine = self.books.side_files(self.options.rejects_path)
            self._kept_errors = self._errors(quarantine, finish)
            self._kept_evidence = self._evidence(finish)

    def _errors(self, quarantine_files: Sequence[str], finish: Finish) -> list[ErrorCount]:
        if self._kept_errors is not None:
            return self._kept_errors
        if finish.outcome == "finished" and self.books.records.has_side_files:
            self.directory.complete_records(self.plan, self.books.records)
        return read_errors(quarantine_files, self._quarantine_options())

    def _quarantine_options(self) -> StorageOptions:
        return self.directory.options_of(self.directory.quarantine_path)

    # Beginning

    def execute(self, drive: Callable[["Segment"], Ending]) -> RunResult:
        """Do what is left of the segment. Its directory is held already."""
        found: Mapping[int, CommitRecord] = {}
        mended = self.options.retry_quarantined
        # Another pipeline's directory is refused, even where nothing could be continued. One that is removed at the end
        # needs no header and no ledger: it was made for this run, and no other will find it.
        if not self.options.fresh and self.keeps_directory:
            found = self.directory.resume(self.plan, rejects_path=self.options.rejects_path, mended=mended)
        committed = self.directory.finish_publication(found) if self.resumable else {}
        self._continues = bool(found) and self.resumable  # even if everything found has to be done again
        if mended:
            committed = self.directory.forget_quarantined(committed)
        self.books = Books(self.plan, committed)
        tell_stages(self.plan, self.books.records.values())  # again, if the machine stopped just before that
        if committed and not self.plan.ends_in_writer:
            raise cannot_be_continued(self.directory)
        if committed and len(committed) == len(self.plan.sources):
            return self._already_finished()
        return self._close_books(drive(self))

    def _already_finished(self) -> RunResult:
        result = self.books.result(run_dir=self.directory.shown, rejects_path=self.options.rejects_path)
        result.already_finished = True
        result.wall_s = time.monotonic() - self.started
        result.messages = list(self.directory.messages)
        self._check_balance(result)
        self.directory.claim_staging(self._sinks())
        if self.directory.has_report():
            result.errors = read_errors(result.quarantine_files, self._quarantine_options())
            result.messages.append(f"{self.directory.shown}: this run is finished already; nothing was changed")
        else:  # it was killed after its last commit
            self.directory.complete_records(self.plan, self.books.records)
            result.errors = read_errors(result.quarantine_files, self._quarantine_options())
            self.directory.write_report(result)
            result.messages.append(f"{self.directory.shown}: everything was committed already; closed the books")
        self._check_quarantine_limit(result)
        return result

    def _sinks(self) -> list[str]:
        """Every directory this run publishes files in."""
        records = self.options.observation.is_on and self.keeps_directory
        measures = [self.directory.measures_path] if records else []
        return [*self._outputs(), self.directory.quarantine_path, *measures]

    # Ending

    def _close_books(self, ending: Ending) -> RunResult:
        books, finish = self.books, ending.finish
        if finish.outcome in FAILURES:
            with contextlib.suppress(OSError):  # where the status cannot be written either
                ending.tell("failed")
            raise FAILURES[finish.outcome](f"{self.plan.name}: {finish.error}{self._evidence(finish)}")
        if finish.outcome == "stopped":
            with contextlib.suppress(OSError):
                ending.tell("stopped")
            raise Interrupted(self.interrupted())
        if finish.outcome == "spending":
            with contextlib.suppress(OSError):
                ending.tell("stopped")
            raise SpendingLimitReached(f"{self.plan.name}: {finish.error}\n{self.interrupted()}")
        run_dir = self.directory.shown if self.keeps_directory else None
        result = books.result(run_dir=run_dir, rejects_path=self.options.rejects_path)
        result.messages = [*self.directory.messages, *ending.messages, *books.take_hints()]
        result.efficiency = ending.efficiency
        result.peak_memory_bytes = ending.peak_memory_bytes
        result.wall_s = time.monotonic() - self.started
        result.errors = self._errors(result.quarantine_files, finish)
        if not self.keeps_directory:
            result.quarantine_files = []  # gone with the temporary directory
        self._check_balance(result)
        if finish.outcome == "finished" and len(books.records) != len(self.plan.sources):
            raise EngineBug(f"{self.plan.name}: {len(books.records)} of {len(self.plan.sources)} partitions committed")
        ending.tell("finished" if finish.outcome == "finished" else "stopped")
        if finish.outcome == "inputs_changed":
            left = len(self.plan.sources) - len(books.records)
            changed = InputsChanged(
                f"{self.plan.name}: {left} of {len(self.plan.sources)} source partitions are not done, because their "
                f"input is not what was planned; everything else is committed:\n{_by_file(finish.error)}\n"
                "Run it again with fresh=True (--fresh) to read the input as it is now."
            )
            changed.result = result
            raise changed
        if self.keeps_directory:
            self.directory.write_report(result)
            if ending.measured is not None:
                self.directory.write_measured(ending.measured)
        self._check_quarantine_limit(result, stopped=finish.outcome == "quarantine_limit", reason=finish.error)
        return result

    def _evidence(self, finish: Finish) -> str:
        """What went wrong with the documents a stage failed on, from files that were never published."""
        if self._kept_evidence is not None:
            return self._kept_evidence
        root = f"{self.directory.quarantine_path}/"
        fs = file_system(root, options := self.directory.options_of(root))
        files = [file.temporary for file in finish.evidence if file.final.startswith(root)]
        there = [path for path in files if fs.status(path) is not None]
        errors = read_errors(there, options)  # of everything these documents failed in
        own = [error for error in errors if finish.error.startswith(f"{error.stage}: ")]
        account = account_of(own or errors)
        return f"\n{account}" if account else ""

    def _check_balance(self, result: RunResult) -> None:
        if not result.balanced:
            raise EngineBug(f"{self.plan.name}: the books do not balance: {result.to_json()}")

    def interrupted(self) -> str:
        """Say how far it was when the user stopped it."""
        done = f"stopped; {len(self.books.records)} of {len(self.plan.sources)} source partitions are committed"
        if self._whole.is_temporary or not self.plan.ends_in_writer:
            return done + ". Only a pipeline that ends in a writer can be continued."
        return done + ". Run the same command again to continue."

    def _check_quarantine_limit(self, result: RunResult, *, stopped: bool = False, reason: str = "") -> None:
        failed = Failed.of(result.counts.values(), self.plan.input_bytes)
        # What was under way when a share was exceeded may have brought it down again; the run is incomplete anyway.
        if stopped or self.limit.is_exceeded(failed, at_end=True):
            # The drive of a segment knows only what is left of the limit.
            reason = reason.replace(f"more than {self.limit} failed", f"more than {self._whole.limit} failed")
            account = "" if self.limit.is_exceeded(failed, at_end=True) else f": {reason}"
            joined = self._whole.joined(result)
            error = TooManyQuarantined(f"{self.plan.name}: {too_many_quarantined(joined, self._whole.limit)}{account}")
            error.result = joined
            raise error


def _by_file(errors: str) -> str:
    """One line for each file that changed, even if many of its parts were read; no more than a reader can take in."""
    files = {line.partition(": expected")[0]: line for line in reversed(errors.splitlines())}
    lines = [files[path] for path in sorted(files)]
    more = [f"and {len(lines) - _FILES_SHOWN} more files"] if len(lines) > _FILES_SHOWN else []
    return "\n".join([*lines[:_FILES_SHOWN], *more])
