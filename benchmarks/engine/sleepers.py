"""Runs a simulation's spec for real: on `LocalExecutor`, with stages that sleep as long as the spec says.

A sleeping worker takes no processor, so a machine of two cores can pretend to have thirty-two, and a GPU. Items draw
their times from the same generator as in virtual time, so both meet the same work.
"""

import time
from dataclasses import dataclass, field

from gristmill.backends.base import BaseExecutor
from gristmill.backends.local import LocalExecutor
from gristmill.backends.simulated.chance import Chance
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.stages.base import ProcessingStage
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import EmptyTask


@dataclass(kw_only=True)
class Sleeper(ProcessingStage[EmptyTask, EmptyTask]):
    """One stage of a spec."""

    spec: SimulationSpec
    group: int
    name: str = ""
    fusible = False
    _setup_at: float = field(default=0.0, init=False)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._setup_at = time.time()
        time.sleep(self.spec.stages[self.group].setup_s)
        self._chance = Chance(self.spec)

    def process(self, task: EmptyTask) -> EmptyTask:
        began = time.time()
        time.sleep(self._chance.service_s(self.group, task._metadata["item"]))
        # Who did it and when: what a row wants to know of a run.
        task._metadata[self.name] = (self._setup_at, began, time.time())
        return task


def run_for_real(
    spec: SimulationSpec, *, checkpoint_path: str | None = None, executor: BaseExecutor | None = None
) -> RunResult:
    """Run a spec of one node and no faults; with a path, what was measured is left there.

    Another executor than the local one has to have the resources of the spec.
    """
    (node,) = spec.nodes
    stages = [
        Sleeper(spec=spec, group=i).with_(
            name=stage.name, resources=stage.resources, num_workers=stage.num_workers, batch_size=stage.batch_size
        )
        for i, stage in enumerate(spec.stages)
    ]
    tasks = []
    for i in range(spec.items):
        task = EmptyTask()
        task._metadata["item"] = f"item-{i:06d}"
        tasks.append(task)
    executor = executor or LocalExecutor(
        num_workers=int(node.cpus),
        gpus=node.gpus,
        gpu_memory_gb=node.gpu_memory_gb,
        autoscale_interval_s=spec.rescale_interval_s,
    )
    pipeline = Pipeline("sleepers", stages=stages)
    return pipeline.run(executor, initial_tasks=tasks, checkpoint_path=checkpoint_path)
