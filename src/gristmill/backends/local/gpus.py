"""Which GPUs this machine has: what the user declares, else what NVML or `CUDA_VISIBLE_DEVICES` says."""

import importlib
import os

import msgspec

from gristmill.errors import ConfigError

DEFAULT_GPU_MEMORY_GB = 80.0  # of a declared device whose memory nobody told


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
