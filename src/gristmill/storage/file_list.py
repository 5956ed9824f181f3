"""Sequences of many small things in little memory: texts, paths, files as a directory lists them.

A run over a crawl knows a million files. As Python objects each takes a kilobyte (an object, a dict, four strings).
Here its name, size and version lie end to end with those of others, and become an object when somebody asks for it.
The sequences only grow, and what was added does not change.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

from gristmill.storage.file_system import FileStatus

T = TypeVar("T")


class Made(Sequence[T], Generic[T]):
    """A sequence whose elements are made when they are asked for. Equal to any sequence of equal elements."""

    __slots__ = ()

    def _make(self, index: int) -> T:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._make(at) for at in range(len(self))[index]]
        return self._make(range(len(self))[index])  # which knows negative numbers, and which are too large

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(own == its for own, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class Packed(Made[bytes]):
    """Short strings of bytes: each costs its length and eight more."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])

    def append(self, content: bytes) -> None:
        self._bytes += content
        self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def _make(self, index: int) -> bytes:
        return bytes(self._bytes[self._ends[index] : self._ends[index + 1]])


class PathList(Made[str]):
    """Paths: a directory is kept once, however many files are in it."""

    __slots__ = ("_directories", "_directory_of", "_names", "_numbers")

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._directories: list[str] = []
        self._numbers: dict[str, int] = {}  # of directories
        self._directory_of = array("I")
        self._names = Packed()
        for path in paths:
            self.append(path)

    def append(self, path: str) -> None:
        cut = path.rfind("/") + 1
        directory = path[:cut]
        number = self._numbers.get(directory)
        if number is None:
            number = self._numbers[directory] = len(self._directories)
            self._directories.append(directory)
        self._directory_of.append(number)
        # A name on a disk need not be UTF-8, and Python then has halves of characters in it.
        self._names.append(path[cut:].encode("utf-8", "surrogatepass"))

    def directories(self) -> list[str]:
        """Return the directories of all paths, each once, without the slash at the end."""
        return [directory[:-1] for directory in self._directories]

    def __len__(self) -> int:
        return len(self._directory_of)

    def _make(self, index: int) -> str:
        return self._directories[self._directory_of[index]] + self._names._make(index).decode("utf-8", "surrogatepass")


class FileList(Made[FileStatus]):
    """Files as their directories list them, of which nothing but path, size and version is kept."""

    __slots__ = ("_versions", "paths", "sizes")

    def __init__(self) -> None:
        self.paths = PathList()
        self.sizes = array("q")
        self._versions = Packed()

    def append(self, path: str, size: int, version: str) -> None:
        self.paths.append(path)
        self.sizes.append(size)
        self._versions.append(version.encode("utf-8", "surrogatepass"))

    def version(self, index: int) -> str:
        """The version of one file."""
        return self._versions._make(index).decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self.sizes)

    def _make(self, index: int) -> FileStatus:
        return FileStatus(self.paths._make(index), self.sizes[index], self.version(index))
