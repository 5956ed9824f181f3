"""`RayDataEngine`: builds the dataset of a plan and lets Ray Data stream it."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gristmill.backends.delegated.envelope import Envelope
from gristmill.backends.delegated.group_worker import GroupWork
from gristmill.backends.delegated.registrar_actor import RemoteRegistrar
from gristmill.backends.ray_data.config import RayDataConfig
from gristmill.backends.ray_data.operators import ActorOperator, Shape, run_stateless, to_rows
from gristmill.engine.plan import Plan
from gristmill.worker.job import RunSettings

MOST_BLOCKS = 10_000  # of sources: each costs the driver a few kilobytes and a millisecond


@dataclass(frozen=True)
class RayDataEngine:
    """One run of one plan."""

    plan: Plan
    settings: RunSettings
    shapes: Sequence[Shape]
    config: RayDataConfig
    avoid: str | None  # a node that is to do no work

    def run(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> None:
        """Stream all sources through the operators."""
        if not sources:
            return
        import ray.data

        with _quiet(), ray.data.DataContext.current(self._context()):
            for _ in self._dataset(sources, registrar).iter_internal_ref_bundles():
                pass  # nothing comes out at the end: receipts went to the registrar

    def _dataset(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> Any:
        import ray.data

        step = -(-len(sources) // MOST_BLOCKS)
        blocks = [to_rows(sources[start : start + step]) for start in range(0, len(sources), step)]
        dataset: Any = ray.data.from_arrow(blocks)
        works = GroupWork.of_all(self.plan, self.settings, self.config.watchdog_s)
        for group, work, shape in zip(self.plan.groups, works, self.shapes, strict=True):
            at_once = group.batch_size * group.lanes
            common: dict[str, Any] = {"batch_size": at_once, "batch_format": "pyarrow", **shape.arguments()}
            if self.avoid:
                common["label_selector"] = {"ray.io/node-id": f"!{self.avoid}"}
            if shape.max_actors is None:
                arguments = {"work": work, "registrar": registrar}
                dataset = dataset.map_batches(run_stateless, fn_kwargs=arguments, **common)
            else:
                dataset = dataset.map_batches(ActorOperator, fn_constructor_args=(work, registrar), **common)
        return dataset

    def _context(self) -> Any:
        """Settings of Ray Data for this run; those of the process stay as they are."""
        from ray.data import DataContext, ExecutionResources

        context: Any = DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        limits = {"cpu": self.config.cpus, "object_store_memory": self.config.store_bytes()}
        given = {name: value for name, value in limits.items() if value is not None}
        if given:
            context.execution_options.resource_limits = ExecutionResources(**given)
        return context


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Ray Data from writing to the terminal; what a run has to say is in its books."""
    logger = logging.getLogger("ray.data")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
