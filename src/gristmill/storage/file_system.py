"""Local paths and URLs behind one small interface.

A plain path never imports fsspec (0.15 s); `file://` counts as a plain path. Errors of other libraries are left alone
here: whoever knows what the file was for says so.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # two letters at least: C:// is no scheme

StorageOptions = Mapping[str, object]


@dataclass(frozen=True)
class FileStatus:
    """A file as its directory lists it. `version` changes when the content does."""

    path: str
    size: int
    version: str


class FileSystem(Protocol):
    """What gristmill needs of a file system. Paths are given and returned in full, with their scheme."""

    def full(self, path: str) -> str: ...
    def status(self, path: str) -> FileStatus | None: ...
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
    return _SCHEME.match(path) is not None and not path.startswith("file://")


def file_system(path: str, options: StorageOptions | None = None) -> FileSystem:
    """Return the file system a path is on."""
    return RemoteFileSystem(path, options or {}) if is_url(path) else LocalFileSystem()


class LocalFileSystem:
    """Files of this machine."""

    def full(self, path: str) -> str:
        """The path as listings spell it."""
        return plain(path)

    def status(self, path: str) -> FileStatus | None:
        try:
            found = Path(plain(path)).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileStatus(path, found.st_size, str(found.st_mtime_ns))

    def is_directory(self, path: str) -> bool:
        return Path(plain(path)).is_dir()

    def walk(self, directory: str) -> Iterator[FileStatus]:
        """All files below, in no order; hidden ones (. or _ in front) and what is below hidden directories left out."""
        pending = [plain(directory)]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.is_dir():
                        pending.append(entry.path)
                    elif entry.is_file():
                        found = entry.stat()
                        yield FileStatus(entry.path, found.st_size, str(found.st_mtime_ns))

    def list_names(self, directory: str) -> list[str]:
        try:
            return sorted(entry.name for entry in Path(plain(directory)).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open_read(self, path: str) -> BinaryIO:
        return Path(plain(path)).open("rb", buffering=0)  # read in large pieces only

    def open_write(self, path: str) -> BinaryIO:
        return Path(plain(path)).open("wb")

    def rename(self, source: str, target: str) -> None:
        Path(plain(target)).parent.mkdir(parents=True, exist_ok=True)
        Path(plain(source)).replace(plain(target))

    def remove(self, path: str) -> None:
        Path(plain(path)).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        Path(plain(path)).mkdir(parents=True, exist_ok=True)


class RemoteFileSystem:
    """Whatever fsspec reaches: `s3://`, `gs://`, `https://`, `memory://`."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        import fsspec

        self._scheme = url.partition("://")[0]
        self._fs = fsspec.core.url_to_fs(url, **options)[0]

    def full(self, path: str) -> str:
        """The URL as listings spell it."""
        return self._url(str(self._fs._strip_protocol(path)))

    def _url(self, path: str) -> str:
        return cast("str", self._fs.unstrip_protocol(path)) if "://" not in path else path

    def _status(self, info: Mapping[str, object]) -> FileStatus:
        version = next((str(info[k]) for k in ("ETag", "etag", "mtime", "LastModified", "created") if info.get(k)), "")
        size = info.get("size")
        return FileStatus(self._url(str(info["name"])), size if isinstance(size, int) else 0, version)

    def status(self, path: str) -> FileStatus | None:
        try:
            info = self._fs.info(path)
        except FileNotFoundError:
            return None
        return None if info["type"] == "directory" else self._status(info)

    def is_directory(self, path: str) -> bool:
        return cast("bool", self._fs.isdir(path))

    def walk(self, directory: str) -> Iterator[FileStatus]:
        root = self._fs._strip_protocol(directory).rstrip("/")
        for name, info in self._fs.find(directory, detail=True).items():
            if not any(is_hidden(part) for part in name[len(root) :].strip("/").split("/")):
                yield self._status(info)

    def list_names(self, directory: str) -> list[str]:
        try:
            return sorted(str(name).rstrip("/").rpartition("/")[2] for name in self._fs.ls(directory, detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open_read(self, path: str) -> BinaryIO:
        return cast("BinaryIO", self._fs.open(path, "rb"))

    def open_write(self, path: str) -> BinaryIO:
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast("BinaryIO", self._fs.open(path, "wb"))

    def rename(self, source: str, target: str) -> None:
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        if self._fs.exists(target):
            self._fs.rm_file(target)
        self._fs.mv(source, target)

    def remove(self, path: str) -> None:
        if self._fs.exists(path):
            self._fs.rm_file(path)

    def make_directory(self, path: str) -> None:
        self._fs.makedirs(path, exist_ok=True)


def is_hidden(name: str) -> bool:
    """Whether a file or directory is not data: `.gristmill`, `_SUCCESS`, `.DS_Store`."""
    return name.startswith((".", "_"))


def plain(path: str) -> str:
    """A local path without `file://` and with `~` filled in."""
    return os.path.expanduser(path.removeprefix("file://"))  # noqa: PTH111  # Path would drop a trailing slash


def absolute(path: str) -> str:
    """A path that can be compared with others: a URL as it is, a local path in full."""
    return path if is_url(path) else os.path.abspath(plain(path))  # noqa: PTH100  # resolve() asks the disk, for each
