"""Searches: what a stage does that has to look at all documents ahead of it before its first task.

Such a stage says `searches = True` and has a method `searched`. Between two segments, in the driver, it is given a
`Search`: the documents ahead, which it may read as often as it likes, and a directory where it runs pipelines of its
own. It returns a copy of itself that knows what was found, and that copy travels to the workers. Documents stay with
their source partitions. They are read again from the input where nothing but a reader stands ahead, else from the files
of a barrier, which the planner has put there.

    <run directory>/search/<stage>/<step>/       a run of a step: its ledger, and its rows in `exchange-rows`
    <run directory>/search/<stage>/found.json    what the search came to, written when the run goes on

A killed run searches again: steps that are done say so, and the others continue from their ledgers. The books of a run
are those of its segments. What its searches read, make and drop only tells about documents, and is counted nowhere.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import msgspec
from msgspec.structs import replace

from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.metrics.snapshot import SNAPSHOT_S, ErrorCount, RunSnapshot
from gristmill.runs.books import RunResult
from gristmill.runs.directory import RunDirectory
from gristmill.runs.ledger import CommitRecord, HeaderMissing, is_sealed, read_ledger, sealed
from gristmill.runs.progress import STATUS_S
from gristmill.runs.summary import commonest
from gristmill.runs.user import Observer, RunOptions
from gristmill.stages.exchange.barrier import in_order
from gristmill.stages.exchange.write_partitions import WritePartitions
from gristmill.stages.io.files import ReadingStage
from gristmill.storage.atomic_write import whole_file
from gristmill.tasks import FileGroupTask, FileSlice

DIRECTORY = "search"  # of all searches of a run
FOUND = "found.json"
ROWS = "exchange-rows"  # below the directory of a step: what its last stage gave, as between two segments


class Searches(Protocol):
    """The interface of a stage that says `searches`."""

    def searched(self, search: "Search") -> AnyStage:
        """Return a copy of the stage that knows what was found. The same documents must give the same copy."""
        ...


class RunInside(Protocol):
    """Runs a pipeline on the executor of the run that needs it; `directory` keeps its ledger."""

    def __call__(
        self,
        name: str,
        stages: Sequence[AnyStage],
        tasks: Sequence[AnyTask],
        directory: Path | None,
        *,
        observer: Observer | None,
        fresh: bool = False,
    ) -> RunResult: ...


@dataclass(frozen=True)
class RowsAhead:
    """The documents ahead of a stage, the same and in the same batches whenever they are read."""

    sources: Sequence[AnyTask]
    names: Sequence[str]  # of the source partitions
    stages: tuple[AnyStage, ...]  # what makes batches of them: a reader, and whatever drops some of what it read
    num_bytes: int
    file_of: Callable[[int], str]  # number of a source partition -> the file its documents came from, or its name

    def reading(self, columns: Sequence[str]) -> list[AnyStage]:
        """Return the stages that read the documents again, with these columns."""
        first, *others = self.stages
        if isinstance(first, ReadingStage):
            first = first.for_columns(list(dict.fromkeys(columns)))
        return [first.with_(), *(stage.with_() for stage in others)]


@dataclass(frozen=True)
class StepRows:
    """What a step gave, in Arrow files: a task for each source partition that gave any, in order."""

    partitions: list[AnyTask]

    @classmethod
    def of(cls, step: str, done: RunResult) -> "StepRows":
        """Take the rows of a step that is done. Its name stands for its files: they are the same wherever they lie."""
        partitions: list[AnyTask] = []
        for task in done:
            assert isinstance(task, FileGroupTask)  # noqa: S101  # what a writer makes
            files = in_order(task.data)
            size = sum(Path(file).stat().st_size for file in files)
            partitions.append(
                FileGroupTask(
                    step, files, slices=(FileSlice(step, num_bytes=size),), partition_name=task.partition_name
                )
            )
        return cls(partitions)

    @property
    def files(self) -> list[str]:
        """All files, in order."""
        return [file for task in self.partitions for file in task.data]


@dataclass
class Search:
    """One search, in one session of a run. What a stage puts into `found` is reported to the user, and kept."""

    stage: str  # its name in the plan
    ahead: RowsAhead
    directory: Path
    run_inside: RunInside
    run_dir: Path
    is_temporary: bool = False  # nothing of the run stays when it ends
    observer: Observer | None = None
    found: dict[str, object] = field(default_factory=dict)
    results: list[RunResult] = field(default_factory=list)  # of the steps
    errors: list[ErrorCount] = field(default_factory=list)  # of documents it could not look at
    at_end: list[Callable[[], None]] = field(default_factory=list)  # called when all of the run is done
    messages: list[str] = field(default_factory=list)  # to be told to the user
    kept: set[str] = field(default_factory=lambda: {FOUND})  # files that stay when all of the run is done

    def run(self, step: str, stages: Sequence[object], tasks: Sequence[AnyTask] | None = None) -> StepRows:
        """Run stages on the documents ahead, or on other tasks, and keep their rows."""
        writing = WritePartitions([], 1, name=f"{step}_rows")
        writing._directory = str(self.directory / step / ROWS)
        line = cast("list[AnyStage]", [*stages, writing])
        done = self._run(step, line, self.ahead.sources if tasks is None else tasks, self.directory / step)
        return StepRows.of(step, done)

    def make(self, step: str, stages: Sequence[object], tasks: Sequence[AnyTask]) -> RunResult:
        """Run stages whose tasks are kept in memory, or that make none."""
        return self._run(step, cast("list[AnyStage]", list(stages)), tasks, None)

    def write_elsewhere(self, step: str, stages: Sequence[AnyStage], directory: Path) -> list[str]:
        """Run stages that end in a writer, with a ledger in a directory that is not the search's."""
        name, sources = f"{self.stage}: {step}", self.ahead.sources
        try:
            done = self.run_inside(name, stages, sources, directory, observer=self.observer)
        except ResumeRefused:  # the ledger is of a run that was started over
            done = self.run_inside(name, stages, sources, directory, observer=self.observer, fresh=True)
        return list(done.output_files)

    def _run(self, step: str, stages: list[AnyStage], tasks: Sequence[AnyTask], directory: Path | None) -> RunResult:
        name = f"{self.stage}: {step}"
        try:
            done = self.run_inside(name, stages, tasks, directory, observer=self.observer)
        except HeaderMissing:  # the machine stopped while steps were removed: some of their files are back
            done = self.run_inside(name, stages, tasks, directory, observer=self.observer, fresh=True)
        self.results.append(done)
        return done

    def ledger(self, step: str) -> Mapping[int, CommitRecord]:
        """What a step has committed, by source partition, with its counts."""
        home = self.directory / step
        first = home / "segment-1"
        return read_ledger((first if first.is_dir() else home) / "ledger.jsonl").records

    def close(self) -> None:
        """Write down what was found."""
        text = sealed(json.dumps(self.found, default=str, ensure_ascii=False))
        with whole_file(self.directory / FOUND) as temporary:  # not forced: if it is lost, the search is done again
            temporary.write_text(text, encoding="utf-8")

    def remove_steps(self) -> None:
        """Remove what only a search needs."""
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in self.kept:
                path.unlink(missing_ok=True)


class SearchesOf:
    """The searches of one run. They have the run's directory and options, and its user is told of them."""

    def __init__(self, directory: RunDirectory, first: Plan, options: RunOptions, *, is_temporary: bool) -> None:
        self._directory = directory
        self._first = first  # segment of the run, whose source partitions are parts of the input
        self._options = options
        self._is_temporary = is_temporary
        self._last_status = 0.0

    def informed(self, plan: Plan) -> tuple[Plan, list[Search]]:
        """Let the stages of a segment search, one after another; return the segment with the copies they gave."""
        stages = [stage for group in plan.groups for stage in group.stages]
        searches = []
        for place, (name, stage) in enumerate(zip(plan.stage_names, stages, strict=True)):
            if stage.searches:
                search = self._search(name, plan, tuple(stages[:place]))
                stages[place] = cast("Searches", stage).searched(search)
                search.close()
                self._tell_what_failed(search)
                self._directory.messages += [f"{name}: {message}" for message in search.messages]
                searches.append(search)
        if isinstance(stages[0], ReadingStage):
            stages[0] = stages[0].for_columns(None)
        groups = tuple(
            replace(group, stages=tuple(stages[group.first_stage : group.first_stage + len(group.stages)]))
            for group in plan.groups
        )
        return replace(plan, groups=groups), searches

    def _search(self, name: str, plan: Plan, ahead: tuple[AnyStage, ...]) -> Search:
        if self._options.run_inside is None:
            raise ConfigError(f"{name}: expected to be run by Pipeline.run, which lets it search; got another caller")
        rows = RowsAhead(plan.sources, plan.source_names, ahead, plan.input_bytes, file_of(self._first, plan))
        home = self._directory.path / DIRECTORY / name
        self._directory.disks.make(home)
        return Search(
            name,
            rows,
            home,
            self._options.run_inside,
            self._directory.path,
            is_temporary=self._is_temporary,
            observer=self,
        )

    @property
    def snapshot_s(self) -> float:
        """How often a snapshot is wanted: for the status file, or more often if the observer wants it."""
        observer = self._options.observer
        return STATUS_S if observer is None else min(STATUS_S, getattr(observer, "snapshot_s", SNAPSHOT_S))

    def __call__(self, snapshot: RunSnapshot) -> None:
        """Show a step's progress as the run's, which is not over when the step is."""
        state = "running" if snapshot.state == "finished" else snapshot.state
        name, own = self._first.name, snapshot.name
        name = own if own.startswith(f"{name}: ") else f"{name}, {own}"
        shown = msgspec.structs.replace(snapshot, name=name, state=state)
        if self._options.observer is not None:
            self._options.observer(shown)
        if not self._is_temporary and time.monotonic() - self._last_status >= STATUS_S:
            self._last_status = time.monotonic()
            self._directory.write_status(shown)

    def _tell_what_failed(self, search: Search) -> None:
        """Say how many documents could not be searched: what the stages ahead lose is in the run's books already."""
        ahead = {stage.stage_name() for stage in search.ahead.stages}
        for result in search.results:
            search.errors += [error for error in result.errors if error.stage not in ahead]
            for stage, counts in result.counts.items():
                if counts.quarantined and stage not in ahead:
                    self._directory.messages.append(
                        f"{search.stage}: {counts.quarantined:,} documents could not be compared by {stage}, and are "
                        f"kept: {commonest(result.errors)}"
                    )


def searching_stages(plan: Plan) -> list[str]:
    """The names of the stages of a segment that search."""
    stages = [stage for group in plan.groups for stage in group.stages]
    return [name for name, stage in zip(plan.stage_names, stages, strict=True) if stage.searches]


def read_found(run_dir: Path, stage: str) -> dict[str, object] | None:
    """What a search came to, if the run went on from there and the file is undamaged."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = (run_dir / DIRECTORY / stage / FOUND).read_text(encoding="utf-8")
        if is_sealed(text):
            return {key: value for key, value in json.loads(text).items() if key != "xxh3"}
    return None


def file_of(first: Plan, plan: Plan) -> Callable[[int], str]:
    """Return which file of the input a source partition of a segment was, given the first segment of the run."""
    same = plan.source_names is first.source_names or list(plan.source_names) == list(first.source_names)

    def of(index: int) -> str:
        task = first.sources[index] if same else None
        return task.data[0] if isinstance(task, FileGroupTask) and task.data else plan.source_names[index]

    return of
