"""What all readers of files share: the parameters, and that listing files comes before reading them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gristmill.errors import ConfigError
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.file_partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage, Split
from gristmill.stages.text.io.kwargs import check_kwargs, storage_options
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage
from gristmill.storage.sizes import parse_size
from gristmill.tasks import DocumentBatch, EmptyTask, Task


@dataclass(eq=False)
class _FileReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read files as documents. Subclasses say how a file is split and which stage reads the parts.

    A document larger than `max_document_bytes` goes to quarantine. If it is not given, that is a quarter of the
    `memory_limit` given to the executor, or 1 GiB if that is not given either.
    """

    split: ClassVar[Split] = "none"
    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options"})
    limits_documents: ClassVar[bool] = True  # whether it can pass over a document that is too large

    file_paths: str | list[str]
    files_per_partition: int | None = None
    blocksize: int | str | None = None
    fields: list[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    task_type: Literal["document"] = "document"
    file_extensions: list[str] = field(default_factory=list)
    max_document_bytes: int | str | None = field(default=None, kw_only=True)
    _generate_ids: bool = False
    _assign_ids: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        check_kwargs(self.name, "read_kwargs", self.read_kwargs, self.known_kwargs)
        if self.task_type != "document":
            raise ConfigError(f"{self.name}: expected task_type 'document'; got {self.task_type!r}")
        if self._generate_ids or self._assign_ids:
            raise ConfigError(
                f"{self.name}: expected _generate_ids and _assign_ids to be False; got {self._generate_ids!r} and "
                f"{self._assign_ids!r}. The stage AddId gives ids, and deduplication numbers documents itself"
            )
        if self.max_document_bytes is not None:
            parse_size(self.max_document_bytes, who=f"{self.name}: max_document_bytes")
            if not self.limits_documents:
                raise ConfigError(
                    f"{self.name}: expected no max_document_bytes, for rows of this format come a record batch or a "
                    f"block at a time; got {self.max_document_bytes!r}"
                )
        self._partitioning()  # what is wrong with the parameters is said here, not when the pipeline runs

    @property
    def block_bytes(self) -> int:
        return DEFAULT_BLOCK_BYTES if self.blocksize is None else parse_size(self.blocksize)

    def _partitioning(self) -> FilePartitioningStage:
        return FilePartitioningStage(
            self.file_paths,
            files_per_partition=self.files_per_partition,
            blocksize=self.blocksize,
            file_extensions=self.file_extensions,
            storage_options=storage_options(self.read_kwargs),
            split=self.split,
        )

    def _reading(self) -> _ReadingStage:
        raise NotImplementedError

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        reading = self._reading()
        reading.max_document_bytes = self.max_document_bytes
        reading._partitioning = self._partitioning()
        return [reading._partitioning, reading]  # type: ignore[list-item]  # stages are invariant in their tasks
