"""`RunOptions`: what a user says about one run, rather than about the executor it runs on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.engine.policies.quarantine_limit import DEFAULT_LIMIT, QuarantineLimit
from gristmill.storage.file_system import absolute, is_url

if TYPE_CHECKING:  # loaded when the run begins, and workers are starting beside it
    from gristmill.metrics.snapshot import RunSnapshot

Observer = Callable[["RunSnapshot"], None]  # one that has a `snapshot_s` is told about that often


@dataclass(frozen=True)
class RunOptions:
    """What belongs to one run rather than to the executor."""

    checkpoint_path: Path | str | None = None  # a string only where it is a URL
    rejects_path: str | None = None
    limit: QuarantineLimit = DEFAULT_LIMIT  # of documents that may fail
    fresh: bool = False
    retry_quarantined: bool = False  # do again what could not be done, though it is committed
    observer: Observer | None = None
    shared: bool = False  # whether others may read the run directory, as far as the umask lets them

    def __post_init__(self) -> None:
        # A stage may change the working directory, and the next call may come from another one.
        if self.rejects_path is not None:
            object.__setattr__(self, "rejects_path", absolute(self.rejects_path))
        if self.checkpoint_path is not None:
            object.__setattr__(self, "checkpoint_path", _absolute_path(self.checkpoint_path))


def _absolute_path(path: Path | str) -> Path | str:
    full = absolute(str(path))
    return full if is_url(full) else Path(full)
