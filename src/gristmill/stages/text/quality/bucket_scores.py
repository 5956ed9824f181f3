"""`BucketScores`: from a score to a bucket, 0 to 19, and from there to a level: low, medium or high.

Where one bucket ends and the next begins is found from the scores of the whole dataset, exactly, or given. What was
found is left in the run directory as `buckets.json`: with it a later delivery of data is judged by the first one's
edges, and without waiting for all scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from gristmill.errors import ConfigError, nearest
from gristmill.kernels.order_statistics import bucket_numbers, edge_ranks, order_statistics
from gristmill.stages.base import AnyStage, CompositeStage, ProcessingStage
from gristmill.stages.exchange.barrier import Barrier, Findings, Rows
from gristmill.stages.text.quality.scores import (
    CheckScores,
    Numbers,
    known_scores,
    load_entry,
    nullable,
    scores_of,
    sorted_numbers,
)
from gristmill.tasks import DocumentBatch, Task
from gristmill.tasks.text_columns import from_texts

Levels = Mapping[str, tuple[int, int]]

FILE = "buckets.json"
UNSCORED = "unscored"  # the level of a document without a score
LEVELS: Levels = {"low": (0, 11), "medium": (12, 17), "high": (18, 20)}
_BY = ("quantile", "range")


@dataclass(eq=False)
class BucketScores(CompositeStage[DocumentBatch, DocumentBatch]):
    """Add the bucket of a score, from 0 for the lowest to `buckets` - 1, and the level of the bucket.

    By "quantile" buckets hold equally many documents; by "range" they are equally wide, from the lowest finite score to
    the highest. Equal scores are in the same bucket: if they fill several, in the middle one. A missing score and NaN
    give a null and the level "unscored". No document is dropped.

    `edges` are the scores at which buckets 1, 2 and so on begin, or the path of the `buckets.json` of an earlier run; a
    score below or above all that was seen then is in the first or the last bucket. Without edges the pipeline waits
    here until all documents have their scores. `levels` gives the first and the last bucket of each level; a last level
    may end beyond the last bucket. With `level_field=None` no level is added.
    """

    score_field: str
    output_field: str = "bucketed_results"
    buckets: int = 20
    by: Literal["quantile", "range"] = "quantile"
    edges: str | Sequence[float] | None = None
    levels: Levels = field(default_factory=lambda: dict(LEVELS))
    level_field: str | None = "quality_level"
    name: str = field(default="bucket_scores", kw_only=True)

    def __post_init__(self) -> None:
        if self.by not in _BY:
            raise ConfigError(f"{self.name}: expected by to be one of {_BY}; got {self.by!r}{nearest(self.by, _BY)}")
        if self.buckets < 1:
            raise ConfigError(f"{self.name}: expected buckets ≥ 1; got {self.buckets!r}")
        if self.score_field in (self.output_field, self.level_field) or self.output_field == self.level_field:
            names = self.score_field, self.output_field, self.level_field
            raise ConfigError(f"{self.name}: expected three columns; score, bucket and level are {names}")
        if self.level_field is not None:
            level_of_buckets(self.levels, self.buckets, who=self.name)

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        levels = {name: (first, last) for name, (first, last) in self.levels.items()}
        columns = self.score_field, self.output_field, self.level_field
        assign = AssignBuckets(*columns, self.buckets, self.by, self._given(), levels, name=self.name)
        if assign.edges is not None:
            return [assign]  # type: ignore[list-item]  # stages are invariant in their tasks
        return [CheckScores([self.score_field]), Barrier(), assign]  # type: ignore[list-item]

    def _given(self) -> list[float] | None:
        """The edges, if they need not be found."""
        if self.buckets == 1:
            return []
        if self.edges is None:
            return None
        edges: object = self.edges
        if isinstance(edges, str):
            entry = load_entry(edges, self.output_field, who=self.name, wanted="edges")
            edges = entry.get("edges")
            if entry.get("buckets") != self.buckets:
                raise ConfigError(
                    f"{self.name}: expected {self.buckets} buckets, or buckets={entry.get('buckets')!r} as in "
                    f"{self.edges!r}; got other edges"
                )
        return sorted_numbers(edges, self.buckets - 1, who=self.name, what="edges")


def level_of_buckets(levels: Levels, buckets: int, *, who: str) -> list[str]:
    """Return the level of each bucket; raise ConfigError unless every bucket has one, and every level a bucket."""
    found: list[list[str]] = [[] for _ in range(buckets)]
    for name, bounds in levels.items():
        if name == UNSCORED:
            raise ConfigError(f"{who}: expected another name for a level; {name!r} is for documents without a score")
        try:
            first, last = bounds
            own = range(max(0, first), min(last, buckets - 1) + 1)
        except (TypeError, ValueError):
            said = f"expected the first and the last bucket of level {name!r}; got {bounds!r}"
            raise ConfigError(f"{who}: {said}") from None
        if not own:
            raise ConfigError(
                f"{who}: expected each level to have some of the buckets 0 to {buckets - 1}; {name!r} is {bounds}. "
                "Give levels for this number of buckets"
            )
        for bucket in own:
            found[bucket].append(name)
    for bucket, names in enumerate(found):
        if len(names) != 1:
            raise ConfigError(f"{who}: expected one level for bucket {bucket}; got {names or 'none'}")
    return [names[0] for names in found]


@dataclass(eq=False)
class AssignBuckets(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Look each score up among the edges. Without edges it has to look back at all scores first."""

    adds_only_declared_columns: ClassVar[bool] = True

    score_field: str
    output_field: str
    level_field: str | None
    buckets: int
    by: str
    edges: list[float] | None
    levels: dict[str, tuple[int, int]]
    name: str = field(default="bucket_scores", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.score_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.output_field, *([self.level_field] if self.level_field else [])]

    def known_values(self) -> Mapping[str, Sequence[str]]:
        return {self.level_field: [*self.levels, UNSCORED]} if self.level_field else {}

    def look_back(self, rows: Rows, findings: Findings) -> AnyStage:
        """Return a copy that knows the edges, and write them down."""
        if self.edges is not None:
            return self
        total, edges = self._found(rows)
        settings = {"score_field": self.score_field, "by": self.by, "buckets": self.buckets}
        findings.save(FILE, self.output_field, {**settings, "documents_with_score": total, "edges": edges})
        informed = self.with_()
        informed.__dict__["edges"] = edges
        return informed

    def _found(self, rows: Rows) -> tuple[int, list[float]]:
        def chunks() -> Iterator[Numbers]:
            return known_scores(rows, self.score_field, who=self.stage_name())

        if self.by == "quantile":
            total, edges = order_statistics(chunks, lambda total: edge_ranks(total, self.buckets))
            return total, edges.tolist()
        total, low, high = 0, np.inf, -np.inf
        for scores in chunks():
            total += len(scores)
            finite = scores[np.isfinite(scores)]
            if len(finite):
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        # Not low + step * width: the difference of two doubles may be too large for a third.
        steps = np.arange(1, self.buckets) / self.buckets
        return total, (low * (1 - steps) + high * steps).tolist() if low <= high else []

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if self.edges is None:
            raise ConfigError(f"{self.stage_name()}: expected edges; a pipeline finds them, a stage by itself cannot")
        scores = scores_of(task, self.score_field, who=self.stage_name())
        missing = np.isnan(scores)
        buckets = bucket_numbers(np.where(missing, 0.0, scores), np.array(self.edges))
        task = task.with_column(self.output_field, nullable(buckets, missing))
        if self.level_field is None:
            return task
        names = [*level_of_buckets(self.levels, self.buckets, who=self.stage_name()), UNSCORED]
        places = np.where(missing, self.buckets, buckets)
        for level in dict.fromkeys(names):
            number = int(sum(np.count_nonzero(places == place) for place, name in enumerate(names) if name == level))
            if number:
                self.context.count(f"level {level}", number)
        return task.with_column(self.level_field, from_texts([names[place] for place in places.tolist()]))
