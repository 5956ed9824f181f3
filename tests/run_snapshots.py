"""Snapshots of runs that need no run: any number of stages, workers, machines and GPUs."""

import msgspec

from gristmill.metrics.node_sample import GpuSample, NodeSample
from gristmill.metrics.pace import NUM_SLOTS
from gristmill.metrics.snapshot import WORKER_STATES, RunSnapshot, StageSnapshot

STARTED_AT = 1_700_000_000.0
GB = 1 << 30


def stage_snapshot(number=0, *, workers=4, reasons=None, **fields):
    reasons = {"word_count": 10 + number, "symbols": 5} if reasons is None else reasons
    dropped = sum(reasons.values())
    known = {
        "name": f"stage_{number}",
        "group": number,
        "documents_in": 1_000 + dropped,
        "documents_out": 1_000 - number,
        "dropped": dropped,
        "quarantined": number,
        "bytes_in": 1 << 20,
        "bytes_out": 1 << 19,
        "dropped_bytes": dict.fromkeys(reasons, 1 << 10),
        "metrics": {"spilled_bytes": 1 << 18},
        "process_s": 12.5,
        "workers": workers,
        "busy_workers": workers // 2,
        "queued_tasks": 3,
        "queue_s": 1.5,
        "memory_bytes": GB,
        "reasons": reasons,
        "worker_states": dict.fromkeys(WORKER_STATES, 0) | {"busy": workers // 2, "idle": workers - workers // 2},
        "largest_worker_bytes": GB // 2,
        "last_progress_at": STARTED_AT + 50,
        "latency": tuple(range(1, NUM_SLOTS + 1)),
        "latency_s": 99.5,
        "retries": 2,
        "losses": {"memory": 1},
        "recycles": 1,
    }
    return StageSnapshot(**{**known, **fields})


def run_snapshot(stages=(), *, machines=0, gpus=0, **fields):
    nodes = tuple(
        NodeSample(
            f"node-{machine}",
            STARTED_AT + 60,
            memory_bytes=10 * GB,
            memory_total_bytes=64 * GB,
            cpu_s=1_000.0,
            cpus=16,
            gpus=tuple(GpuSample(str(gpu), 20 * GB, 80 * GB, 0.75) for gpu in range(gpus)),
        )
        for machine in range(machines)
    )
    known = {
        "name": "curate",
        "state": "running",
        "elapsed_s": 60.0,
        "partitions_done": 3,
        "partitions_total": 10,
        "read": 1_015,
        "written": 1_000,
        "dropped": 15,
        "quarantined": 0,
        "created": 0,
        "input_bytes_done": 300,
        "input_bytes_total": 1_000,
        "memory_bytes": 2 * GB,
        "memory_limit": 8 * GB,
        "eta_s": 140.0,
        "stages": tuple(stages) or (stage_snapshot(),),
        "bound_s": 45.0,
        "made_at": STARTED_AT + 60,
        "started_at": STARTED_AT,
        "fingerprint": "0123456789abcdef",
        "resource_seconds": {"cpu": {"useful": 80.0, "starved": 40.0}}
        | ({"gpu": {"useful": 30.0, "starved": 30.0}} if gpus else {}),
        "data_in_flight_bytes": 1 << 20,
        "nodes": nodes,
    }
    return RunSnapshot(**{**known, **fields})


def large_snapshot():
    """Forty stages, a thousand workers, 1,024 GPUs."""
    return run_snapshot([stage_snapshot(number, workers=25) for number in range(40)], machines=128, gpus=8)


def with_state(snapshot, state):
    return msgspec.structs.replace(snapshot, state=state)
