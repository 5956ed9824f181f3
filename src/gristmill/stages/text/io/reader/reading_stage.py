"""What the stages behind the readers share: which columns they give, before anything is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.errors import GristmillError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.io.kwargs import storage_options
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import DocumentBatch, FileGroupTask


@dataclass(eq=False)
class _ReadingStage(ProcessingStage[FileGroupTask, DocumentBatch]):
    """Read files, or parts of files, as documents with these fields."""

    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None

    _partitioning: FilePartitioningStage | None = field(default=None, init=False, repr=False)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields or [])

    def columns(self) -> list[str] | None:
        """The fields asked for, or the columns of the first file; None where that cannot be told."""
        if self.fields is not None:
            return list(self.fields)
        if self._partitioning is None:
            return None
        try:
            return self._columns_of(self._partitioning.first_file(), storage_options(self.read_kwargs)) or None
        except GristmillError:
            return None

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        raise NotImplementedError
