"""`DedupInput`: the documents of a deduplication, which are read more than once and must be the same each time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gristmill.deduplication.documents import OF_INDEX, SOURCE_SHIFT, DocumentNumbers
from gristmill.engine.plan import AnyTask
from gristmill.errors import ConfigError
from gristmill.stages.base import CompositeStage
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.text.io.formats import READERS, WRITERS, check_format
from gristmill.storage.sizes import parse_size
from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask


@dataclass(frozen=True)
class DedupInput:
    """Where documents are. A `blocksize` above 32 MiB is taken as 32 MiB: blocks decide about memory only."""

    who: str
    path: str | Sequence[str]
    filetype: str = "jsonl"
    blocksize: int | str | None = None
    file_extensions: Sequence[str] | None = None
    read_kwargs: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        # Documents that stay are written in the format they came in.
        check_format(self.filetype, WRITERS, who=self.who, option="input_filetype")

    def reader(self, fields: Sequence[str] | None = None) -> CompositeStage[EmptyTask, DocumentBatch]:
        """Return a reader of these documents; of the columns in `fields` only, if given."""
        size = None if self.blocksize is None else parse_size(self.blocksize, who=f"{self.who}: input_blocksize")
        options: dict[str, object] = {"blocksize": size if size is not None and size < DEFAULT_BLOCK_BYTES else None}
        if self.file_extensions:
            options["file_extensions"] = list(self.file_extensions)
        reader = READERS[self.filetype]
        options |= reader.options_for(None if fields is None else list(dict.fromkeys(fields)))
        path = self.path if isinstance(self.path, str) else list(self.path)
        return reader(path, read_kwargs=self.read_kwargs, **options)  # type: ignore[arg-type]

    @cached_property
    def _partitions(self) -> Sequence[FileGroupTask]:
        listing = self.reader().decompose()[0]
        assert isinstance(listing, FilePartitioningStage)  # noqa: S101  # what every reader of files begins with
        return listing.partitions()

    @cached_property
    def numbers(self) -> DocumentNumbers:
        """Numbers for the documents, by source partition and position."""
        return DocumentNumbers([task.partition_name for task in self._partitions])

    @property
    def num_bytes(self) -> int:
        """Bytes of all source partitions."""
        return sum(task.nbytes for task in self._partitions)

    def file_of(self, source: int) -> str:
        """The first file of a source partition."""
        return self._partitions[source].data[0]

    def partitions_of(self, numbers: Iterable[int]) -> list[FileGroupTask]:
        """The source partitions some documents are in; those of an index are in none."""
        places = sorted({number >> int(SOURCE_SHIFT) for number in numbers if number < OF_INDEX})
        return [self._partitions[place] for place in places]

    def may_have(self, column: str) -> bool:
        """Whether the first file has a column; True too where that cannot be known."""
        columns = self.reader().decompose()[1].columns()
        return columns is None or column in columns


def given_input(
    who: str, path: str | Sequence[str] | None, initial_tasks: Sequence[AnyTask] | None
) -> str | Sequence[str]:
    """Return the path a workflow was given, or the files of the tasks it was given instead."""
    if initial_tasks is not None:
        return [file for task in initial_tasks if isinstance(task, FileGroupTask) for file in task.data]
    if path is None:
        raise ConfigError(f"{who}: expected input_path or initial_tasks; got neither")
    return path
