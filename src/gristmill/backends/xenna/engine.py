"""`XennaEngine`: builds the pipeline of a plan and lets Cosmos-Xenna run it, one of its stages for each group.

Cosmos-Xenna is imported here and in the workers, nowhere else; 0.3 and 0.5 agree on the names used here. It
kills its workers when it is done with them, so `teardown` of stages is not run there.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gristmill.backends.delegated.envelope import Envelope
from gristmill.backends.delegated.group_worker import GroupWork, GroupWorker
from gristmill.backends.delegated.ray_cluster import RayCluster
from gristmill.backends.delegated.registrar_actor import RemoteRegistrar
from gristmill.backends.xenna.config import XennaConfig, enough_workers
from gristmill.backends.xenna.leftovers import end_with_parent, ended
from gristmill.engine.plan import Group, Plan
from gristmill.errors import ConfigError, MissingDependency
from gristmill.worker.job import RunSettings

# Xenna asks the dashboard for 40,000 actors, which it refuses unless set up for that: every Ray answers for this many.
API_LIMIT = 10_000
MOST_ROUNDS = 100  # each ends with the death of a worker; a document that kills is found within six
DASHBOARD_S = 30.0  # a cluster that has just been started may take this long to answer
SET_BY_XENNA = (
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
    "RAY_MAX_LIMIT_FROM_API_SERVER",
    "RAY_MAX_LIMIT_FROM_DATA_SOURCE",
)


def import_xenna() -> Any:  # a module without types
    """Return Xenna's interface, or say how to install it."""
    try:
        from cosmos_xenna.pipelines import v1
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"XennaExecutor: expected cosmos_xenna and what it imports; {error.name} is not installed. "
            "Install it with: pip install 'gristmill[xenna]'"
        ) from None
    return v1


def check_dashboard(address: str, patience_s: float = DASHBOARD_S) -> None:
    """Raise ConfigError if the cluster has no dashboard: Xenna asks it for its actors. It is the last to start."""
    from ray.util.state import list_nodes
    from ray.util.state.exception import RayStateApiException

    deadline = time.monotonic() + patience_s
    while True:
        try:
            list_nodes(address=address, limit=1)  # there may be other clusters on this machine
            return
        except (RayStateApiException, OSError) as error:
            if time.monotonic() > deadline:
                raise ConfigError(
                    "XennaExecutor: expected a Ray cluster with its dashboard, which Cosmos-Xenna asks about workers; "
                    f"it does not answer ({type(error).__name__}). Install ray[default], start the head with "
                    "--include-dashboard=true"
                ) from error
        time.sleep(1.0)


@dataclass(frozen=True)
class XennaEngine:
    """One run of one plan."""

    plan: Plan
    settings: RunSettings
    config: XennaConfig
    stage_specs: Sequence[Mapping[str, object]]
    cluster: RayCluster

    def run(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> None:
        """Run all sources through Xenna's stages.

        Xenna gives up when a worker dies. What is left is then given to it again: the registrar knows what is done, and
        handles with care what was under way.
        """
        from ray.exceptions import RayError, RayTaskError

        left = list(sources)
        for _ in range(MOST_ROUNDS):
            try:
                return self._run_round(left, registrar)
            except RayTaskError:  # raised by a worker that lives: nothing would be different next time
                raise
            except RayError as error:
                lost = error
                closed = registrar.closed()
                left = [source for source in left if source.root not in closed]
        raise lost

    def _run_round(self, sources: Sequence[Envelope], registrar: RemoteRegistrar) -> None:
        if not sources:
            return
        xenna = import_xenna()
        works = GroupWork.of_all(self.plan, self.settings, self.config.watchdog_s)
        specs = []
        for group, work, asked in zip(self.plan.groups, works, self.stage_specs, strict=True):
            made = make_stage(xenna, group, work, registrar)
            workers = group.num_workers
            # How many tasks there will be is known before anything runs only where there is one group.
            if len(self.plan.groups) == 1 and workers is None and "num_workers_per_node" not in asked:
                workers = enough_workers(self.config, group, len(sources), self.cluster.node_cpus)
            specs.append(xenna.StageSpec(made, num_workers=workers, **asked))
        with _quiet(), _environment(self.cluster), ended():
            xenna.run_pipeline(xenna.PipelineSpec(list(sources), specs, self._pipeline_config(xenna)))

    def _pipeline_config(self, xenna: Any) -> object:
        quiet = xenna.VerbosityLevel.NONE
        fields = {
            **self.config.pipeline_fields(),
            "return_last_stage_outputs": False,
            "actor_pool_verbosity_level": quiet,
            "monitoring_verbosity_level": quiet,
        }
        if self.config.execution_mode == "batch":
            return xenna.PipelineConfig(execution_mode=xenna.ExecutionMode.BATCH, **fields)
        streaming = xenna.StreamingSpecificSpec(
            autoscale_interval_s=self.config.autoscale_interval_s,
            autoscaler_verbosity_level=quiet,
            executor_verbosity_level=quiet,
        )
        mode = xenna.ExecutionMode.STREAMING
        return xenna.PipelineConfig(execution_mode=mode, mode_specific=streaming, **fields)


def make_stage(xenna: Any, group: Group, work: GroupWork, registrar: RemoteRegistrar) -> object:
    """Return a stage of Xenna that runs a group."""
    need, batch_size = group.resources, group.batch_size * group.lanes

    class GroupStage(xenna.Stage):  # type: ignore[misc]  # without types
        @property
        def stage_batch_size(self) -> int:
            return batch_size

        @property
        def required_resources(self) -> object:
            return xenna.Resources(cpus=need.cpus, gpus=need.gpus)

        def setup(self, worker_metadata: Any) -> None:
            import ray

            end_with_parent()
            gpus = tuple(str(gpu.index) for gpu in worker_metadata.allocation.gpus)
            self.worker = GroupWorker(work, registrar, node=ray.get_runtime_context().get_node_id(), gpu_ids=gpus)

        def process_data(self, in_data: list[Envelope]) -> list[Envelope]:
            return list(self.worker.run(in_data))

    GroupStage.__name__ = group.name.replace("…", "_to_")  # what Xenna shows; it writes ASCII only
    return GroupStage()


@contextlib.contextmanager
def _environment(cluster: RayCluster) -> Iterator[None]:
    """Restore afterwards the variables Xenna sets for starting Ray, and the one it finds the dashboard by."""
    from cosmos_xenna.ray_utils import cluster as xenna_cluster

    xenna_cluster.API_LIMIT = API_LIMIT
    names = (*SET_BY_XENNA, "RAY_ADDRESS")
    before = {name: os.environ.get(name) for name in names}
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Xenna, which prints pages about itself; what a run has to say is in its books."""
    from loguru import logger

    logger.disable("cosmos_xenna")
    try:
        yield
    finally:
        logger.enable("cosmos_xenna")
