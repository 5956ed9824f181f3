"""`CATALOG`: every metric a run exposes to Prometheus, as data: name, kind, labels, help, and how a snapshot gives it.

Exposition, reference page, dashboards, alerts and tests are made from this table. A metric is a view of a snapshot and
never a counter of its own, so it cannot disagree with the books. Base units; counters end in `_total`. No series is
that of one worker: a thousand workers would be thousands of series that come and go.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from gristmill.metrics.pace import BOUNDS
from gristmill.metrics.snapshot import SPILLED_BYTES, RunSnapshot, StageSnapshot

Kind = Literal["counter", "gauge", "histogram", "info"]
RUN_LABELS = ("pipeline", "run")  # on every series, before its own
STATES = ("starting", "running", "draining", "finished", "stopped", "failed")
AT_WORK = STATES[:3]
ENDED = STATES[3:]
LOSS_CAUSES = ("memory", "signal", "timeout", "exit", "node", "unknown")
MAX_REASONS = 50  # of a stage: a reason may be made of anything, and each is a series the server keeps for weeks
OTHER_REASONS = "other"


@dataclass(frozen=True)
class Buckets:
    """The value of a histogram: how many observations are at most each of `pace.BOUNDS`, all of them, and their sum."""

    at_most: tuple[int, ...]
    total: float


Value = float | Buckets
Sample = tuple[tuple[str, ...], Value]  # values of the metric's own labels, and the number


@dataclass(frozen=True)
class Metric:
    """One metric. `lasts` says whether it still means something when the run has ended."""

    name: str
    kind: Kind
    help: str
    samples: Callable[[RunSnapshot], Iterable[Sample]]
    labels: tuple[str, ...] = ()
    lasts: bool = True
    most: int | None = None  # different values of the last label for each of the others; the rest together are "other"


def _run(value: Callable[[RunSnapshot], float]) -> Callable[[RunSnapshot], Iterable[Sample]]:
    return lambda snapshot: [((), value(snapshot))]


def _stages(value: Callable[[StageSnapshot], float]) -> Callable[[RunSnapshot], Iterable[Sample]]:
    """One number for each stage."""
    return lambda snapshot: [((stage.name,), value(stage)) for stage in snapshot.stages]


def _groups(value: Callable[[StageSnapshot], float | None]) -> Callable[[RunSnapshot], Iterable[Sample]]:
    """One number for each group of fused stages, under the name of its first: so that a sum counts nothing twice."""
    return lambda snapshot: [
        ((stage.name,), number) for stage in first_of_groups(snapshot) if (number := value(stage)) is not None
    ]


def first_of_groups(snapshot: RunSnapshot) -> list[StageSnapshot]:
    """The first stage of every group: workers, queue and memory are a group's, and each of its stages shows them."""
    first: dict[int, StageSnapshot] = {}
    for stage in snapshot.stages:
        first.setdefault(stage.group, stage)
    return list(first.values())


def _states(snapshot: RunSnapshot) -> Iterator[Sample]:
    for state in STATES:
        yield (state,), float(state == snapshot.state)


def _eta(snapshot: RunSnapshot) -> Iterator[Sample]:
    if snapshot.eta_s is not None:
        yield (), snapshot.eta_s


def _documents(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        yield (stage.name, "out"), stage.documents_out
        yield (stage.name, "dropped"), stage.dropped
        yield (stage.name, "quarantined"), stage.quarantined


def _reasons(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        for reason, documents in sorted(stage.reasons.items()):
            yield (stage.name, reason), documents


def _dropped_bytes(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        for reason, num_bytes in sorted(stage.dropped_bytes.items()):
            yield (stage.name, reason), num_bytes


def _spilled(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        if SPILLED_BYTES in stage.metrics:
            yield (stage.name,), stage.metrics[SPILLED_BYTES]


def _durations(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        if stage.latency:
            yield (stage.name,), Buckets(tuple(accumulate(stage.latency)), stage.latency_s)


def _workers(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in first_of_groups(snapshot):
        # Where another engine schedules, all that is known of a worker is whether it is busy.
        states = stage.worker_states or {"busy": stage.busy_workers, "idle": stage.workers - stage.busy_workers}
        for state, workers in states.items():
            yield (stage.name, state), workers


def _worker_memory(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in first_of_groups(snapshot):
        yield (stage.name, "all"), stage.memory_bytes
        yield (stage.name, "largest"), stage.largest_worker_bytes


def _losses(snapshot: RunSnapshot) -> Iterator[Sample]:
    for stage in snapshot.stages:
        # Starting from zero: a series that begins with the first loss has no increase, and no alert would see it.
        for cause in dict.fromkeys((*LOSS_CAUSES, *sorted(stage.losses))):
            yield (stage.name, cause), stage.losses.get(cause, 0)


def _resource_seconds(snapshot: RunSnapshot) -> Iterator[Sample]:
    for resource, shares in snapshot.resource_seconds.items():
        for share, seconds in shares.items():
            yield (resource, share), seconds


def _limit(snapshot: RunSnapshot) -> Iterator[Sample]:
    if snapshot.memory_limit:
        yield (), snapshot.memory_limit


def _nodes(value: Literal["memory_bytes", "memory_total_bytes", "cpu_s"]) -> Callable[[RunSnapshot], Iterable[Sample]]:
    return lambda snapshot: [((node.node,), getattr(node, value)) for node in snapshot.nodes]


def _gpus(
    value: Literal["memory_bytes", "memory_total_bytes", "utilization"],
) -> Callable[[RunSnapshot], Iterable[Sample]]:
    return lambda snapshot: [
        ((node.node, gpu.name), getattr(gpu, value)) for node in snapshot.nodes for gpu in node.gpus
    ]


_GROUP = "Stages that run fused in one worker are counted together, under the first of them."
_SESSION = "Of this session."

CATALOG = (
    # `version`, `executor` and `fingerprint` are of the process and the plan: the exposition knows them.
    Metric(
        "gristmill_run_info", "info", "Always 1; the labels say what runs.", _run(lambda _: 1.0),
        ("version", "executor", "fingerprint"),
    ),
    Metric("gristmill_run_state", "gauge", "1 for the state the run is in, 0 for the others.", _states, ("state",)),
    Metric(
        "gristmill_run_start_timestamp_seconds", "gauge", "When this session of the run began.",
        _run(lambda snapshot: snapshot.started_at),
    ),
    Metric(
        "gristmill_snapshot_timestamp_seconds", "gauge", "When the numbers of this exposition were taken.",
        _run(lambda snapshot: snapshot.made_at), lasts=False,
    ),
    Metric("gristmill_run_eta_seconds", "gauge", "Seconds until the end, once that can be told.", _eta, lasts=False),
    Metric(
        "gristmill_run_elapsed_seconds", "gauge", "How long this session has taken so far.",
        _run(lambda snapshot: snapshot.elapsed_s),
    ),
    Metric(
        "gristmill_partitions", "gauge", "Source partitions of the whole run.",
        _run(lambda snapshot: snapshot.partitions_total),
    ),
    Metric(
        "gristmill_committed_partitions_total", "counter", "Source partitions that are done and in the ledger.",
        _run(lambda snapshot: snapshot.partitions_done),
    ),
    Metric(
        "gristmill_input_bytes", "gauge", "Bytes of the whole input.", _run(lambda snapshot: snapshot.input_bytes_total)
    ),
    Metric(
        "gristmill_committed_input_bytes_total", "counter", "Bytes of the input that are done and in the ledger.",
        _run(lambda snapshot: snapshot.input_bytes_done),
    ),
    Metric(
        "gristmill_read_documents_total", "counter", "Documents a reader met for the first time.",
        _run(lambda snapshot: snapshot.read),
    ),
    Metric(
        "gristmill_created_documents_total", "counter", "Documents a stage made out of others.",
        _run(lambda snapshot: snapshot.created),
    ),
    Metric(
        "gristmill_written_documents_total", "counter", "Documents that left the pipeline at its end.",
        _run(lambda snapshot: snapshot.written),
    ),
    Metric(
        "gristmill_documents_total", "counter", "Documents that left a stage, by what became of them.", _documents,
        ("stage", "outcome"),
    ),
    Metric(
        "gristmill_dropped_documents_total", "counter",
        f'Documents a stage dropped. At most {MAX_REASONS} reasons of a stage have a name; the rest is "other".',
        _reasons, ("stage", "reason"), most=MAX_REASONS,
    ),
    Metric(
        "gristmill_dropped_bytes_total", "counter",
        f'Bytes of the documents a stage dropped. At most {MAX_REASONS} reasons of a stage have a name.',
        _dropped_bytes, ("stage", "reason"), most=MAX_REASONS,
    ),
    Metric(
        "gristmill_stage_input_bytes_total", "counter", "Bytes of the documents that came to a stage.",
        _stages(lambda stage: stage.bytes_in), ("stage",),
    ),
    Metric(
        "gristmill_stage_output_bytes_total", "counter", "Bytes of the documents that went on from a stage.",
        _stages(lambda stage: stage.bytes_out), ("stage",),
    ),
    Metric(
        "gristmill_spilled_bytes_total", "counter",
        "Bytes an exchange has written to files, for the stages behind it. Absent without one; Ray's own spilling is "
        "among Ray's metrics.",
        _spilled, ("stage",),
    ),
    Metric(
        "gristmill_stage_process_seconds_total", "counter", "Seconds of all workers in a stage's code.",
        _stages(lambda stage: stage.process_s), ("stage",),
    ),
    Metric(
        "gristmill_task_duration_seconds", "histogram", f"Time of one task in one stage. {_SESSION}", _durations,
        ("stage",),
    ),
    Metric(
        "gristmill_stage_queued_tasks", "gauge", f"Tasks that wait for a worker. {_GROUP}",
        _groups(lambda stage: stage.queued_tasks), ("stage",), lasts=False,
    ),
    Metric(
        "gristmill_stage_queue_seconds", "gauge", f"Time the present workers need for what waits. {_GROUP}",
        _groups(lambda stage: stage.queue_s), ("stage",), lasts=False,
    ),
    Metric(
        "gristmill_stage_last_progress_timestamp_seconds", "gauge",
        f"When a task last made progress, or the first began to wait. {_GROUP}",
        _groups(lambda stage: stage.last_progress_at), ("stage",), lasts=False,
    ),
    Metric("gristmill_workers", "gauge", f"Workers by state. {_GROUP}", _workers, ("stage", "state"), lasts=False),
    Metric(
        "gristmill_worker_memory_bytes", "gauge", f"Resident memory of all workers, and of the largest. {_GROUP}",
        _worker_memory, ("stage", "of"), lasts=False,
    ),
    Metric(
        "gristmill_memory_bytes", "gauge", "Memory of the whole run.", _run(lambda snapshot: snapshot.memory_bytes),
        lasts=False,
    ),
    Metric("gristmill_memory_limit_bytes", "gauge", "What the run keeps its memory under.", _limit, lasts=False),
    Metric(
        "gristmill_data_in_flight_bytes", "gauge", "Tasks that wait or are worked on.",
        _run(lambda snapshot: snapshot.data_in_flight_bytes), lasts=False,
    ),
    Metric(
        "gristmill_node_memory_bytes", "gauge", "Memory in use on a machine of the run, by all processes.",
        _nodes("memory_bytes"), ("node",), lasts=False,
    ),
    Metric(
        "gristmill_node_memory_total_bytes", "gauge", "Memory of a machine of the run.", _nodes("memory_total_bytes"),
        ("node",), lasts=False,
    ),
    Metric(
        "gristmill_node_cpu_seconds_total", "counter", "Seconds the CPUs of a machine were busy, since it was started.",
        _nodes("cpu_s"), ("node",), lasts=False,
    ),
    Metric(
        "gristmill_gpu_memory_bytes", "gauge", "Memory in use on a GPU. Absent without NVML.", _gpus("memory_bytes"),
        ("node", "gpu"), lasts=False,
    ),
    Metric(
        "gristmill_gpu_memory_total_bytes", "gauge", "Memory of a GPU. Absent without NVML.",
        _gpus("memory_total_bytes"), ("node", "gpu"), lasts=False,
    ),
    Metric(
        "gristmill_gpu_utilization_ratio", "gauge", "Share of the last moments in which a GPU did anything.",
        _gpus("utilization"), ("node", "gpu"), lasts=False,
    ),
    Metric(
        "gristmill_resource_seconds_total", "counter",
        f"Where the seconds of CPUs and GPUs went; the shares add up to all there were. {_SESSION}",
        _resource_seconds, ("resource", "share"),
    ),
    Metric(
        "gristmill_bound_seconds", "gauge",
        f"The least time the work so far could have taken; divided by the elapsed time, the share of the optimum. "
        f"{_SESSION}",
        _run(lambda snapshot: snapshot.bound_s),
    ),
    Metric(
        "gristmill_task_retries_total", "counter", f"Tasks tried again after they failed in a stage. {_SESSION}",
        _stages(lambda stage: stage.retries), ("stage",),
    ),
    Metric(
        "gristmill_worker_losses_total", "counter", f"Workers that died in a stage, by cause. {_SESSION}", _losses,
        ("stage", "cause"),
    ),
    Metric(
        "gristmill_worker_recycles_total", "counter",
        f"Workers replaced for their age, size or use. {_SESSION} {_GROUP}",
        _groups(lambda stage: stage.recycles), ("stage",),
    ),
)  # fmt: skip

BUCKET_BOUNDS = BOUNDS
METRICS = {metric.name: metric for metric in CATALOG}
