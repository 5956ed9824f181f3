"""What a stage is told about where it runs, in `setup_on_node` and `setup`."""

from collections.abc import Mapping

import msgspec


class NodeInfo(msgspec.Struct, frozen=True):
    """The machine a worker runs on."""

    node_id: str = "local"


KILLED_FOR_MEMORY = "killed_for_memory"


class WorkerMetadata(msgspec.Struct, frozen=True):
    """The worker itself. `gpu_ids` are what `CUDA_VISIBLE_DEVICES` holds in it.

    `learnt` is what calls of the same stage have told `context.learn` in workers before it. Its `killed_for_memory`
    says how often in a row such workers were killed because memory ran out. `run` is the same for all workers of a run,
    even when it is continued; empty outside a run.
    """

    worker_id: str = ""
    allocation: object | None = None
    gpu_ids: tuple[str, ...] = ()
    learnt: Mapping[str, float] = {}
    run: str = ""
