"""The books of a run: what is committed, here or in an earlier session, and the result made of it."""

from typing import TYPE_CHECKING

from gristmill.engine.ledger import CommitRecord
from gristmill.engine.plan import AnyTask, Plan
from gristmill.metrics.stage_counts import StageCounts
from gristmill.runs.result import LazyTasks, RunResult
from gristmill.tasks import FileGroupTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Books:
    """Committed partitions by number."""

    def __init__(self, plan: Plan, records: dict[int, CommitRecord]) -> None:
        self.plan = plan
        self.records: dict[int, CommitRecord] = {}  # without their counts, which are in `totals`
        self.totals = {name: StageCounts() for name in plan.stage_names}  # of every stage over everything committed
        self.input_bytes_done = 0
        self._hinted: set[str] = set()  # stages
        self.tasks: dict[int, list[Callable[[], AnyTask]]] = {}  # final tasks of a pipeline without a writer at its end
        for record in records.values():
            self.add(record)
        self.resumed = len(records)

    def take_hints(self) -> list[str]:
        """Return what to tell about stages that gave back nothing for all they were given, once for each."""
        hints = []
        for name, counts in self.totals.items():
            if counts.returned_none and counts.returned_none == counts.documents_in and name not in self._hinted:
                self._hinted.add(name)
                hints.append(
                    f"stage {name} returned None for all {counts.documents_in:,} documents it was given so far, so "
                    "they count as dropped. If it is meant to change or pass them on, does it forget `return`?"
                )
        return hints

    def add(self, record: CommitRecord) -> None:
        """Enter a committed partition. What is kept of it is small: there may be millions."""
        for name, counts in record.counts:
            self.totals[name].add(counts)
        self.input_bytes_done += self.plan.sources[record.root].nbytes
        self.records[record.root] = record._replace(counts=())

    def side_files(self, rejects_path: str | None) -> tuple[list[str], list[str]]:
        """Return the files of rejected and of quarantined documents, in the order of the source partitions."""
        with_some = sorted(root for root, record in self.records.items() if record.side_files)
        side = [file.final for root in with_some for file in self.records[root].side_files if not file.is_payload]
        # Directly in their directory: the quarantine may be below the same one.
        directory = (rejects_path or "").rstrip("/")
        rejects = {path for path in side if directory and path.rpartition("/")[0] == directory}
        return [path for path in side if path in rejects], [path for path in side if path not in rejects]

    def result(self, *, run_dir: str | None, rejects_path: str | None) -> RunResult:
        """Return the result, tasks and files in the order of the source partitions."""
        ordered = [self.records[root] for root in sorted(self.records)]
        files = [file.final for record in ordered for file in record.files]
        rejects, quarantine = self.side_files(rejects_path)
        if self.plan.ends_in_writer:
            tasks: Sequence[AnyTask] = [_written(record) for record in ordered if record.files]
        else:
            tasks = LazyTasks([unpack for root in sorted(self.tasks) for unpack in self.tasks[root]])
        return RunResult(
            tasks=tasks,
            counts=self.totals,
            output_files=files,
            rejects_files=rejects,
            quarantine_files=quarantine,
            run_dir=run_dir,
            resumed=self.resumed > 0,
        )


def _written(record: CommitRecord) -> AnyTask:
    task = FileGroupTask(record.name, [file.final for file in record.files], partition_name=record.name)
    task.task_id = record.name
    return task  # type: ignore[return-value]  # Task is invariant; a FileGroupTask is as good a Task as any
