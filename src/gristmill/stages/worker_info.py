"""What a stage is told about where it runs, in `setup_on_node` and `setup`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NodeInfo:
    """The machine a worker runs on."""

    node_id: str = "local"


@dataclass(frozen=True)
class WorkerMetadata:
    """The worker itself. `gpu_ids` are what `CUDA_VISIBLE_DEVICES` holds in it."""

    worker_id: str = ""
    allocation: object | None = None
    gpu_ids: tuple[str, ...] = ()
