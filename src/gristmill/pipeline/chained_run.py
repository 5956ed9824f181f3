"""`ChainedRun`: the segments of a pipeline with exchanges, run one after another as one run.

    <run directory>/segment-1/    ledger, header, quarantine of the first segment, and so on
    <run directory>/exchange-1/   its rows by partition; removed when the whole run is done
    <run directory>/status.json, report.json   the run as one

A killed run continues in the segment it was in: a finished one says so, an unfinished one resumes from its ledger.
"""

import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from gristmill.backends.base import BaseExecutor
from gristmill.engine.plan import Plan
from gristmill.engine.policies.quarantine_limit import Failed
from gristmill.errors import ConfigError, EngineBug, TooManyQuarantined
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot
from gristmill.metrics.stage_counts import StageCounts
from gristmill.pipeline.segments import chain
from gristmill.runs.books import Books
from gristmill.runs.directory import RunDirectory
from gristmill.runs.options import Observer, RunOptions
from gristmill.runs.publication import store_options
from gristmill.runs.quarantine_errors import read_errors
from gristmill.runs.result import RunResult
from gristmill.runs.summary import too_many_quarantined
from gristmill.storage.failures import machine_failures
from gristmill.storage.file_system import is_url

STATUS_S = 1.0


class ChainedRun:
    """One run of several segments. `path` is its directory: given, or beside the output, or temporary."""

    def __init__(self, executor: BaseExecutor, plan: Plan, options: RunOptions) -> None:
        self.executor = executor
        self.options = options
        self.started = time.monotonic()
        self._scratch: str | None = None
        outputs = [path for path in chain(plan)[-1].output_directories if not is_url(path)]
        if options.checkpoint_path is not None:
            self.path = _on_disk(options.checkpoint_path)
        elif outputs:
            self.path = Path(outputs[-1]) / ".gristmill"
        else:
            self._scratch = tempfile.mkdtemp(prefix="gristmill-")
            self.path = Path(self._scratch)
        self.directory = RunDirectory(
            self.path,
            session=os.urandom(6).hex(),
            options_of=store_options(chain(plan)[-1]),
            shared=options.shared,
        )

    def __enter__(self) -> "ChainedRun":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.directory.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def execute(self, plan: Plan) -> RunResult:
        """Run every segment, or find that all is done."""
        with machine_failures(plan.name, self.path):
            return self._execute(plan)

    def _execute(self, plan: Plan) -> RunResult:
        plans = chain(plan)
        self.directory.acquire()
        rejects = [self.options.rejects_path] if self.options.rejects_path else []
        self.directory.hold_outputs([*(path for each in plans for path in each.output_directories), *rejects])
        cannot_go_on = self.options.checkpoint_path is None and not plans[-1].ends_in_writer
        if self.options.fresh or cannot_go_on or self._is_retried(plans):
            self._start_over(len(plans))
        elif (found := self._finished_before(plans)) is not None:
            return found
        self.directory.remove_report()
        results: list[RunResult] = []
        for number, segment in enumerate(plans, 1):
            results.append(self._run_segment(number, segment, plans, results))
        result = self._joined(results)
        if not result.balanced:
            raise EngineBug(f"{plan.name}: the books do not balance: {result.to_json()}")
        self.directory.write_report(result.to_json())
        self._remove_exchanges(len(plans))
        return result

    def _is_retried(self, plans: list[Plan]) -> bool:
        """Whether all is done again: what is behind an exchange depends on every document before it."""
        if not self.options.retry_quarantined:
            return False
        failed = False
        for number, plan in enumerate(plans, 1):
            segment = self._segment(number)
            segment.acquire()
            try:
                segment.resume(plan, rejects_path=self.options.rejects_path, mended=True)  # or refuse another parameter
                failed = failed or any(segment.quarantine.glob("*.jsonl"))
            finally:
                segment.close()
        if failed:
            self.directory.messages.append(f"{self.path}: everything is done again, with what was in quarantine")
        return failed

    def _remove_exchanges(self, num_segments: int) -> None:
        for number in range(1, num_segments):
            shutil.rmtree(self.path / f"exchange-{number}", ignore_errors=True)

    def _run_segment(self, number: int, plan: Plan, plans: list[Plan], before: list[RunResult]) -> RunResult:
        limit = self.options.limit
        if isinstance(limit.most, int):
            failed = sum(result.quarantined + result.lost_parts for result in before)
            limit = replace(limit, most=max(0, limit.most - failed))
        observer = _JoinedProgress(self.directory, plans, before, self.options.observer, self.started)
        options = replace(
            self.options,
            checkpoint_path=self.path / f"segment-{number}",
            limit=limit,
            fresh=False,  # what an earlier run left is cleared already
            retry_quarantined=False,
            observer=observer,
            segment_of=self.path,
        )
        try:
            return self.executor.execute(replace(plan, then=None), options)
        except TooManyQuarantined as error:
            if isinstance(error.result, RunResult):
                error.result = self._joined([*before, error.result])
            raise

    def _segment(self, number: int) -> RunDirectory:
        return RunDirectory(
            self.path / f"segment-{number}",
            session="",
            root=self.path,
            shared=self.options.shared,
            options_of=self.directory.options_of,
        )

    def _start_over(self, num_segments: int) -> None:
        """Forget an earlier run here, and remove what it has published."""
        (self.path / "report.json").unlink(missing_ok=True)
        for number in range(1, num_segments + 1):
            segment = self._segment(number)
            segment.acquire()
            segment.clear()
            segment.close()
            shutil.rmtree(self.path / f"exchange-{number}", ignore_errors=True)

    def _finished_before(self, plans: list[Plan]) -> RunResult | None:
        """The result of a run that has come to its end here, if its outputs are still there."""
        if not self.directory.has_report():
            return None
        results = []
        for number, plan in enumerate(plans, 1):
            segment = self._segment(number)
            segment.acquire()
            try:
                records = segment.resume(plan, rejects_path=self.options.rejects_path)
                # What went through an exchange is removed when all is done.
                look = segment.finish_publication if number == len(plans) else segment.look_at_side_files
                records = look(records)
            finally:
                segment.close()
            if len(records) < len(plan.sources):
                return None
            results.append(Books(plan, records).result(run_dir=str(self.path), rejects_path=self.options.rejects_path))
            results[-1].errors = read_errors(results[-1].quarantine_files)
        result = self._joined(results)
        self._remove_exchanges(len(plans))  # again, if the machine stopped just after that
        result.already_finished = True
        result.messages = [f"{self.path}: this run is finished already; nothing was changed"]
        failed = Failed.of(result.counts.values(), plans[0].input_bytes)
        if self.options.limit.is_exceeded(failed, at_end=True):
            words = too_many_quarantined(result, self.options.limit)
            error = TooManyQuarantined(f"{plans[0].name}: {words}")
            error.result = result
            raise error
        return result

    def _joined(self, results: list[RunResult]) -> RunResult:
        """The books of the run: rows that went through an exchange are neither written nor read."""
        last = results[-1]
        counts: dict[str, StageCounts] = {}
        passed = 0
        for number, result in enumerate(results):
            for name, own in result.counts.items():
                counts[name] = StageCounts()
                counts[name].add(own)
            names = list(result.counts)
            if number:
                passed -= counts[names[0]].read
                counts[names[0]].read = 0
            if result is not last:
                passed += counts[names[-1]].written
                counts[names[-1]].documents_out, counts[names[-1]].written = counts[names[-1]].written, 0
        if passed:
            raise EngineBug(f"exchange: {passed} more rows were written than read again")
        return replace(
            last,
            counts=counts,
            rejects_files=[path for result in results for path in result.rejects_files],
            quarantine_files=[path for result in results for path in result.quarantine_files],
            run_dir=None if self._scratch else str(self.path),
            wall_s=time.monotonic() - self.started,
            resumed=any(result.resumed for result in results),
            already_finished=all(result.already_finished for result in results),
            messages=[*self.directory.messages, *(message for result in results for message in result.messages)],
            errors=[error for result in results for error in result.errors],
            peak_memory_bytes=max(result.peak_memory_bytes for result in results),
        )


def _on_disk(path: Path | str) -> Path:
    """What goes through an exchange is read and written in pieces, at random: that is for a disk."""
    if isinstance(path, str) and is_url(path):
        raise ConfigError(
            f"checkpoint_path: expected a directory on a disk, because the pipeline has an exchange; got {path!r}. "
            "Pass another (--run-dir); the output may stay on the store"
        )
    return Path(path)


class _JoinedProgress:
    """Shows snapshots of one segment as snapshots of the run."""

    def __init__(
        self,
        directory: RunDirectory,
        plans: list[Plan],
        before: list[RunResult],
        observer: Observer | None,
        began: float,
    ) -> None:
        self.directory = directory
        self.plans = plans
        self.before = before
        self.observer = observer
        self.began = began
        self._last_status = 0.0

    def __call__(self, snapshot: RunSnapshot) -> None:
        number, total = len(self.before), len(self.plans)
        is_last = number == total - 1
        done = [count for result in self.before for count in result.counts.values()]
        stages = [
            StageSnapshot(name, group.index + 100 * position)
            for position, plan in enumerate(self.plans)
            for group in plan.groups
            for name in group.names
        ]
        now = {stage.name: stage for stage in snapshot.stages}
        joined = replace(
            snapshot,
            state=snapshot.state if is_last or snapshot.state != "finished" else "running",
            elapsed_s=time.monotonic() - self.began,
            partitions_done=snapshot.partitions_done + sum(len(plan.sources) for plan in self.plans[:number]),
            partitions_total=sum(len(plan.sources) for plan in self.plans),
            read=self.before[0].read if self.before else snapshot.read,
            written=snapshot.written if is_last else 0,
            dropped=snapshot.dropped + sum(count.dropped_total for count in done),
            quarantined=snapshot.quarantined + sum(count.quarantined for count in done),
            created=snapshot.created + sum(count.created for count in done),
            eta_s=snapshot.eta_s if is_last else None,
            stages=tuple(self._stage(stage, now) for stage in stages),
        )
        if self.observer is not None:
            self.observer(joined)
        if joined.elapsed_s - self._last_status >= STATUS_S or joined.state != "running":
            self._last_status = joined.elapsed_s
            self.directory.write_status(joined)

    def _stage(self, stage: StageSnapshot, now: dict[str, StageSnapshot]) -> StageSnapshot:
        if stage.name in now:
            return replace(now[stage.name], group=stage.group)
        for result in self.before:
            if stage.name in result.counts:
                return stage.with_counts(result.counts[stage.name])
        return stage
