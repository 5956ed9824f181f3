"""`FilePartitions`: the source partitions of a list of files, a few bytes each; a task is made when it is asked for.

A partition's name is readable, unique, and the same in every run over the same files. It becomes the name of an output
file, so it never has a slash, never hides the file (. or _ in front) and never grows beyond what file systems take.
"""

import copy
import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Protocol, overload, runtime_checkable

import msgspec

from gristmill.errors import ConfigError
from gristmill.secrets import HIDDEN, without_url_secrets
from gristmill.storage.file_system import FileStatus
from gristmill.storage.paths import COMPRESSED, FileList, Made, Packed, is_compressed
from gristmill.tasks import FileGroupTask, FileSlice

_MAX_CHARS = 180  # 255 bytes is the usual limit; suffixes and non-ASCII characters need room
_SAME_NAME, _SAME_BUT_FOR_SECRETS = 1, 2  # as another file
_UNSAFE = re.compile(r'[\x00-\x1f\\:*?"<>|]')
_LIKE_A_SUFFIX = re.compile(r"(-\d{5,}|\+\d+)$")  # as `FilePartitions` adds to the name of a file

COMPRESSION_RATIO = 4  # what gzip and zstd typically make of text; for scheduling only

# What a slice knows of the file it is a part of; the rest says which part that is.
_OF_THE_FILE = ("path", "file_size", "version")
_OF_THE_PART = tuple(name for name in FileSlice.__struct_fields__ if name not in _OF_THE_FILE)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

Slices = tuple[FileSlice, ...]


def whole(file: FileStatus) -> FileSlice:
    """Return all of a file as one slice."""
    expected = file.size * COMPRESSION_RATIO if is_compressed(file.path) else file.size
    return FileSlice(file.path, file_size=file.size, version=file.version, num_bytes=expected)


class Partitions(Made[FileGroupTask]):
    """Source partitions that are known as a whole: asking for their names or files makes no task."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the partitions."""
        raise NotImplementedError

    @property
    def files(self) -> Sequence[tuple[str, int, str]]:
        """Path, size and version of every file of these partitions, each file once."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        raise NotImplementedError


@runtime_checkable
class KeepsListing(Protocol):
    """A stage whose list of inputs may be another one tomorrow: a run that is continued uses the first."""

    def use_listing(self, files: Sequence[tuple[str, int, str]]) -> None:
        """Take path, size and version of the files that were listed before, in place of listing them now."""


class FilePartitions(Partitions):
    """A task for each partition. A slice of the sequence is a sequence of the same kind."""

    def __init__(
        self,
        stage: str,
        files: FileList,
        groups: Iterable[tuple[Slices, int | None]],
        reader_config: Mapping[str, object],
    ) -> None:
        """`groups` has the slices of each partition, in the order of `files`, and its number if it is part of one."""
        self._folder = PurePosixPath(without_url_secrets(files.paths[0])).parent.name or stage
        self._files = files
        self._config = dict(reader_config)
        self._file_names = FileNames(files.paths)
        self._packed, self._num_bytes = _pack(files, groups)
        self._chosen = range(len(self._packed))
        # The parts of `a` are called a-00000, a-00001..., and a file may have such a name too.
        if self._has_suffixes() and any(map(_LIKE_A_SUFFIX.search, self._file_names)):
            while self._file_names.tell_apart(self._clashing_files()):
                pass  # again: what tells two files apart may have made the name of a third

    @property
    def names(self) -> Sequence[str]:
        return _Names(self)

    @property
    def files(self) -> Sequence[tuple[str, int, str]]:
        return _Files(self._files, self._file_numbers())

    @property
    def nbytes(self) -> int:
        return sum(self._num_bytes[number] for number in self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> FileGroupTask: ...
    @overload
    def __getitem__(self, index: slice) -> "FilePartitions": ...
    def __getitem__(self, index: int | slice) -> "FileGroupTask | FilePartitions":
        if isinstance(index, int):
            return super().__getitem__(index)
        part = object.__new__(FilePartitions)
        part.__dict__.update(self.__dict__, _chosen=self._chosen[index])
        return part

    def name(self, index: int) -> str:
        """The name of the partition at this place."""
        first, position, parts = _decode(self._packed[self._chosen[index]])
        return self._name(first, position, len(parts))

    def _has_suffixes(self) -> bool:
        return any(position is not None or len(parts) > 1 for _, position, parts in map(_decode, self._packed))

    def _clashing_files(self) -> set[int]:
        """The first files of partitions with the name of another one, which would overwrite its output."""
        alike = _alike(self.names)
        taken = Counter(self.name(index).lower() for index in alike)
        return {_decode(self._packed[index])[0] for index in alike if taken[self.name(index).lower()] > 1}

    def _name(self, first: int, position: int | None, num_parts: int) -> str:
        suffix = f"-{position:05d}" if position is not None else f"+{num_parts - 1}" if num_parts > 1 else ""
        return self._file_names[first] + suffix

    def _make(self, index: int) -> FileGroupTask:
        first, position, parts = _decode(self._packed[self._chosen[index]])
        slices = tuple(_unpacked(self._files[first + step], part) for step, part in parts)
        return FileGroupTask(
            self._folder,
            list(dict.fromkeys(part.path for part in slices)),
            reader_config=copy.deepcopy(self._config) if self._config else {},
            slices=slices,
            partition_name=self._name(first, position, len(parts)),
            _metadata={"partition_index": self._chosen[index], "total_partitions": len(self._packed)},
        )

    def _file_numbers(self) -> "array[int]":
        numbers = array("q")
        last = -1
        for number in self._chosen:
            first, _, parts = _decode(self._packed[number])
            for step, _ in parts:
                if first + step > last:
                    last = first + step
                    numbers.append(last)
        return numbers


def check_names_differ(names: Sequence[str], *, who: str) -> None:
    """Refuse two partitions of one name: the output of the second would overwrite that of the first."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        before = first.setdefault(name, index)
        if before != index:
            raise ConfigError(
                f"{who}: expected a partition_name for each task that no other one has, since it names the output; "
                f"tasks {before} and {index} are both {name!r}"
            )


def _pack(files: FileList, groups: Iterable[tuple[Slices, int | None]]) -> tuple[Packed, "array[int]"]:
    """Each partition: the number of its first file, its own number, its slices with the steps to their files; bytes."""
    packed, num_bytes = Packed(), array("q")
    at, file, entire = -1, FileStatus("", 0, ""), FileSlice("")
    for slices, position in groups:
        numbers = []
        parts = []
        for part in slices:
            while part.path != file.path:  # they come in order, so this never goes back
                at += 1
                file = files[at]
                entire = whole(file)
            numbers.append(at)
            own = None if part == entire else [getattr(part, name) for name in _OF_THE_PART]
            parts.append((at - numbers[0], own))
        packed.append(_encode((numbers[0], position, parts)))
        num_bytes.append(sum(part.num_bytes for part in slices))
    return packed, num_bytes


def _unpacked(file: FileStatus, part: list[object] | None) -> FileSlice:
    if part is None:
        return whole(file)
    values = (tuple(value) if isinstance(value, list) else value for value in part)
    own = dict(zip(_OF_THE_PART, values, strict=True))
    return FileSlice(file.path, file_size=file.size, version=file.version, **own)  # type: ignore[arg-type]


class _Names(Made[str]):
    __slots__ = ("_partitions",)

    def __init__(self, partitions: FilePartitions) -> None:
        self._partitions = partitions

    def __len__(self) -> int:
        return len(self._partitions)

    def _make(self, index: int) -> str:
        return self._partitions.name(index)


class _Files(Made[tuple[str, int, str]]):
    __slots__ = ("_files", "_numbers")

    def __init__(self, files: FileList, numbers: "array[int]") -> None:
        self._files = files
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def _make(self, index: int) -> tuple[str, int, str]:
        file = self._files[self._numbers[index]]
        return file.path, file.size, file.version


class FileNames(Made[str]):
    """A name for each of several files, made of its path when it is asked for.

    >>> list(FileNames(["in/a/x.jsonl.gz", "in/b.jsonl"]))
    ['a__x', 'b']
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._root = len(_common_directory(map(_shown, paths))) if paths else 0
        alike = _alike(map(self._short, paths))
        taken = Counter(self._short(paths[index]).lower() for index in alike)
        times_shown = Counter(_shown(paths[index]) for index in alike)
        self._clashes = bytearray(len(paths))
        for index in alike:
            if taken[self._short(paths[index]).lower()] > 1:
                self._clashes[index] = _SAME_NAME if times_shown[_shown(paths[index])] == 1 else _SAME_BUT_FOR_SECRETS

    def tell_apart(self, indices: Iterable[int]) -> bool:
        """Add a hash to the names of these files; return whether any of them had none yet."""
        plain = [index for index in indices if not self._clashes[index]]
        for index in plain:
            self._clashes[index] = _SAME_NAME
        return bool(plain)

    def __len__(self) -> int:
        return len(self._paths)

    def _short(self, path: str) -> str:
        return _short_name(_shown(path)[self._root :])

    def _make(self, index: int) -> str:
        path = self._paths[index]
        name, clash = self._short(path), self._clashes[index]
        if not clash and 0 < len(name) <= _MAX_CHARS:
            return name
        told = path if clash == _SAME_BUT_FOR_SECRETS else _shown(path)
        content = told[self._root :].encode("utf-8", "surrogateescape")
        return f"{name[:_MAX_CHARS]}~{hashlib.blake2b(content, digest_size=4).hexdigest()}"


def _alike(names: Iterable[str]) -> list[int]:
    """Which names may be the same as another one: those with an equal hash.

    Names that differ in case only would be one output on some file systems. Hashes are compared first, because a
    million names at a time would take more memory than all the rest of a plan.
    """
    hashes = array("q", (hash(name.lower()) for name in names))
    shared = {one for one, following in pairwise(sorted(hashes)) if one == following}
    return [index for index, own in enumerate(hashes) if own in shared] if shared else []


def _shown(path: str) -> str:
    """A path without what must neither be in a file's name nor change it tomorrow: passwords and signatures."""
    return without_url_secrets(path).partition(f"?{HIDDEN}")[0] if "://" in path else path


def _common_directory(paths: Iterable[str]) -> str:
    """The longest "a/b/" all paths begin with."""
    first = last = ""
    for number, path in enumerate(paths):
        first, last = (min(first, path), max(last, path)) if number else (path, path)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("/", 0, shared) + 1] if len(first) > shared else first[: first.rfind("/") + 1]


def _short_name(relative: str) -> str:
    for suffix in COMPRESSED:
        relative = relative.removesuffix(suffix)
    directory, slash, name = relative.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return _UNSAFE.sub("_", (directory + slash + stem).replace("/", "__")).lstrip("._ ")
