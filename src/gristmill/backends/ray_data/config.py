"""The options of `RayDataExecutor`."""

from dataclasses import dataclass

from gristmill.backends.base import WATCHDOG_S
from gristmill.errors import ConfigError
from gristmill.storage.sizes import parse_size


@dataclass(frozen=True)
class RayDataConfig:
    """What can be set for a whole run."""

    cpus: float | None = None  # of the cluster that this run may use; all if not given
    object_store_memory: int | str | None = None  # bytes, or "4GB", of tasks between groups at any time
    logging_interval: float | None = None
    ignore_failures: bool = False  # do not stop at `max_quarantined`
    watchdog_s: float = WATCHDOG_S

    def __post_init__(self) -> None:
        if self.cpus is not None and not self.cpus > 0:
            raise ConfigError(f"RayDataExecutor: expected cpus > 0; got {self.cpus!r}")
        for name in ("logging_interval", "watchdog_s"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"RayDataExecutor: expected {name} > 0; got {getattr(self, name)!r}")
        self.store_bytes()

    def store_bytes(self) -> int | None:
        """`object_store_memory` in bytes."""
        given = self.object_store_memory
        return None if given is None else parse_size(given, who="RayDataExecutor: object_store_memory")
