"""`TarMembers`: tar archives split between samples, and `read_samples` for readers of the parts.

Members that belong together are neighbours and differ only after the first dot of their base names, as in WebDataset:
`a/001.jpg` and `a/001.txt` are the sample `a/001`, and no cut comes between them. A part is (first byte, byte behind
it), and members begin at both.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gristmill.errors import DamagedFile
from gristmill.stages.io.splitting import Part
from gristmill.storage import tar
from gristmill.storage.file_system import FileStatus, StorageOptions, is_url
from gristmill.storage.open_read import InputFile
from gristmill.storage.paths import is_compressed

File = tuple[tar.Member, bytes | None]  # with its content, or None where that would be too large
_LeftOut = Callable[[tar.Member], object]  # is told of links, devices and pipes


@dataclass(frozen=True)
class TarMembers:
    """Archives on disks are cut between samples, by a walk over their headers; without `in_samples`, between files.

    Compressed ones can only be read from their beginning. Those on a store stay whole too: a walk would be a request
    for each member.
    """

    in_samples: bool = True

    def parts_of(self, file: FileStatus, block_bytes: int, options: StorageOptions | None) -> Sequence[Part]:
        if is_compressed(file.path) or is_url(file.path):
            return []
        bounds = [0]
        sample: str | None = None
        with InputFile(file.path, storage_options=options) as archive:
            try:
                for member in tar.members(_reading(archive), 0, archive.size, who=file.path):
                    if not is_shown(member):
                        continue  # readers leave it out, so it does not come between two files of a sample either
                    before, sample = sample, sample_of(member.name)
                    if (sample != before or not self.in_samples) and member.start - bounds[-1] >= block_bytes:
                        bounds.append(member.start)
            except DamagedFile:
                pass  # the reader of the last part comes to the same place, and puts it on record
        return [Part((start, end), end - start) for start, end in pairwise([*bounds, file.size])]


def is_shown(member: tar.Member) -> bool:
    """Whether readers are given a member: a file, and neither hidden nor named as `__meta__` is.

    Archives made on macOS have a hidden `._001.jpg` beside every file; it is not part of a sample, and not one itself.
    """
    return member.is_file and _is_named(member)


def _is_named(member: tar.Member) -> bool:
    base = member.name.rpartition("/")[2]
    key = base.partition(".")[0]
    return not base.startswith(".") and not (key.startswith("__") and key.endswith("__"))


def sample_of(name: str) -> str:
    """Return what members of one sample have in common.

    >>> sample_of("a.b/001.seg.txt")
    'a.b/001'
    """
    directory, slash, base = name.rpartition("/")
    return directory + slash + base.partition(".")[0]


def read_samples(
    file: InputFile, part: Sequence[int] | None, max_bytes: int, *, left_out: _LeftOut = bool
) -> Iterator[list[File]]:
    """Yield the samples in a part of an archive, or in all of it: their files, with content as `read_members` has it.

    Raises DamagedFile behind the last sample that is surely whole: if one ends where the damage begins, it is unknown
    what else it had.
    """
    sample: list[File] = []
    try:
        for member, content in read_members(file, part, max_bytes, left_out=left_out):
            if sample and sample_of(sample[0][0].name) != sample_of(member.name):
                yield sample
                sample = []
            sample.append((member, content))
    except DamagedFile as error:
        if sample and (error.is_complete or error.position < sample[0][0].start):  # the damage is elsewhere
            yield sample
        elif sample:
            error.lost_bytes = min(error.lost_bytes + error.position - sample[0][0].start, file.size)
            error.position = sample[0][0].start
        raise
    if sample:
        yield sample


def read_members(
    file: InputFile, part: Sequence[int] | None, max_bytes: int, *, left_out: _LeftOut = bool
) -> Iterator[File]:
    """Yield the files in a part of an archive, or in all of it, with their content, or None if that has more bytes.

    Directories and hidden files are passed over; links, devices and pipes as well, and `left_out` is told of each.
    Raises DamagedFile behind the last member that is whole.
    """
    read, start, end = _reading(file), 0, file.size
    if is_compressed(file.path):
        read, end = tar.Forward(file.pieces()).read, sys.maxsize
    elif part is not None:
        start, end = part
    try:
        yield from _read_members(file, read, (start, end), max_bytes, left_out)
    except DamagedFile as error:
        error.lost_bytes = min(error.lost_bytes, file.size)  # as stored; its unpacked size is unknown
        raise


def _read_members(
    file: InputFile, read: tar.Read, bounds: tuple[int, int], max_bytes: int, left_out: _LeftOut
) -> Iterator[File]:
    start, end = bounds
    for member in tar.members(read, start, end, who=file.path, is_last=end >= file.size):
        if not is_shown(member):
            if not (member.is_file or member.is_directory) and _is_named(member):
                left_out(member)
            continue
        if member.size > max_bytes:
            yield member, None
            continue
        yield member, tar.content(read, member, file.path)


def _reading(file: InputFile) -> tar.Read:
    return lambda start, end: memoryview(file.read_range(start, end))
