"""What a run looks like at one moment. The terminal, `gristmill status`, the log and the report all read this."""

from dataclasses import dataclass, field, replace

from gristmill.metrics.stage_counts import StageCounts
from gristmill.metrics.tally import Distribution

# Fields of StageCounts that have a place of their own here. Any other appears among the metrics, if it is not zero.
SHOWN = frozenset(
    ("documents_in", "documents_out", "read", "created", "written", "quarantined", "bytes_in", "process_s")
)

SNAPSHOT_S = 0.25  # between two snapshots, for whoever does not say how often it wants them


@dataclass(frozen=True)
class StageSnapshot:
    """One stage. Stages with the same `group` run fused in one process and share workers, queue and memory."""

    name: str
    group: int
    documents_in: int = 0
    documents_out: int = 0
    dropped: int = 0
    quarantined: int = 0
    bytes_in: int = 0
    process_s: float = 0.0  # summed over workers
    workers: int = 0
    busy_workers: int = 0
    queued_tasks: int = 0
    queue_s: float = 0.0  # how long the present workers need for what is queued
    memory_bytes: int = 0
    error: str = ""  # what most of those in quarantine failed by
    metrics: dict[str, float] = field(default_factory=dict)  # what else is counted, by gristmill or the stage's author
    observed: dict[str, dict[str, float]] = field(default_factory=dict)  # name -> figures of a `Distribution`

    def with_counts(self, counts: StageCounts) -> "StageSnapshot":
        """Return it with what is in the books; a stage that only reads or only writes shows that."""
        return replace(
            self,
            documents_in=counts.documents_in or counts.read,
            documents_out=counts.documents_out or counts.written,
            dropped=counts.dropped_total,
            quarantined=counts.quarantined,
            bytes_in=counts.bytes_in,
            process_s=counts.process_s,
            error=counts.commonest_error,
            metrics=counts.numbers(but=SHOWN) | counts.counted,
            observed={name: Distribution(slots).to_json() for name, slots in counts.observed.items()},
        )


@dataclass(frozen=True)
class RunSnapshot:
    """The whole run. `state` is starting, running, draining, finished, stopped or failed."""

    name: str
    state: str
    elapsed_s: float
    partitions_done: int
    partitions_total: int
    read: int
    written: int
    dropped: int
    quarantined: int
    created: int
    input_bytes_done: int
    input_bytes_total: int
    memory_bytes: int
    memory_limit: int
    eta_s: float | None
    stages: tuple[StageSnapshot, ...]
    messages: tuple[str, ...] = ()  # what the watchdog and the engine have to say since the last snapshot
    bound_s: float = 0.0  # the least time what was done so far could have taken
    resource: str = ""  # the scarcest
    shares: dict[str, float] = field(default_factory=dict)  # where its seconds went: they add up to one
