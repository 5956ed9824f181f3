"""`FilePartitioningStage`: which files, or parts of files, each task reads.

The partitions are the units of resuming and of output naming, so they depend on the files and the parameters only,
never on the machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.partitions import FilePartitions, whole
from gristmill.storage.file_list import FileList
from gristmill.storage.file_system import FileStatus, file_system, is_url
from gristmill.storage.open_read import open_stream
from gristmill.storage.paths import is_compressed, list_files
from gristmill.storage.sizes import parse_size
from gristmill.tasks import EmptyTask, FileGroupTask, FileSlice

DEFAULT_BLOCK_BYTES = 32 * 1024**2
"""A larger file is split where its format allows. A constant: partitions must be the same on every machine."""

_SOME_FILES = 8
Split = Literal["none", "lines", "row_groups"]


@dataclass(eq=False)
class FilePartitioningStage(ProcessingStage[EmptyTask, FileGroupTask]):
    """List files and group or split them.

    By default each file is one partition, and a file of more than 32 MiB is several if `split` says how. With
    `files_per_partition` that many neighbours form one, unsplit. With `blocksize` larger files are split at it and
    smaller neighbours are grouped up to it. Compressed files are never split. `limit` keeps the first partitions only.
    """

    file_paths: str | list[str]
    files_per_partition: int | None = None
    blocksize: int | str | None = None
    file_extensions: list[str] | None = None
    storage_options: Mapping[str, object] | None = None
    limit: int | None = None
    split: Split = field(default="none", kw_only=True)
    name: str = field(default="file_partitioning", kw_only=True)

    def __post_init__(self) -> None:
        for option in ("files_per_partition", "limit"):
            value = getattr(self, option)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigError(f"{self.name}: expected {option} to be a whole number ≥ 1; got {value!r}")
        if self.files_per_partition is not None and self.blocksize is not None:
            raise ConfigError(
                f"{self.name}: expected files_per_partition or blocksize, not both; "
                f"got {self.files_per_partition!r} and {self.blocksize!r}"
            )
        if self.blocksize is not None:
            parse_size(self.blocksize, who=f"{self.name}: blocksize")

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def process(self, task: EmptyTask) -> list[FileGroupTask]:
        return list(self.partitions())

    def partitions(self) -> FilePartitions:
        """List the files now, and return one task for each partition."""
        files = self._files()
        config: dict[str, object] = {"storage_options": dict(self.storage_options)} if self.storage_options else {}
        return FilePartitions(self.name, files, self._groups(files), config)[: self.limit]

    def input_directories(self) -> list[str]:
        paths = [self.file_paths] if isinstance(self.file_paths, str) else [str(path) for path in self.file_paths]
        return [path for path in paths if file_system(path, self.storage_options).is_directory(path)]

    def first_file(self) -> str:
        """The file a reader may look at to say which columns there are."""
        return self.some_files()[0]

    def some_files(self) -> list[str]:
        """Files to look into before a run, spread over all; of a store only the first: each look costs a request."""
        if "_some_files" not in self.__dict__:
            self._files()
        return list(self.__dict__["_some_files"])

    def _files(self) -> FileList:
        paths = self.file_paths if isinstance(self.file_paths, str) else [str(path) for path in self.file_paths]
        options = self.storage_options
        files = list_files(paths, extensions=self.file_extensions, storage_options=options, who=self.name)
        step = len(files) if is_url(files.paths[0]) else -(-len(files) // _SOME_FILES)
        self.__dict__["_some_files"] = list(files.paths[::step])
        return files

    def _groups(self, files: Sequence[FileStatus]) -> Iterator[tuple[tuple[FileSlice, ...], int | None]]:
        """Yield each partition's slices, and its number where it is one part of a split file."""
        if self.files_per_partition is not None:
            for i in range(0, len(files), self.files_per_partition):
                yield tuple(map(whole, files[i : i + self.files_per_partition])), None
            return
        block = DEFAULT_BLOCK_BYTES if self.blocksize is None else parse_size(self.blocksize)
        group: list[FileSlice] = []
        size = 0
        for file in files:
            entire = whole(file)
            parts = self._parts(file, block)
            if group and (self.blocksize is None or len(parts) > 1 or size + entire.num_bytes > block):
                yield tuple(group), None
                group, size = [], 0
            if len(parts) > 1:
                yield from (((part,), i) for i, part in enumerate(parts))
            else:
                group.append(entire)
                size += entire.num_bytes
        if group:
            yield tuple(group), None

    def _parts(self, file: FileStatus, block: int) -> list[FileSlice]:
        if self.split == "none" or file.size <= block or is_compressed(file.path):
            return [whole(file)]
        if self.split == "row_groups":
            return _row_group_parts(file, block, self.storage_options)
        bounds = [*range(0, file.size, block), file.size]
        return [
            FileSlice(file.path, start, end, file_size=file.size, version=file.version, num_bytes=end - start)
            for start, end in pairwise(bounds)
        ]


def _row_group_parts(file: FileStatus, block: int, options: Mapping[str, object] | None) -> list[FileSlice]:
    """Runs of row groups of at most about one block as stored; a row group is never divided.

    What a group takes of the file is its share of the whole in memory. The exact number is with its columns, and asking
    for those ends the process if the footer is damaged (pyarrow 26: an exception nobody catches).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_stream(file.path, storage_options=options) as stream:
            metadata = pq.read_metadata(stream)
    except (pa.ArrowException, UnicodeDecodeError):
        return [whole(file)]  # damaged: the reader says so, and loses this file only
    except OSError as error:
        if error.errno is not None:
            raise
        return [whole(file)]  # Arrow's own errors have no number
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    total = sum(sizes)
    if total <= 0 or min(sizes) < 0:
        return [whole(file)]
    runs: list[list[int]] = []
    stored = 0
    for i, size in enumerate(sizes):
        share = file.size * size // total
        if not runs or stored + share > block:
            runs.append([])
            stored = 0
        runs[-1].append(i)
        stored += share
    return [
        FileSlice(
            file.path,
            row_groups=tuple(run),
            file_size=file.size,
            version=file.version,
            num_bytes=sum(sizes[i] for i in run),
        )
        for run in runs
    ]
