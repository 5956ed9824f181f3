"""`FilePartitioningStage`: which files, or parts of files, each task reads, and what the partition is called.

The partitions are the units of resuming and of output naming, so they depend on the files and the parameters only,
never on the machine. A name is readable, unique, and the same in every run over the same files. It becomes the name of
an output file, so it never has a slash, never hides the file (. or _ in front) and never grows beyond what file systems
take.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from gristmill.errors import ConfigError
from gristmill.secrets import HIDDEN, without_url_secrets
from gristmill.stages.base import ProcessingStage
from gristmill.storage.file_system import FileStatus, file_system, is_url
from gristmill.storage.open_read import open_stream
from gristmill.storage.paths import COMPRESSED, is_compressed, list_files
from gristmill.storage.sizes import parse_size
from gristmill.tasks import EmptyTask, FileGroupTask, FileSlice

DEFAULT_BLOCK_BYTES = 32 * 1024**2
"""A larger file is split where its format allows. A constant: partitions must be the same on every machine."""

COMPRESSION_RATIO = 4  # what gzip and zstd typically make of text; for scheduling only

_SOME_FILES = 8
_MAX_CHARS = 180  # 255 bytes is the usual limit; suffixes and non-ASCII characters need room
_UNSAFE = re.compile(r'[\x00-\x1f\\:*?"<>|]')
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
        return self.partitions()

    def partitions(self) -> list[FileGroupTask]:
        """List the files now, and return one task for each partition."""
        files = self._files()
        groups = list(self._groups(files))
        suffixes = [_suffix(slices, position) for slices, position in groups]
        names = partition_names([slices[0].path for slices, _ in groups], [f.path for f in files], suffixes)
        tasks = [self._task(slices, name) for (slices, _), name in zip(groups, names, strict=True)]
        return tasks[: self.limit]

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

    def _files(self) -> list[FileStatus]:
        paths = self.file_paths if isinstance(self.file_paths, str) else [str(path) for path in self.file_paths]
        options = self.storage_options
        files = list_files(paths, extensions=self.file_extensions, storage_options=options, who=self.name)
        step = len(files) if is_url(files[0].path) else -(-len(files) // _SOME_FILES)
        self.__dict__["_some_files"] = [status.path for status in files[::step]]
        return files

    def _task(self, slices: tuple[FileSlice, ...], name: str) -> FileGroupTask:
        data = list(dict.fromkeys(part.path for part in slices))
        config: dict[str, object] = {"storage_options": dict(self.storage_options)} if self.storage_options else {}
        return FileGroupTask(self.name, data, reader_config=config, slices=slices, partition_name=name)

    def _groups(self, files: Sequence[FileStatus]) -> Iterator[tuple[tuple[FileSlice, ...], int | None]]:
        """Yield each partition's slices, and its number where it is one part of a split file."""
        if self.files_per_partition is not None:
            for i in range(0, len(files), self.files_per_partition):
                yield tuple(map(_whole, files[i : i + self.files_per_partition])), None
            return
        block = DEFAULT_BLOCK_BYTES if self.blocksize is None else parse_size(self.blocksize)
        group: list[FileSlice] = []
        size = 0
        for file in files:
            whole = _whole(file)
            parts = self._parts(file, block)
            if group and (self.blocksize is None or len(parts) > 1 or size + whole.num_bytes > block):
                yield tuple(group), None
                group, size = [], 0
            if len(parts) > 1:
                yield from (((part,), i) for i, part in enumerate(parts))
            else:
                group.append(whole)
                size += whole.num_bytes
        if group:
            yield tuple(group), None

    def _parts(self, file: FileStatus, block: int) -> list[FileSlice]:
        if self.split == "none" or file.size <= block or is_compressed(file.path):
            return [_whole(file)]
        if self.split == "row_groups":
            return _row_group_parts(file, block, self.storage_options)
        bounds = [*range(0, file.size, block), file.size]
        return [
            FileSlice(file.path, start, end, file_size=file.size, version=file.version, num_bytes=end - start)
            for start, end in pairwise(bounds)
        ]


def _whole(file: FileStatus) -> FileSlice:
    expected = file.size * COMPRESSION_RATIO if is_compressed(file.path) else file.size
    return FileSlice(file.path, file_size=file.size, version=file.version, num_bytes=expected)


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
        return [_whole(file)]  # damaged: the reader says so, and loses this file only
    except OSError as error:
        if error.errno is not None:
            raise
        return [_whole(file)]  # Arrow's own errors have no number
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    total = sum(sizes)
    if total <= 0 or min(sizes) < 0:
        return [_whole(file)]
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


def _suffix(slices: tuple[FileSlice, ...], position: int | None) -> str:
    if position is not None:
        return f"-{position:05d}"
    return f"+{len(slices) - 1}" if len(slices) > 1 else ""


def partition_names(first_files: Sequence[str], all_files: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return a name for each partition, from the first of its files and a suffix that tells parts or groups apart.

    >>> partition_names(["in/a/x.jsonl.gz", "in/b.jsonl"], ["in/a/x.jsonl.gz", "in/b.jsonl"], ["", ""])
    ['a__x', 'b']
    """
    files = {path: _shown(path) for path in all_files}
    root = _common_directory(list(files.values()))
    short = {path: _short_name(shown[len(root) :]) for path, shown in files.items()}
    # Files that differ in extension or case only would write one output on some file system.
    taken = Counter(name.lower() for name in short.values())
    times_shown = Counter(files.values())
    for path, name in short.items():
        if taken[name.lower()] > 1 or len(name) > _MAX_CHARS or not name:
            told = files[path] if times_shown[files[path]] == 1 else path
            digest = hashlib.blake2b(told[len(root) :].encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
            short[path] = f"{name[:_MAX_CHARS]}~{digest}"
    return [short[path] + suffix for path, suffix in zip(first_files, suffixes, strict=True)]


def _shown(path: str) -> str:
    """A path without what must not become the name of a file, nor change it tomorrow: passwords and signatures."""
    return without_url_secrets(path).partition(f"?{HIDDEN}")[0] if "://" in path else path


def _common_directory(paths: Sequence[str]) -> str:
    """The longest "a/b/" all paths begin with."""
    first, last = min(paths), max(paths)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("/", 0, shared) + 1] if len(first) > shared else first[: first.rfind("/") + 1]


def _short_name(relative: str) -> str:
    for suffix in COMPRESSED:
        relative = relative.removesuffix(suffix)
    directory, slash, name = relative.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return _UNSAFE.sub("_", (directory + slash + stem).replace("/", "__")).lstrip("._ ")
