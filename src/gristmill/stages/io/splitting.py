"""`Splitter`: how one file becomes parts that are read independently, and a splitter for each kind of file.

A splitter and the readers behind it share the meaning of the numbers that name a part (`FileSlice.part`); nothing else
looks at them, so another kind of file needs no change to tasks, partitions or the engine. Where a file is cut depends
on the file and the block size only, never on the machine. Archives split by tar members are in `tar_members.py`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from gristmill.storage.file_system import FileStatus, StorageOptions
from gristmill.storage.open_read import open_stream
from gristmill.storage.paths import is_compressed

_BZ2_RATIO = 5  # what bzip2 typically makes of XML; for scheduling only
UNPACKED_RATIO = 4  # what gzip typically makes of pages and texts; for scheduling only


class Part(NamedTuple):
    """Which part of a file: numbers for its reader. `num_bytes` are those expected in memory, for scheduling."""

    numbers: tuple[int, ...]
    num_bytes: int


@runtime_checkable
class Splitter(Protocol):
    """What knows where files of some format may be cut."""

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        """Divide a file of more than `block_bytes` into parts of about that, in order; none or one keep it whole.

        Together the parts hold everything in the file, and each thing once. It is called while the pipeline is planned,
        so it reads as little as it can, and a file it cannot read stays whole: the reader puts that on record.
        """


class WholeFiles(msgspec.Struct, frozen=True):
    """Files are never cut."""

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        return []


class Lines(msgspec.Struct, frozen=True):
    """Files of lines are cut anywhere: a part is (first byte, byte behind it), and owns the lines that begin there."""

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        if is_compressed(file.path):
            return []
        bounds = [*range(0, file.size, block_bytes), file.size]
        return [Part((start, end), end - start) for start, end in pairwise(bounds)]


class Bz2Streams(msgspec.Struct, frozen=True):
    """Files of bzip2 streams are cut anywhere: a part is as with `Lines`, and owns the streams that begin there.

    In a file that is one stream, all parts but the first are empty. A file that is not compressed is cut too: its
    reader knows what begins in a part.
    """

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        ratio = _BZ2_RATIO if file.path.endswith(".bz2") else 1
        if ratio == 1 and is_compressed(file.path):
            return []
        bounds = [*range(0, file.size, block_bytes), file.size]
        return [Part((start, end), (end - start) * ratio) for start, end in pairwise(bounds)]


class RowGroups(msgspec.Struct, frozen=True):
    """Parquet files are cut between row groups: a part is the numbers of some that follow one another."""

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        """Runs of row groups of at most about one block as stored; a row group is never divided.

        A group's share of the file is taken to be its share of the whole in memory. The exact number is with its
        columns, and asking for those ends the process if the footer is damaged (pyarrow 26: an uncaught exception).
        """
        sizes = [] if is_compressed(file.path) else _row_group_sizes(file, options)
        total = sum(sizes)
        if total <= 0 or min(sizes) < 0:
            return []
        runs: list[list[int]] = []
        stored = 0
        for i, size in enumerate(sizes):
            share = file.size * size // total
            if not runs or stored + share > block_bytes:
                runs.append([])
                stored = 0
            runs[-1].append(i)
            stored += share
        return [Part(tuple(run), sum(sizes[i] for i in run)) for run in runs]


class GzipMembers(msgspec.Struct, frozen=True):
    """Archives of many gzip members are cut anywhere: a part is (first byte, byte behind it), and owns those that start
    there (`storage/gzip_members.py`). Files that are compressed otherwise, or not at all, stay whole.
    """

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        if not file.path.endswith(".gz"):
            return []
        bounds = [*range(0, file.size, block_bytes), file.size]
        return [Part((start, end), (end - start) * UNPACKED_RATIO) for start, end in pairwise(bounds)]


def _row_group_sizes(file: FileStatus, options: StorageOptions | None) -> list[int]:
    """What each row group takes in memory; nothing for a damaged file: its reader says so, and loses this file only."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_stream(file.path, storage_options=options) as stream:
            metadata = pq.read_metadata(stream)
    except (pa.ArrowException, UnicodeDecodeError):
        return []
    except OSError as error:
        if error.errno is not None:
            raise
        return []  # Arrow's own errors have no number
    return [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
