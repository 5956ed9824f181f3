"""`Run`: one execution of a plan, on any executor. A plan with exchanges is several segments, done one after another.

    <run directory>/               ledger, header, quarantine, status and report of a run without an exchange
    <run directory>/segment-1/     with one: ledger, header and quarantine of the first segment, and so on;
    <run directory>/exchange-1/    rows by partition, removed when the whole run is done; status and report are above
    <run directory>/search/        what stages that search do before they begin (runs/searches.py)

What is the same on every executor lies here and in `Segment`: where the run directory is, the locks, resuming, joining
the books of segments, Ctrl-C. A killed run continues in the segment it was in: a finished one says so, an unfinished
one resumes from its ledger.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.engine.breaker import NO_LIMIT, SHARE_NEEDS, Failed, QuarantineLimit
from gristmill.engine.plan import Plan
from gristmill.errors import ConfigError, EngineBug, Interrupted, ResumeRefused, TooManyQuarantined
from gristmill.metrics.snapshot import StageCounts
from gristmill.runs.books import Books, RunResult, read_errors
from gristmill.runs.directory import RunDirectory
from gristmill.runs.ledger import HOW_TO_GO_ON
from gristmill.runs.progress import Earlier, JoinedSnapshots
from gristmill.runs.publication import behind_barrier, can_hold_runs, exchange_directory, in_directory, store_options
from gristmill.runs.segment import (
    Ending,
    Segment,
    Whole,
    cannot_be_continued,
    clear_segments,
    segment_directories,
)
from gristmill.runs.summary import too_many_quarantined
from gristmill.runs.user import RunOptions, StopSignals
from gristmill.storage.atomic_write import machine_failures
from gristmill.storage.file_system import is_url

if TYPE_CHECKING:
    from gristmill.runs.searches import Search
    from gristmill.stages.exchange.barrier import Findings

__all__ = ["Drive", "Ending", "Run", "Segment"]

Drive = Callable[[Segment], Ending]


class Run:
    """One execution of a plan. Its directory is given, or beside the output, or temporary."""

    def __init__(
        self, plan: Plan, options: RunOptions, *, ignore_failures: bool = False, durable: bool = False
    ) -> None:
        self.options = options
        self.durable = durable  # files to disk: a run on several machines goes on when one of them stops
        self.limit = NO_LIMIT if ignore_failures else options.limit
        self.memory_limit = 0  # for all processes together, if one was set
        self.stop = StopSignals()
        self.started = time.monotonic()
        self.segments = plan.segments
        self._earlier = Earlier()
        self._scratch: str | None = None  # a temporary directory, where the run has no other
        self._has_parts = not plan.is_one_go  # each in a directory of its own
        self.directory = self._open_directory()
        if self._has_parts:
            self.segments = in_directory(self.segments, self.directory.path)
        self._at: Segment | None = None  # where it is
        self._searches: list[Search] = []  # done in this session

    # Where it is

    def _open_directory(self) -> RunDirectory:
        path, options_of, session = self._path(), store_options(self.segments[-1]), os.urandom(6).hex()
        if not is_url(path):
            shared = self.options.shared
            return RunDirectory(Path(path), session=session, durable=self.durable, options_of=options_of, shared=shared)
        from gristmill.runs.store_directory import StoreDirectory

        # If everything is on stores, nothing needs checking after a restart of this machine.
        durable = self.durable or all(map(is_url, self._outputs()))
        return StoreDirectory(path, session=session, options_of=options_of, durable=durable)

    def _path(self) -> str:
        path = self._wanted_path()
        if path is not None and is_url(path) and self._has_parts:
            # Rows that go through an exchange are read and written in pieces, at random: that needs a disk.
            what = "an exchange" if len(self.segments) > 1 else "a stage that searches all documents"
            raise ConfigError(
                f"checkpoint_path: expected a directory on a disk, because the pipeline has {what}; got {path!r}. "
                "Pass another (--run-dir); the output may stay on the store"
            )
        if path is None:
            path = self._scratch = tempfile.mkdtemp(prefix="gristmill-")
        return path

    def _wanted_path(self) -> str | None:
        if self.options.checkpoint_path is not None:
            return str(self.options.checkpoint_path)
        outputs = [path for path in self.segments[-1].output_directories if not is_url(path) or can_hold_runs(path)]
        return f"{outputs[-1].rstrip('/')}/.gristmill" if outputs else None

    def _outputs(self) -> list[str]:
        outputs = [path for segment in self.segments for path in segment.output_directories]
        return [*outputs, *([self.options.rejects_path] if self.options.rejects_path else [])]

    # Running

    def execute(self, drive: Drive) -> RunResult:
        """Run to the end, or stop cleanly on Ctrl-C and SIGTERM."""
        with self.stop.handled(), machine_failures(self.segments[0].name, self.directory.shown):
            try:
                return self._execute(drive)
            except KeyboardInterrupt:
                raise Interrupted(self._at.interrupted() if self._at else "stopped before anything was done") from None

    def _execute(self, drive: Drive) -> RunResult:
        self.directory.acquire()
        self.directory.hold_outputs(self._outputs())
        # Without a writer the final tasks live in memory only: there is nothing to continue from.
        can_go_on = self.segments[-1].ends_in_writer or self.options.checkpoint_path is not None
        if not self.options.fresh:
            self._refuse_another_kind()
        if self._has_parts:
            return self._execute_all(drive, can_go_on=can_go_on)
        self._at = Segment(
            self.segments[0],
            self.options,
            self.directory,
            self.stop,
            limit=self.limit,
            memory_limit=self.memory_limit,
            durable=self.durable,
            resumable=can_go_on and not self.options.fresh,
            scratch=self._scratch,
        )
        return self._at.execute(drive)

    def _refuse_another_kind(self) -> None:
        """Raise ResumeRefused if what is here has exchanges or searches and this run has none, or vice versa.

        Their ledgers are in different places: neither would see what the other has written.
        """
        here = (self.directory.path, "without an exchange or a search; this one has one")
        below = [
            (path, "with an exchange or a search; this one has none") for path in segment_directories(self.directory)
        ]
        for path, what in [here] if self._has_parts else below:
            if (ledger := path / "ledger.jsonl").exists() and ledger.stat().st_size:
                raise ResumeRefused(
                    f"{self.directory.shown}: expected the run that was started here; that was one of a pipeline "
                    f"{what}. Run the earlier pipeline to continue it, {HOW_TO_GO_ON}"
                )

    def close(self) -> None:
        """Leave no temporary file behind, and let the directory go."""
        if self._at is not None:
            self._at.directory.close()
        self.directory.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    # Several segments

    def _execute_all(self, drive: Drive, *, can_go_on: bool) -> RunResult:
        if self.options.fresh or not can_go_on or self._is_retried():
            self._start_over()
        elif (found := self._finished_before()) is not None:
            return found
        self.directory.remove_report()
        results: list[RunResult] = []
        for number, segment in enumerate(self.segments, 1):
            results.append(self._execute_one(number, segment, results, drive))
        result = self._joined(results)
        if result.balanced and not self._exceeds_limit(result):
            for search in self._searches:
                for act in search.at_end:
                    act()
        self._end(result)
        self._check_limit(result)
        return result

    def _end(self, result: RunResult) -> None:
        if not result.balanced:
            raise EngineBug(f"{self.segments[0].name}: the books do not balance: {result.to_json()}")
        self.directory.write_report(result)
        self._remove_exchanges()
        for search in self._searches:
            search.remove_steps()

    def _exceeds_limit(self, result: RunResult) -> bool:
        return self.limit.is_exceeded(Failed.of(result.counts.values(), self.segments[0].input_bytes), at_end=True)

    def _check_limit(self, result: RunResult) -> None:
        """Judge the run as a whole: when it ends, and again whenever it is run after it has finished."""
        if self._exceeds_limit(result):
            error = TooManyQuarantined(f"{self.segments[0].name}: {too_many_quarantined(result, self.limit)}")
            error.result = result
            raise error

    @cached_property
    def _findings(self) -> "Findings":
        from gristmill.stages.exchange.barrier import Findings  # which needs Arrow

        return Findings(self.directory.path if self._scratch is None else None)

    def _execute_one(self, number: int, plan: Plan, before: list[RunResult], drive: Drive) -> RunResult:
        if self._at is not None and before:
            rows = exchange_directory(self.directory.path, number - 1)
            plan = behind_barrier(plan, self._at.books.records, rows, self._findings)
        if plan.searches:
            plan = self._searched(plan)
        observer = JoinedSnapshots(
            self.directory, self.segments, before, self.options.observer, self.started, self._earlier
        )
        # Anything unwanted that an earlier run left has been cleared already.
        options = replace(self.options, observer=observer, fresh=False, retry_quarantined=False)
        directory = self._directory_of(number, os.urandom(6).hex())
        self._at = at = Segment(
            plan,
            options,
            directory,
            self.stop,
            limit=self._limit_after(before),
            memory_limit=self.memory_limit,
            durable=self.durable,
            whole=Whole(
                self.limit,
                lambda result: self._joined([*before, result], is_whole=at.is_done),
                is_temporary=self._scratch is not None,
                stages_before=sum(len(result.counts) for result in before),
            ),
        )
        directory.acquire()
        try:
            return at.execute(drive)
        except TooManyQuarantined as error:
            if number == len(self.segments) and at.is_done and isinstance(error.result, RunResult):
                self._end(error.result)  # too much has failed, but there is nothing left to do
            raise
        finally:
            directory.close()

    def _searched(self, plan: Plan) -> Plan:
        """Let the stages that search do so; return the segment with stages that know what was found."""
        from gristmill.runs.searches import SearchesOf

        inside = SearchesOf(self.directory, self.segments[0], self.options, is_temporary=self._scratch is not None)
        plan, searches = inside.informed(plan)
        self._searches += searches
        return plan

    def _limit_after(self, before: Sequence[RunResult]) -> QuarantineLimit:
        """What earlier segments left of the limit. All is read once the first has ended: a share is a number then."""
        limit, most = self.limit, self.limit.most
        if not before or most is None:
            return limit
        read = sum(counts.read for counts in before[0].counts.values())
        documents = sum(result.quarantined for result in before)
        if isinstance(most, float):
            if limit.is_default and read < SHARE_NEEDS:
                return NO_LIMIT
            return replace(limit, most=max(0, int(most * read) - documents))
        return replace(limit, most=max(0, most - documents - sum(result.lost_parts for result in before)))

    def _directory_of(self, number: int, session: str = "") -> RunDirectory:
        return RunDirectory(
            self.directory.path / f"segment-{number}",
            session=session,
            durable=self.durable,
            root=self.directory.path,
            options_of=self.directory.options_of,
            shared=self.options.shared,
        )

    def _is_retried(self) -> bool:
        """Whether all is done again, as what is behind an exchange depends on every document before it."""
        if not self.options.retry_quarantined:
            return False
        failed = False
        for number, plan in enumerate(self.segments, 1):
            segment = self._directory_of(number)
            segment.acquire()
            try:
                segment.resume(plan, rejects_path=self.options.rejects_path, mended=True)  # or refuse another parameter
                failed = failed or any(segment.quarantine.glob("*.jsonl"))
            finally:
                segment.close()
        failed = failed or any(self.directory.path.glob("search/*/**/quarantine/*.jsonl"))
        if failed:
            message = f"{self.directory.shown}: everything is done again, with what was in quarantine"
            self.directory.messages.append(message)
        return failed

    def _remove_exchanges(self) -> None:
        for number in range(1, len(self.segments)):
            shutil.rmtree(exchange_directory(self.directory.path, number), ignore_errors=True)

    def _start_over(self) -> None:
        """Forget an earlier run here, and remove what it has published."""
        clear_segments(self.directory)
        self.directory.clear()
        shutil.rmtree(self.directory.path / "search", ignore_errors=True)

    def _finished_before(self) -> RunResult | None:
        """The result of a run that has come to its end here, if its outputs are still there."""
        if not self.directory.has_report():
            return None
        results = []
        for number, plan in enumerate(self.segments, 1):
            segment = self._directory_of(number)
            segment.acquire()
            try:
                records = segment.resume(plan, rejects_path=self.options.rejects_path)
                # What went through an exchange is removed when all is done.
                is_last = number == len(self.segments)
                look = segment.finish_publication if is_last else segment.verify_side_files
                records = look(records)
            finally:
                segment.close()
            if len(records) < len(plan.sources):
                return None
            books = Books(plan, records)
            results.append(books.result(run_dir=self.directory.shown, rejects_path=self.options.rejects_path))
            results[-1].errors = read_errors(results[-1].quarantine_files)
        if not self.segments[-1].ends_in_writer:
            raise cannot_be_continued(self.directory)
        found = self._found_before()
        if found is None:
            return None
        result = replace(self._joined(results), found=found)
        self._remove_exchanges()  # again, if the machine stopped just after that
        result.already_finished = True
        result.messages = [f"{self.directory.shown}: this run is finished already; nothing was changed"]
        self._check_limit(result)
        return result

    def _found_before(self) -> dict[str, dict[str, object]] | None:
        """What the searches of a finished run found; None if that is no longer there."""
        if not any(plan.searches for plan in self.segments):
            return {}
        from gristmill.runs.searches import read_found, searching_stages

        names = [name for plan in self.segments for name in searching_stages(plan)]
        found = {name: read_found(self.directory.path, name) for name in names}
        return {name: entry for name, entry in found.items() if entry is not None} if all(found.values()) else None

    def _joined(self, results: Sequence[RunResult], *, is_whole: bool = True) -> RunResult:
        """The books of the run: rows that went through an exchange are neither written nor read.

        If not `is_whole`, the last segment was stopped: rows it has not read again count as written.
        """
        last = results[-1]
        counts = joined_counts([result.counts for result in results], is_whole=is_whole)
        kept = self._scratch is None
        return replace(
            last,
            counts=counts,
            rejects_files=[path for result in results for path in result.rejects_files],
            quarantine_files=[path for result in results for path in result.quarantine_files] if kept else [],
            run_dir=self.directory.shown if kept else None,
            wall_s=time.monotonic() - self.started,
            resumed=any(result.resumed for result in results),
            already_finished=all(result.already_finished for result in results),
            messages=[*self.directory.messages, *(message for result in results for message in result.messages)],
            errors=[
                *(error for result in results for error in result.errors),
                *(error for search in self._searches for error in search.errors),
            ],
            peak_memory_bytes=max(result.peak_memory_bytes for result in results),
            found={search.stage: search.found for search in self._searches},
        )


def joined_counts(segments: Sequence[Mapping[str, StageCounts]], *, is_whole: bool) -> dict[str, StageCounts]:
    """Return what the stages of all segments did in the books of the whole run."""
    counts: dict[str, StageCounts] = {}
    passed = 0
    for number, segment in enumerate(segments):
        for name, own in segment.items():
            counts[name] = StageCounts()
            counts[name].add(own)
        names = list(segment)
        if number:
            passed -= counts[names[0]].read
            counts[names[0]].read = 0
        if number < len(segments) - 1:
            passed += counts[names[-1]].written
            counts[names[-1]].documents_out, counts[names[-1]].written = counts[names[-1]].written, 0
    if passed > 0 and not is_whole:
        counts[list(segments[-2])[-1]].written = passed
    elif passed:
        raise EngineBug(f"exchange: {passed} more rows were written than read again")
    return counts
