"""`FilePartitioningStage`: which files, or parts of files, each task reads.

The partitions are the units of resuming and of output naming, so they depend on the files and the parameters only,
never on the machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.errors import ConfigError, nearest
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.partitions import FilePartitions, whole
from gristmill.stages.io.splitting import Bz2Streams, GzipMembers, Lines, RowGroups, Splitter, WholeFiles
from gristmill.stages.io.tar_members import TarMembers
from gristmill.stages.resources import Resources
from gristmill.storage.file_system import FileStatus, file_system, is_url
from gristmill.storage.paths import FileList, list_files
from gristmill.storage.sizes import parse_size
from gristmill.tasks import EmptyTask, FileGroupTask, FileSlice

DEFAULT_BLOCK_BYTES = 32 * 1024**2
"""A larger file is split where its format allows. A constant: partitions must be the same on every machine."""

_SOME_FILES = 8
SPLITTERS: dict[str, Splitter] = {  # by the names recipes have for them
    "none": WholeFiles(),
    "lines": Lines(),
    "row_groups": RowGroups(),
    "tar_members": TarMembers(),
    "bz2_streams": Bz2Streams(),
    "gzip_members": GzipMembers(),
}


@dataclass(eq=False)
class FilePartitioningStage(ProcessingStage[EmptyTask, FileGroupTask]):
    """List files and group or split them.

    By default each file is one partition, and a file of more than 32 MiB is several if `split` says how: "lines",
    "row_groups", "tar_members", "bz2_streams", or a `Splitter` for another kind of file. With
    `files_per_partition` that many neighbours form one, unsplit. With `blocksize` larger files are split at it and
    smaller neighbours are grouped up to it. `limit` keeps the first partitions only.
    """

    file_paths: str | list[str]
    files_per_partition: int | None = None
    blocksize: int | str | None = None
    file_extensions: list[str] | None = None
    storage_options: Mapping[str, object] | None = None
    limit: int | None = None
    split: Splitter | str = field(default="none", kw_only=True)
    name: str = field(default="file_partitioning", kw_only=True)
    resources = Resources(cpus=0.5)

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
        if not isinstance(self.split, Splitter) and self.split not in SPLITTERS:
            close = nearest(str(self.split), SPLITTERS)
            raise ConfigError(
                f"{self.name}: expected split to be a Splitter or one of {[*SPLITTERS]}; got {self.split!r}{close}"
            )

    @property
    def _splitter(self) -> Splitter:
        return self.split if isinstance(self.split, Splitter) else SPLITTERS[self.split]

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
        """Files to look into before a run, spread over all; on a store only the first: each look costs a request."""
        if "_some_files" not in self.__dict__:
            self._files()
        return list(self.__dict__["_some_files"])

    def _files(self) -> FileList:
        paths = self.file_paths if isinstance(self.file_paths, str) else [str(path) for path in self.file_paths]
        options = self.storage_options
        return self._noted(list_files(paths, extensions=self.file_extensions, storage_options=options, who=self.name))

    def _noted(self, files: FileList) -> FileList:
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
        parts = self._splitter.parts_of(file, block, self.storage_options) if file.size > block else []
        if len(parts) < 2:  # one part is the file
            return [whole(file)]
        return [
            FileSlice(file.path, part.numbers, file_size=file.size, version=file.version, num_bytes=part.num_bytes)
            for part in parts
        ]
