"""`DocumentExtractor`: one record in, one document out, or a reason why there is none."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from gristmill.stages.context import Quarantined


@dataclass(frozen=True)
class Dropped:
    """What `extract` may return for a record that is left out: why, what was measured, and what was asked for."""

    reason: str
    value: object = None
    threshold: str | None = None


Extracted = dict[str, Any] | Dropped | Quarantined | None


class DocumentExtractor(ABC):
    """Subclass it and write `extract`.

    A record that makes `extract` raise, end its process or hang is quarantined alone. `batch_records` records go to a
    worker together, and a call for them that takes longer than `batch_deadline_s` is taken for one that hangs. With
    `is_quick` that worker is the one which reads the file; with `keeps_time` it is so if there are many parts.
    """

    batch_records: ClassVar[int] = 64
    batch_deadline_s: ClassVar[float | None] = 1800.0
    declares_all_columns: ClassVar[bool] = False  # True: a document never has a column beside `output_columns`

    @property
    def is_quick(self) -> bool:
        """Whether a part of a file, some 30 MB, is extracted in seconds: then the worker that reads it extracts it too.

        That saves handing every record to another process. A record that ends the process has its part read again
        from the beginning, and extracted again, some four times: too much for an extractor that takes minutes.
        """
        return False

    @property
    def keeps_time(self) -> bool:
        """Whether `extract` itself gives up on a record that takes too long, so that hardly any ends its process.

        Then the worker that reads a part extracts it too, quick or not, where there are enough parts to keep all cores
        busy: reading would have a core to itself otherwise, and on two cores that is half of the machine.
        """
        return False

    @abstractmethod
    def extract(self, record: dict[str, Any]) -> Extracted:
        """Return the document, or None to leave the record out.

        `Dropped("too_short")` instead of None counts it under that reason, and `Quarantined(error, kind)` puts it
        aside with an error, as raising does, but without the batch being tried again.
        """

    @abstractmethod
    def input_columns(self) -> list[str]:
        """Return the fields of a record that are looked at."""

    @abstractmethod
    def output_columns(self) -> list[str]:
        """Return the columns of a document."""

    def check_ready(self) -> None:
        """Raise MissingDependency or ConfigError if something is missing; called while the plan is made."""

    def setup(self) -> None:
        """Load what is needed; called once in every worker."""
