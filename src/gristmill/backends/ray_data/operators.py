"""A plan as operators of Ray Data: one `map_batches` for each group of fused stages.

Rows are packed tasks. Blocks of them move as object references between operators; the driver sees references only, and
drops those of the last operator. Imported by workers, so nothing here may be heavy.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gristmill.backends.delegated.envelope import Envelope
from gristmill.backends.delegated.group_worker import GroupWork, GroupWorker
from gristmill.backends.delegated.registrar_actor import RemoteRegistrar
from gristmill.engine.plan import Group, Plan
from gristmill.stages.base import ProcessingStage

if TYPE_CHECKING:
    import pyarrow as pa

_workers: dict[tuple[str, int], GroupWorker] = {}  # of stateless groups, in a process of Ray that serves many tasks
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Shape:
    """What an operator asks Ray for. `max_actors` is None for a stateless group, which runs as tasks."""

    num_cpus: float
    num_gpus: float
    num_workers: int | None
    max_actors: int | None
    runtime_env: dict[str, object] | None

    def arguments(self) -> dict[str, object]:
        """As `map_batches` takes them."""
        wanted: dict[str, object] = {"num_cpus": self.num_cpus}
        if self.num_gpus:
            wanted["num_gpus"] = self.num_gpus
        if self.runtime_env:
            wanted["runtime_env"] = self.runtime_env
        if self.num_workers is not None:
            wanted["concurrency"] = self.num_workers
        elif self.max_actors is not None:
            wanted["concurrency"] = (1, self.max_actors)
        return wanted


def shapes(plan: Plan, *, cpus: float, gpus: float) -> list[Shape]:
    """What each group asks for on a cluster of this size.

    Every group with actors keeps one at least. Where they do not all fit, each gets a smaller share of the cores: cores
    can be shared, and a pipeline of many stages runs on a small machine. GPUs cannot.
    """
    wanted = sum(group.resources.cpus * (group.num_workers or 1) for group in plan.groups if is_stateful(group))
    # Half a core is left to groups that run as tasks.
    squeeze = min(1.0, max(cpus - 0.5, 0.5) / wanted) if wanted else 1.0
    made = []
    for group in plan.groups:
        need = group.resources
        stateful = is_stateful(group)
        share = round(need.cpus * squeeze, 3) if stateful else min(need.cpus, cpus)
        room = [cpus / need.cpus] if need.cpus else []
        room += [gpus / need.gpus] if need.gpus else []
        most = max(1, int(min(room, default=1))) if stateful else None
        env = group.stages[0].runtime_env
        made.append(Shape(share, need.gpus, group.num_workers, most, dict(env) if env else None))
    return made


def is_stateful(group: Group) -> bool:
    """Whether a worker of the group is more than its code: it has a set-up, a device, or a fixed number of workers."""
    if group.resources.requires_gpu or group.num_workers is not None:
        return True
    return any(
        type(stage).setup is not ProcessingStage.setup
        or type(stage).teardown is not ProcessingStage.teardown
        or bool(stage.ray_stage_spec().get("is_actor_stage"))
        for stage in group.stages
    )


def to_rows(envelopes: Sequence[Envelope]) -> "pa.Table":
    """Envelopes as a block."""
    import pyarrow as pa

    schema = pa.schema(
        {"root": pa.int64(), "item_id": pa.string(), "header": pa.large_binary(), "body": pa.large_binary()}
    )
    return pa.Table.from_arrays(
        [pa.array([envelope[n] for envelope in envelopes], kind.type) for n, kind in enumerate(schema)], schema=schema
    )


def from_rows(rows: "pa.Table") -> list[Envelope]:
    """The inverse of `to_rows`. Bodies are not copied."""
    columns = [rows.column(name) for name in ("root", "item_id", "header", "body")]
    return [
        Envelope(root.as_py(), item_id.as_py(), header.as_py(), body.as_buffer())
        for root, item_id, header, body in zip(*columns, strict=True)
    ]


class ActorOperator:
    """A stateful group: one worker for each actor, set up once."""

    def __init__(self, work: GroupWork, registrar: RemoteRegistrar) -> None:
        self._worker = _make_worker(work, registrar)

    def __call__(self, rows: "pa.Table") -> "Iterator[pa.Table]":
        yield to_rows([])  # an operator must give its columns, even if it drops everything
        for envelope in self._worker.run(from_rows(rows)):
            yield to_rows([envelope])

    def __del__(self) -> None:  # what Ray Data promises to call when it lets an actor go
        worker = getattr(self, "_worker", None)  # there is none if its set-up raised
        if worker is not None:
            worker.teardown()


def run_stateless(rows: "pa.Table", work: GroupWork, registrar: RemoteRegistrar) -> "Iterator[pa.Table]":
    """A stateless group: any process of Ray will do, and it keeps the loaded stages for the next task."""
    key = (work.settings.session, work.index)
    with _one_at_a_time:
        if key not in _workers:
            for other in [known for known in _workers if known[0] != key[0]]:
                del _workers[other]  # of an earlier run
            _workers[key] = _make_worker(work, registrar)
        worker = _workers[key]
        yield to_rows([])
        for envelope in worker.run(from_rows(rows)):
            yield to_rows([envelope])


def _make_worker(work: GroupWork, registrar: RemoteRegistrar) -> GroupWorker:
    import ray

    context: Any = ray.get_runtime_context()
    gpus = tuple(str(number) for number in context.get_accelerator_ids().get("GPU", ()))
    return GroupWorker(work, registrar, node=context.get_node_id(), gpu_ids=gpus)
