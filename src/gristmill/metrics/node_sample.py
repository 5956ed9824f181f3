"""`NodeSample`: how one machine of a run is doing, whatever else runs on it."""

import msgspec

SAMPLE_S = 5.0  # between two samples of a machine


class GpuSample(msgspec.Struct, frozen=True):
    """One GPU, as NVML sees it. `utilization` is the share of the last moments in which it did anything."""

    name: str  # its number on the machine
    memory_bytes: int
    memory_total_bytes: int
    utilization: float


class NodeSample(msgspec.Struct, frozen=True):
    """One machine. `cpu_s` are the seconds its CPUs have been busy since it was started: it only ever grows."""

    node: str  # its address or name
    sampled_at: float  # seconds since 1970
    memory_bytes: int  # used: all that could not be had at once
    memory_total_bytes: int
    cpu_s: float
    cpus: int
    gpus: tuple[GpuSample, ...] = ()  # none without NVML
