"""`RunResult`: what `Pipeline.run` returns. A sequence of the final tasks, with the books of the run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

from gristmill.engine.plan import AnyTask
from gristmill.metrics.stage_counts import StageCounts, balance
from gristmill.metrics.tally import Distribution

if TYPE_CHECKING:  # with it comes the scheduler: 60 ms that a run can spend while its workers start
    from gristmill.engine.account import Efficiency
    from gristmill.metrics.error_counts import ErrorCount


class LazyTasks(Sequence[AnyTask]):
    """Final tasks, unpacked when somebody looks at them."""

    def __init__(self, unpack: list[Callable[[], AnyTask]]) -> None:
        self._unpack = unpack
        self._tasks: dict[int, AnyTask] = {}

    @overload
    def __getitem__(self, index: int) -> AnyTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyTask]: ...
    def __getitem__(self, index: int | slice) -> AnyTask | list[AnyTask]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index not in self._tasks:
            self._tasks[index] = self._unpack[index]()
        return self._tasks[index]

    def __len__(self) -> int:
        return len(self._unpack)


@dataclass(repr=False)
class RunResult(Sequence[AnyTask]):
    """The final tasks (the files written, if the pipeline ends in a writer) and what became of every document.

    `print(result)` says it in words. `errors` are kept even where the run leaves no directory behind.
    """

    tasks: Sequence[AnyTask]
    counts: dict[str, StageCounts]
    output_files: Sequence[str] = ()
    rejects_files: Sequence[str] = ()
    quarantine_files: Sequence[str] = ()
    run_dir: str | None = None
    wall_s: float = 0.0
    resumed: bool = False
    already_finished: bool = False
    messages: list[str] = field(default_factory=list)
    errors: "list[ErrorCount]" = field(default_factory=list)  # by stage and kind, with an example of each
    peak_memory_bytes: int = 0
    efficiency: "Efficiency | None" = None  # of the session that ended the run; None if nothing was left to do

    @overload
    def __getitem__(self, index: int) -> AnyTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyTask]: ...
    def __getitem__(self, index: int | slice) -> AnyTask | list[AnyTask]:
        return self.tasks[index] if isinstance(index, int) else list(self.tasks[index])

    def __len__(self) -> int:
        return len(self.tasks)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, list) and list(self.tasks) == other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        from gristmill.runs.summary import summarise

        return summarise(self)

    def __repr__(self) -> str:
        books = f"read={self.read}, written={self.written}, dropped={self.dropped_total}"
        return f"RunResult({len(self)} tasks, {books}, quarantined={self.quarantined})"

    @property
    def read(self) -> int:
        """Documents the readers met, the malformed ones included."""
        return sum(c.read for c in self.counts.values())

    @property
    def created(self) -> int:
        """Documents made out of others."""
        return sum(c.created for c in self.counts.values())

    @property
    def written(self) -> int:
        """Documents that came out at the end."""
        return sum(c.written for c in self.counts.values())

    @property
    def quarantined(self) -> int:
        """Documents that could not be processed."""
        return sum(c.quarantined for c in self.counts.values())

    @property
    def lost_parts(self) -> int:
        """Files, or parts of files, that could not be read: nobody knows how many documents they held."""
        return sum(c.lost_parts for c in self.counts.values())

    @property
    def lost_bytes(self) -> int:
        """The size of those parts."""
        return sum(c.lost_bytes for c in self.counts.values())

    @property
    def dropped(self) -> dict[str, dict[str, int]]:
        """Documents a stage left out: stage -> reason -> number."""
        return {name: dict(c.dropped) for name, c in self.counts.items() if c.dropped}

    @property
    def dropped_total(self) -> int:
        return sum(c.dropped_total for c in self.counts.values())

    @property
    def balanced(self) -> bool:
        """Whether read + created = written + dropped + quarantined."""
        return balance(list(self.counts.values())) == 0

    @property
    def stage_metrics(self) -> dict[str, dict[str, float]]:
        """Documents, bytes and seconds of each stage, and what else is counted there, by its author too."""
        always = ("documents_in", "documents_out", "quarantined", "bytes_in", "process_s")
        return {
            name: dict.fromkeys(always, 0) | c.numbers() | {"dropped": c.dropped_total} | c.counted
            for name, c in self.counts.items()
        }

    @property
    def observed(self) -> dict[str, dict[str, Distribution]]:
        """Values that stages have noted with `context.observe`: stage -> name -> how they are distributed."""
        return {
            stage: {name: Distribution(slots) for name, slots in sorted(c.observed.items())}
            for stage, c in self.counts.items()
            if c.observed
        }

    def to_json(self) -> dict[str, object]:
        """The books as one JSON object."""
        return self.books() | {"output_files": list(self.output_files)}

    def books(self) -> dict[str, object]:
        """The same, but for the names of the output files, of which there may be millions."""
        return {
            "read": self.read,
            "created": self.created,
            "written": self.written,
            "dropped": self.dropped,
            "quarantined": self.quarantined,
            "lost_parts": self.lost_parts,
            "lost_bytes": self.lost_bytes,
            "errors": [error.to_json() for error in self.errors],
            "output_files": [],
            "run_dir": self.run_dir,
            "wall_s": round(self.wall_s, 3),
            "resumed": self.resumed,
            "already_finished": self.already_finished,
            "balanced": self.balanced,
            "metrics": {stage: dict(sorted(c.counted.items())) for stage, c in self.counts.items() if c.counted},
            "observed": {
                stage: {name: values.to_json() for name, values in own.items()} for stage, own in self.observed.items()
            },
            "efficiency": None if self.efficiency is None else self.efficiency.to_json(),
        }
