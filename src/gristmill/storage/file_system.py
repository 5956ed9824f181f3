"""Local paths and URLs behind one small interface.

A plain path never imports fsspec (0.15 s); `file://` counts as a plain path. Errors of the system about a local file
pass through unchanged: the caller, which knows what the file was for, explains them. Stores are in
`remote_file_system.py`.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from gristmill.errors import ConfigError
from gristmill.secrets import without_secrets

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # two letters at least: C:// is not a scheme

_OF_THIS_MACHINE = ("file://", "local://")  # the two names fsspec has for it

StorageOptions = Mapping[str, object]
_Identity = tuple[int, int] | None  # device and inode, where there are such things


UNKNOWN_SIZE = -1  # a web server may send a file without saying how long it is


class FileStatus(msgspec.Struct, frozen=True):
    """A file as its directory lists it. `version` changes when the content does.

    `kind` is "file", or says what it is if it cannot be read as one: "named pipe", "link to nothing" and so on. `size`
    may be `UNKNOWN_SIZE` until the file itself is asked for.
    """

    path: str
    size: int
    version: str
    kind: str = "file"
    identity: _Identity = None


class FileSystem(Protocol):
    """What gristmill needs of a file system. Paths are given and returned in full, with their scheme."""

    def full(self, path: str) -> str: ...
    def status(self, path: str, *, fresh: bool = False) -> FileStatus | None: ...
    def is_directory(self, path: str) -> bool: ...
    def walk(self, directory: str) -> Iterator[FileStatus]: ...
    def list_names(self, directory: str) -> list[str]: ...
    def open_read(self, path: str) -> BinaryIO: ...
    def open_write(self, path: str) -> BinaryIO: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def make_directory(self, path: str) -> None: ...


def is_url(path: str) -> bool:
    """Whether the path needs fsspec."""
    return _SCHEME.match(path) is not None and not path.startswith(_OF_THIS_MACHINE)


def file_system(path: str, options: StorageOptions | None = None) -> FileSystem:
    """Return the file system a path is on."""
    if not is_url(path):
        return LocalFileSystem()
    from gristmill.storage.remote_file_system import RemoteFileSystem  # loads fsspec's world

    return RemoteFileSystem(path, options or {})


class LocalFileSystem:
    """Files of this machine."""

    def full(self, path: str) -> str:
        """The path as listings spell it."""
        return absolute(path)

    def status(self, path: str, *, fresh: bool = False) -> FileStatus | None:
        try:
            return status_of(path, os.stat(plain(path)))  # noqa: PTH116  # Path would cost as much again
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_directory(self, path: str) -> bool:
        return Path(plain(path)).is_dir()

    def walk(self, directory: str) -> Iterator[FileStatus]:
        """All files below, in any order, except hidden ones (. or _ in front) and what is below hidden directories.

        Links are followed, but each directory is walked once: two that link to each other would otherwise be
        walked once for every path through them. Pipes, devices and links that lead nowhere are listed too, with
        their `kind`.
        """
        pending = [plain(directory)]
        links: list[str] = []  # to directories: walked last, so that files of real directories keep their own names
        walked: set[_Identity] = set()
        while pending or links:
            if not pending:
                links.sort(reverse=True)
                pending.append(links.pop())
            path = pending.pop()
            identity = _identity(os.stat(path))  # noqa: PTH116
            if identity in walked:
                continue
            walked.add(identity)
            with os.scandir(path) as entries:
                for entry in entries:
                    status = None if is_hidden(entry.name) else _entry_status(entry)
                    if status is None:
                        continue
                    if status.kind == "directory":
                        (links if entry.is_symlink() else pending).append(entry.path)
                    else:
                        yield status

    def list_names(self, directory: str) -> list[str]:
        try:
            return sorted(entry.name for entry in Path(plain(directory)).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open_read(self, path: str) -> BinaryIO:
        # Opening a named pipe would wait for a writer without O_NONBLOCK, which makes no difference to a regular file.
        descriptor = os.open(plain(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            kind = status_of(path, found).kind
            raise OSError(errno.EINVAL, f"expected a file; got a {kind}", path)
        return open(descriptor, "rb", buffering=0)  # noqa: PTH123  # read in large pieces only

    def open_write(self, path: str) -> BinaryIO:
        return open(plain(path), "wb")  # noqa: PTH123  # see `rename`

    def rename(self, source: str, target: str) -> None:
        # Not with pathlib, which interns every part of a path: 50 bytes for each partition, never given back.
        source, target = plain(source), plain(target)
        try:
            os.replace(source, target)  # noqa: PTH105
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)  # noqa: PTH103, PTH120
            os.replace(source, target)  # noqa: PTH105

    def remove(self, path: str) -> None:
        Path(plain(path)).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        Path(plain(path)).mkdir(parents=True, exist_ok=True)


_KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device", stat.S_IFBLK: "device",
}  # fmt: skip


def status_of(path: str, found: os.stat_result) -> FileStatus:
    """What the system says about a local file."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "device")
    return FileStatus(path, found.st_size, str(found.st_mtime_ns), kind, (found.st_dev, found.st_ino))


def _entry_status(entry: "os.DirEntry[str]") -> FileStatus | None:
    """What a directory lists; None if it is gone already."""
    try:
        return status_of(entry.path, entry.stat())
    except OSError:
        if not entry.is_symlink():
            return None
        return FileStatus(entry.path, 0, "", "link to nothing")


def _identity(found: os.stat_result) -> _Identity:
    return found.st_dev, found.st_ino


def is_hidden(name: str) -> bool:
    """Whether a file or directory is not data: `.gristmill`, `_SUCCESS`, `.DS_Store`."""
    return name.startswith((".", "_"))


def plain(path: str) -> str:
    """A local path without `file://` and with `~` filled in."""
    return os.path.expanduser(path.removeprefix("file://").removeprefix("local://"))  # noqa: PTH111  # Path would drop a trailing slash


def disk_path(path: str, *, who: str) -> Path:
    """A path where only a disk will do. A URL is refused: as a path, `s3://b` is a folder called `s3:` here."""
    if is_url(path):
        raise ConfigError(f"{who}: expected a directory on a disk of this machine; got {without_secrets(path)!r}")
    return Path(plain(path))


def absolute(path: str) -> str:
    """A path that means the same whatever the working directory, and is spelt in one way only; a URL as it is.

    Links are left alone: on another machine of a cluster they may lead elsewhere.
    """
    if is_url(path):
        return path
    full = plain(path)
    if ".." in full.split("/"):
        # The meaning of `link/..` depends on where the link leads, so the disk is asked about that much of the path.
        head, _, rest = full.rpartition("..")
        full = os.path.realpath(f"{head}..") + rest
    if not full.startswith("/"):
        full = f"{_working_directory()}/{full}"
    return "/" + os.path.normpath(full).lstrip("/")


def _working_directory() -> str:
    """The working directory as the shell spells it: a link on the way to it stays a link, as in an absolute path."""
    spelt = os.environ.get("PWD", "")
    with contextlib.suppress(OSError):
        if spelt.startswith("/") and Path(spelt).samefile("."):
            return spelt
    return str(Path.cwd())
