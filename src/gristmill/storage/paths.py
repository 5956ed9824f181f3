"""Find input files: directories (always recursive), globs, lists of both, local or by URL.

The result is sorted, so the same files give the same partitions on every machine, and does not depend on how a path was
spelt: local paths are absolute, and a file reached in two ways is listed once. Finding nothing is an error that says
what is there instead; what cannot be read as a file (a named pipe, a link to nothing) is an error too, never skipped.
"""

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Generic, TypeVar, overload

import msgspec

from gristmill.errors import ConfigError, NoInputError, nearest
from gristmill.secrets import without_secrets
from gristmill.storage.file_system import (
    UNKNOWN_SIZE,
    FileStatus,
    FileSystem,
    StorageOptions,
    file_system,
    is_hidden,
    is_url,
    plain,
)

# Sequences of many small things in little memory: texts, paths, files as a directory lists them.
#
# A run over a crawl knows a million files. As Python objects each takes a kilobyte (an object, a dict, four strings).
# Here its name, size and version lie end to end with those of others, and become an object only when asked for. The
# sequences only grow, and what was added does not change.

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
        return self._make(range(len(self))[index])  # a range handles negative numbers, and rejects those too large

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
    """Short strings of bytes: each costs its length plus four bytes, or eight beyond 4 GB in all."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("I", [0])

    def append(self, content: bytes) -> None:
        self._bytes += content
        try:
            self._ends.append(len(self._bytes))
        except OverflowError:
            self._ends = array("Q", self._ends)
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
        # A name on a disk need not be UTF-8; Python then puts lone surrogates in it.
        self._names.append(path[cut:].encode("utf-8", "surrogatepass"))

    def directories(self) -> list[str]:
        """Return the directories of all paths, each once, without the slash at the end."""
        return [directory[:-1] for directory in self._directories]

    def __len__(self) -> int:
        return len(self._directory_of)

    def _make(self, index: int) -> str:
        return self._directories[self._directory_of[index]] + self._names._make(index).decode("utf-8", "surrogatepass")


class FileList(Made[FileStatus]):
    """Files as their directories list them; only path, size and version are kept."""

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


COMPRESSED = (".gz", ".zst", ".bz2")
_MAGIC = re.compile(r"[*?\[]")


def list_files(
    paths: str | Sequence[str],
    *,
    extensions: Sequence[str] | None = None,
    storage_options: StorageOptions | None = None,
    who: str = "input",
) -> FileList:
    """Return every file once, sorted by path. A file named outright is taken whatever its extension."""
    wanted = None if extensions is None else tuple(f".{e.lstrip('.')}" for e in extensions)
    found = _Found()
    for path in [paths] if isinstance(paths, str) else map(str, paths):
        fs = file_system(path, storage_options)
        before, others = len(found), _Others()
        try:
            for status in _matching(fs, path, wanted, others):
                found.add(status if status.size >= 0 else _with_size(fs, status))
        except (OSError, ValueError) as error:  # a link to itself, a directory that may not be read, a zero byte
            if is_url(path):
                raise
            raise ConfigError(f"{who}: expected files at {path!r}; got {error}") from error
        if len(found) == before:
            raise NoInputError(_nothing_found(fs, path, wanted, others, who))
    if not len(found):
        raise NoInputError(f"{who}: expected at least one path; got {paths!r}")
    return found.listed(who)


class _Found:
    """Files as they are found, in any order and some of them twice; little is kept of each: there may be millions."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._sizes = array("q")
        self._versions = Packed()
        self._devices, self._inodes = array("Q"), array("Q")  # both 0 on file systems that have neither
        self._odd: dict[int, str] = {}  # kinds of those that are not files

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, status: FileStatus) -> None:
        if status.kind != "file":
            self._odd[len(self._paths)] = status.kind
        device, inode = status.identity or (0, 0)
        self._paths.append(status.path)
        self._sizes.append(status.size)
        self._versions.append(status.version.encode())
        self._devices.append(device)
        self._inodes.append(inode)

    def listed(self, who: str) -> FileList:
        """Return them sorted, each once, or raise ConfigError for the first that cannot be read."""
        paths = self._paths
        order = sorted(range(len(paths)), key=paths.__getitem__)
        # Of two with the same path the later counts: it was looked at last.
        following = zip_longest(order, order[1:], fillvalue=-1)
        last = [at for at, then in following if then < 0 or paths[at] != paths[then]]
        for at in last:
            self._check_readable(at, who)
        doubled = self._doubled(last)
        files = FileList()
        for at in last:
            if at not in doubled:
                files.append(paths[at], self._sizes[at], self._versions[at].decode())
        return files

    def _check_readable(self, at: int, who: str) -> None:
        path = self._paths[at]
        if at in self._odd:
            remedy = "Remove it, or name the files themselves"
            raise ConfigError(f"{who}: expected a file at {path!a}; got a {self._odd[at]}. {remedy}")
        if self._inodes[at] and not os.access(path, os.R_OK):
            raise ConfigError(f"{who}: expected a readable file at {path!a}; there is no permission to read it")
        if not path.isascii():
            try:
                path.encode()
            except UnicodeEncodeError:
                raw = os.fsencode(path)
                raise ConfigError(f"{who}: expected a file name in UTF-8; got {raw!r}. Rename the file") from None

    def _doubled(self, listed: list[int]) -> set[int]:
        """Links to files that are listed themselves, or by another link. Hard links are files of their own."""
        inodes = sorted(self._inodes[at] for at in listed if self._inodes[at])
        shared = {one for one, following in pairwise(inodes) if one == following}
        ways: dict[tuple[int, int], list[int]] = {}
        for at in listed if shared else ():
            if self._inodes[at] in shared:
                ways.setdefault((self._devices[at], self._inodes[at]), []).append(at)
        doubled = set()
        for several in ways.values():
            by_path = {self._paths[at]: at for at in several}
            real = {path: os.path.realpath(path) for path in by_path}
            first: dict[str, str] = {}
            for path in sorted(real, key=lambda path: (path != real[path], path)):
                if first.setdefault(real[path], path) != path:
                    doubled.add(by_path[path])
        return doubled


class _Others:
    """Files that are there but have another extension: how many, and the first names."""

    def __init__(self) -> None:
        self.number = 0
        self.names: list[str] = []

    def add(self, status: FileStatus) -> None:
        self.number += 1
        self.names = sorted([*self.names, status.path.rpartition("/")[2]])[:3]


def _with_size(fs: FileSystem, status: FileStatus) -> FileStatus:
    """Ask about the file itself: a web server's list of links has no sizes. Taken as 0, it would be read as empty."""
    told = fs.status(status.path)
    if told is None or told.size == UNKNOWN_SIZE:
        shown = without_secrets(status.path)
        raise ConfigError(f"{shown}: expected a file whose size its server says; got none. Download it first")
    return told


def has_extension(path: str, extensions: Sequence[str]) -> bool:
    """Whether the name ends in one of the extensions, a compression suffix aside."""
    return _uncompressed(path).endswith(tuple(extensions))


def is_compressed(path: str) -> bool:
    """Whether the name says the file is compressed."""
    return path.endswith(COMPRESSED)


def _uncompressed(path: str) -> str:
    return next((path.removesuffix(suffix) for suffix in COMPRESSED if path.endswith(suffix)), path)


def _matching(fs: FileSystem, path: str, wanted: tuple[str, ...] | None, others: _Others) -> Iterator[FileStatus]:
    """Files that match. Those that are there but have another extension are added to `others`."""
    status = fs.status(path)
    is_directory = fs.is_directory(path)
    if status is not None and not is_directory:
        yield status if is_url(path) else msgspec.structs.replace(status, path=fs.full(path))
        return
    if not is_directory and not _MAGIC.search(path):
        return
    for found in fs.walk(fs.full(path)) if is_directory else _glob(fs, path):
        if wanted is None or has_extension(found.path, wanted) or _may_be_directory(found):
            yield found
        else:
            others.add(found)


def _may_be_directory(status: FileStatus) -> bool:
    """Whether this is a link to nothing without an extension: it may lead to a disk that is not mounted."""
    return status.kind == "link to nothing" and "." not in status.path.rpartition("/")[2]


def _glob(fs: FileSystem, pattern: str) -> Iterator[FileStatus]:
    """Files whose path matches; a directory that matches stands for all files in it."""
    root, slash, _ = _MAGIC.split(pattern, maxsplit=1)[0].rpartition("/")
    base = root or slash or "."
    if not fs.is_directory(base):
        return
    matches = re.compile(_translate(pattern[len(root + slash) :])).match
    prefix = fs.full(base).rstrip("/") + "/"
    for status in fs.walk(fs.full(base)):
        if matches(status.path.removeprefix(prefix)):
            yield status


def _translate(pattern: str) -> str:
    """A glob as a regular expression: `**` crosses directories, `*` and `?` do not."""
    out = []
    for token in re.findall(r"\*\*/?|\*|\?|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if token.startswith("**"):
            out.append("(?:.*/)?" if token.endswith("/") else ".*")
        elif token == "*":  # noqa: S105  # no password
            out.append("[^/]*")
        elif token == "?":  # noqa: S105
            out.append("[^/]")
        elif token.startswith("[") and len(token) > 1:
            out.append("[" + token[1:].replace("!", "^", 1) if token[1] == "!" else token)
        else:
            out.append(re.escape(token))
    return "".join(out) + r"(?:/.*)?\Z"


def _nothing_found(fs: FileSystem, path: str, wanted: tuple[str, ...] | None, others: _Others, who: str) -> str:
    kinds = f"a file ending in {' or '.join(wanted)} (or {', '.join(COMPRESSED)} of it)" if wanted else "a file"
    message = f"{who}: expected {kinds} at {path!r}; got none"
    if "::" in path and is_url(path):
        return f"{message}: what is inside an archive is not listed. Unpack it first"
    if others.number:
        plural = "s" * (others.number > 1)
        return f"{message}, but {others.number} file{plural} of other kinds ({', '.join(others.names)})"
    if not is_url(path) and os.path.islink(plain(path)):  # noqa: PTH114
        return f"{message}: it is a link to {os.readlink(plain(path))!r}, where there is nothing"  # noqa: PTH115
    if fs.is_directory(path):
        hidden = sum(is_hidden(name) for name in fs.list_names(path))
        return f"{message}: the directory has " + (f"only hidden files ({hidden})" if hidden else "no files")
    named = _MAGIC.split(path, maxsplit=1)[0] if _MAGIC.search(path) else path.rstrip("/")
    parent = named.rpartition("/")[0] or "/" * named.startswith("/")
    name = path.rstrip("/")[len(parent) :].lstrip("/")
    names = [n for n in fs.list_names(parent or ".") if not is_hidden(n)]
    if not names:
        return message
    some = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return f"{message}: {parent or '.'!r} has {some}{nearest(name, names)}"
