"""`Resources`: what one worker of a stage occupies while it runs."""

from dataclasses import dataclass, field

from gristmill.errors import ConfigError


@dataclass(frozen=True)
class Resources:
    """CPUs, a share of a GPU (`gpus=0.25`) or whole ones (`gpus=2`), or memory on one GPU (`gpu_memory_gb=10`)."""

    cpus: float = 1.0
    gpu_memory_gb: float = 0.0
    gpus: float = 0.0
    requires_gpu: bool = field(init=False, repr=False, compare=False)  # asked at every event of a run

    def __post_init__(self) -> None:
        for name in ("cpus", "gpu_memory_gb", "gpus"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or value < 0:
                raise ConfigError(f"Resources: expected {name} to be a number ≥ 0; got {value!r}")
        if self.gpus and self.gpu_memory_gb:
            raise ConfigError(
                "Resources: expected gpus or gpu_memory_gb, not both; "
                f"got gpus={self.gpus!r} and gpu_memory_gb={self.gpu_memory_gb!r}"
            )
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ConfigError(f"Resources: expected gpus to be a share of one GPU or a whole number; got {self.gpus!r}")
        object.__setattr__(self, "requires_gpu", self.gpus > 0 or self.gpu_memory_gb > 0)
