"""`LocalExecutor`: all cores of this machine, and its GPUs, with nothing but worker processes."""

import contextlib
import copy
import importlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from gristmill.backends.base import WATCHDOG_S, BaseExecutor
from gristmill.backends.local.launch import Server, launch
from gristmill.engine.plan import Group, Plan
from gristmill.engine.policies.packing import share_of_gpu
from gristmill.errors import ConfigError
from gristmill.runs.books import RunResult
from gristmill.runs.user import RunOptions, watched
from gristmill.storage.sizes import parse_size

# Which GPUs this machine has: what the user declares, else what NVML or `CUDA_VISIBLE_DEVICES` says.

DEFAULT_GPU_MEMORY_GB = 80.0  # of a declared device if its memory is not given


class Gpu(msgspec.Struct, frozen=True):
    """One device. `name` goes into CUDA_VISIBLE_DEVICES."""

    name: str
    memory_gb: float


def find_gpus(declared: int | None, memory_gb: float | None) -> tuple[Gpu, ...]:
    """Return the GPUs to use; `declared` devices need not exist, so that plans can be tried without them."""
    if declared is not None:
        if declared < 0:
            raise ConfigError(f"LocalExecutor: expected gpus ≥ 0; got {declared!r}")
        return tuple(Gpu(str(i), memory_gb or DEFAULT_GPU_MEMORY_GB) for i in range(declared))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = None if visible is None else [name for name in visible.split(",") if name]
    found = _from_nvml()
    if names is not None:
        found = tuple(
            Gpu(name, found[int(name)].memory_gb) for name in names if name.isdigit() and int(name) < len(found)
        )
    return tuple(Gpu(gpu.name, memory_gb or gpu.memory_gb) for gpu in found)


def _from_nvml() -> tuple[Gpu, ...]:
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return ()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:  # no driver, no device: a machine without GPUs
        return ()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return tuple(Gpu(str(i), nvml.nvmlDeviceGetMemoryInfo(h).total / 1e9) for i, h in enumerate(handles))
    finally:
        nvml.nvmlShutdown()


@dataclass(frozen=True)
class LocalExecutor(BaseExecutor):
    """Runs a plan in worker processes on this machine.

    `num_workers`    processes at a time; all cores if not given; 0 runs everything in this process, for a debugger
    `memory_limit`   bytes, or "4GB", for all processes together, this one included; 80 % of what is free if not given
    `gpus`, `gpu_memory_gb`   devices to use, if they cannot be detected or are only pretended
    `execution_mode` "streaming", or "batch": stage after stage, for comparison
    `autoscale_interval_s`   seconds between rebalancings
    `logging_interval`   seconds between lines of metrics.jsonl; if not given, 1, and 1/600 of a long run
    `ignore_failures`   do not stop at `max_quarantined`
    `worker_max_lifetime_m`, `worker_restart_interval_m`   replace workers older than this, at this interval
    `worker_max_tasks`   replace workers that have done about this many tasks: for libraries that grow with every task
    `event_log`      record what `gristmill replay` needs in the run directory, if the run has one. On by default: it
                     costs 1 µs an event, and once it is needed it is too late to turn it on. Off for billions of tiny
                     tasks, as it takes 45 bytes an event on disk
    `durable`        wait until a file is on disk before it counts. Without it, what a machine that stops has not
                     written is found and done again when the run is continued (docs/guide/runs-and-resume.md)
    `watchdog_s`     seconds anything (planning, a set-up, a task, an end) may take before it is named
    """

    num_workers: int | None = None
    memory_limit: int | str | None = None
    gpus: int | None = None
    gpu_memory_gb: float | None = None
    execution_mode: Literal["streaming", "batch"] = "streaming"
    autoscale_interval_s: float = 1.0
    logging_interval: float | None = None
    ignore_failures: bool = False
    worker_max_lifetime_m: float | None = None
    worker_restart_interval_m: float = 1.0
    worker_max_tasks: int | None = None
    event_log: bool = True
    durable: bool = False
    watchdog_s: float = WATCHDOG_S
    _server: Server | None = field(default=None, init=False, repr=False, compare=False)  # set by `kept_ready`

    def __post_init__(self) -> None:
        workers: object = self.num_workers
        if workers is not None and (not isinstance(workers, int) or workers < 0):
            raise ConfigError(f"LocalExecutor: expected num_workers to be a whole number ≥ 0; got {workers!r}")
        if self.execution_mode not in ("streaming", "batch"):
            raise ConfigError(
                f'LocalExecutor: expected execution_mode "streaming" or "batch"; got {self.execution_mode!r}'
            )
        if self.memory_limit is not None:
            parse_size(self.memory_limit, who="LocalExecutor: memory_limit")
        for name in ("gpu_memory_gb", "worker_max_lifetime_m", "worker_max_tasks", "watchdog_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"LocalExecutor: expected {name} > 0; got {value!r}")

    def check(self, plan: Plan) -> None:
        gpus = find_gpus(self.gpus, self.gpu_memory_gb)
        for group in plan.groups:
            _check_gpus(group, gpus)
            # CPUs are compressible: a stage that asks for more than there are runs alone, only slower.

    def has_gpu(self) -> bool:
        return bool(find_gpus(self.gpus, self.gpu_memory_gb))

    @contextlib.contextmanager
    def kept_ready(self, imports: Sequence[str] = ()) -> Iterator[BaseExecutor]:
        """Yield an executor whose runs share a fork server: starting one takes 0.4 s of a core, forking it 5 ms."""
        if self.num_workers == 0 or self._server is not None:
            yield self
            return
        server = launch(imports)
        server.is_kept = True
        ready = copy.copy(self)
        object.__setattr__(ready, "_server", server)  # frozen for everyone else
        try:
            yield ready
        finally:
            server.close()

    def execute(self, plan: Plan, options: RunOptions) -> RunResult:
        started = time.monotonic()
        server = None if self.num_workers == 0 else self._server or launch()
        try:
            # Imported here so that this process and the fork server import at the same time: it saves every run 80 ms.
            from gristmill.backends.local.run import LocalRun

            run = LocalRun(self, plan, options, server)
            with watched(f"the run of {plan.name!r} has been held up for", self.watchdog_s):
                try:
                    result = run.execute()
                finally:
                    run.close()
        finally:
            if server is not None and not server.is_kept:
                server.close()
        result.wall_s = time.monotonic() - started
        return result

    def cpus(self) -> int:
        """How many CPUs workers may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_gpus(group: Group, gpus: tuple[Gpu, ...]) -> None:
    need = group.resources
    if not need.requires_gpu:
        return
    if need.gpus > 1:
        fits = need.gpus <= len(gpus)
    else:
        fits = any(share_of_gpu(need, gpu.memory_gb) is not None for gpu in gpus)
    if not fits:
        wanted = f"{need.gpus:g} GPUs" if need.gpus else f"{need.gpu_memory_gb:g} GB of GPU memory"
        have = ", ".join(f"GPU {gpu.name} with {gpu.memory_gb:g} GB" for gpu in gpus) or "no GPU"
        raise ConfigError(
            f"{group.name}: expected {wanted} for a worker; got {have}. "
            "LocalExecutor(gpus=..., gpu_memory_gb=...) declares devices that cannot be detected."
        )
