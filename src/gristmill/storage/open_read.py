"""Read bytes: parts of a plain file, or a whole one as a stream that may be compressed.

`InputFile` is a file while it is read. Given what was planned (size and version, from a listing), it compares the file
with that on opening it and again after the last byte, and raises `InputChanged` if they differ: a file that shrank,
grew, was replaced or is gone is never read in part as if it were whole. A file that is cut off or damaged is a
`DamagedFile`. Nothing here knows what the bytes mean.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from gristmill.errors import DamagedFile, InputChanged, ReadError
from gristmill.storage.file_system import (
    UNKNOWN_SIZE,
    FileStatus,
    StorageOptions,
    file_system,
    is_url,
    plain,
    status_of,
)

_PIECE_BYTES = 1 << 20
_MOST_AT_ONCE = 1 << 30  # Linux reads at most 2 GiB in one call
_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


class InputFile:
    """A file that is open for reading; leaving its `with` without an error means that it is still what was planned.

    Without `planned` only one thing is checked: that the file is not cut short between opening and reading it.
    """

    def __init__(
        self, path: str, *, planned: FileStatus | None = None, storage_options: StorageOptions | None = None
    ) -> None:
        self.path = path
        self._planned = planned
        self._fs = file_system(path, storage_options)
        self._raw = self._open()
        try:
            self.size = self._opened_size()
        except BaseException:
            self._raw.close()
            raise

    def _open(self) -> BinaryIO:
        try:
            return self._fs.open_read(self.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            if self._planned is not None:
                raise InputChanged(_changed(self.path, self._planned, None)) from error
            raise unreadable(self.path, error) from error
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _opened_size(self) -> int:
        """Compare what was opened with what was planned; a local file by its descriptor, which cannot be swapped."""
        if not is_url(self.path):
            return self._compared(os.fstat(self._raw.fileno()))
        if self._planned is None:
            return self._raw.seek(0, os.SEEK_END)
        self.check_unchanged()
        return self._planned.size

    def __enter__(self) -> "InputFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object) -> None:
        self._raw.close()
        if error is None or _is_damage(error):  # a file that is being replaced looks damaged; it is not
            self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise InputChanged unless what is under this path now is what was planned."""
        if self._planned is None:
            return
        try:
            if is_url(self.path):
                found = self._fs.status(self.path, fresh=True)
                if found is None or not _is_same(self._planned, found.size, found.version):
                    raise InputChanged(_changed(self.path, self._planned, found))
            else:
                self._compared(os.stat(plain(self.path)))  # noqa: PTH116  # Path would cost as much again
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputChanged(_changed(self.path, self._planned, None)) from error
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _compared(self, found: os.stat_result) -> int:
        """Return the size of a local file, if it is still as planned."""
        planned = self._planned
        if planned is not None and not _is_same(planned, found.st_size, str(found.st_mtime_ns)):
            raise InputChanged(_changed(self.path, planned, status_of(self.path, found)))
        return found.st_size

    def read_range(self, start: int, end: int) -> pa.Buffer:
        """Return bytes start to end, fewer only where the file ends first.

        Read, not mapped: a file that shrinks while it is mapped ends the process with SIGBUS. Into Arrow's memory, not
        into `bytes`: Arrow's pool hands out the same pages again, where fresh ones cost 0.7 ms a megabyte.
        """
        buffer = pa.allocate_buffer(max(0, min(end, self.size) - start))
        self.read_into(memoryview(buffer).cast("B"), start)
        return buffer

    def read_into(self, view: memoryview, start: int) -> None:
        """Fill a view with the bytes from `start` on, all of which must be there."""
        done = 0
        while done < len(view):
            count = self._read_some(view[done : done + _MOST_AT_ONCE], start + done)
            if not count:
                raise self._cut_short(start + done)
            done += count

    def _read_some(self, view: memoryview, position: int) -> int:
        try:
            if not is_url(self.path):
                return os.preadv(self._raw.fileno(), [view], position)
            self._raw.seek(position)
            piece = self._raw.read(len(view))
        except OSError as error:
            raise unreadable(self.path, error, f"to read bytes {position} to {position + len(view)}") from error
        view[: len(piece)] = piece
        return len(piece)

    def _cut_short(self, position: int) -> InputChanged:
        message = f"expected {self.size:,} bytes, as many as it had when it was opened; got {position:,}: it was cut"
        return InputChanged(f"{self.path}: {message} while it was read")

    def pieces(self) -> Iterator[bytes]:
        """Yield the (decompressed) content from the beginning, in pieces of at most 1 MiB.

        A damaged file yields everything before the damage and then raises `DamagedFile`.
        """
        codec = _codec(self.path)
        if codec is not None:
            yield from self._decompressed(codec)
            return
        position = 0
        while position < self.size:
            piece = self._read_piece(position)
            position += len(piece)
            yield piece

    def _read_piece(self, position: int) -> bytes:
        try:
            if not is_url(self.path):
                piece = os.pread(self._raw.fileno(), _PIECE_BYTES, position)
            else:
                self._raw.seek(position)
                piece = self._raw.read(_PIECE_BYTES)
        except OSError as error:
            raise unreadable(self.path, error, f"to read from byte {position} on") from error
        if not piece:
            raise self._cut_short(position)
        return piece[: self.size - position]

    def native(self) -> pa.NativeFile:
        """The file as Arrow's libraries want it. Close it before this one."""
        if is_url(self.path):
            return pa.PythonFile(self._raw, "r")
        try:
            native = pa.OSFile(plain(self.path))
        except OSError as error:
            self.check_unchanged()
            raise unreadable(self.path, error) from error
        self._compared(os.fstat(native.fileno()))
        return native

    def _decompressed(self, codec: str) -> Iterator[bytes]:
        size = 0
        self._raw.seek(0)
        stream = pa.CompressedInputStream(pa.PythonFile(self._raw, "r"), codec)
        while True:
            try:
                piece = stream.read(_PIECE_BYTES)
            except OSError:  # from the codec or from the disk: reading it carefully shows which
                break
            if not piece:
                return
            size += len(piece)
            yield piece
        from gristmill.storage.salvage import salvage  # few files are damaged

        try:
            with self._fs.open_read(self.path) as raw:
                yield from salvage(raw, codec, name=self.path, skip=size)
        except (DamagedFile, FileNotFoundError):
            self.check_unchanged()  # a file that is being replaced looks damaged; it is not
            raise
        except OSError as error:
            raise unreadable(self.path, error) from error


def open_stream(path: str, *, storage_options: StorageOptions | None = None) -> pa.NativeFile:
    """Open a file for sequential reading, decompressed if its name says it is compressed."""
    codec = _codec(path)
    try:
        raw = pa.PythonFile(file_system(path, storage_options).open_read(path), "r")
        return raw if codec is None else pa.CompressedInputStream(raw, codec)
    except OSError as error:
        raise unreadable(path, error) from error


def read_start(path: str, num_bytes: int, *, storage_options: StorageOptions | None = None) -> bytes:
    """Return the first bytes of the (decompressed) content, fewer where it ends or is damaged sooner."""
    found = b""
    try:
        with InputFile(path, storage_options=storage_options) as file:
            for piece in file.pieces():
                found += piece
                if len(found) >= num_bytes:
                    break
    except DamagedFile:
        if not found:
            raise
    return found[:num_bytes]


def read_all(path: str, *, planned: FileStatus | None = None, storage_options: StorageOptions | None = None) -> bytes:
    """Return the whole content, decompressed."""
    with InputFile(path, planned=planned, storage_options=storage_options) as file:
        return b"".join(file.pieces())


def read_undamaged(
    path: str, *, planned: FileStatus | None = None, storage_options: StorageOptions | None = None
) -> tuple[bytes, DamagedFile | None]:
    """Return the content, decompressed, up to where the file is damaged; and what the damage is, if there is any."""
    found: list[bytes] = []
    damage = None
    with InputFile(path, planned=planned, storage_options=storage_options) as file:
        try:
            found.extend(file.pieces())
        except DamagedFile as error:
            damage = error
    return b"".join(found), damage


def file_size(path: str, *, storage_options: StorageOptions | None = None) -> int:
    """Return how many bytes a file has as it is stored."""
    try:
        status = file_system(path, storage_options).status(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if status is None:
        raise ReadError(f"{path}: expected a readable file; got none")
    if status.size == UNKNOWN_SIZE:
        raise ReadError(f"{path}: expected a file whose size its server says; got none. Download it first")
    return status.size


def _codec(path: str) -> str | None:
    return next((name for suffix, name in _CODECS.items() if path.endswith(suffix)), None)


def unreadable(path: str, error: OSError, wanted: str = "a readable file") -> ReadError:
    """The error, naming the file. It keeps its errno: a failing disk is not a damaged file."""
    if isinstance(error, ReadError):
        return error
    named = ReadError(f"{path}: expected {wanted}; got {error}")
    named.errno = error.errno
    return named


def _is_damage(error: BaseException) -> bool:
    """Whether a decoder has rejected the content; an error of the disk would have an errno."""
    if isinstance(error, DamagedFile | pa.ArrowException):
        return True
    return isinstance(error, OSError) and not isinstance(error, ReadError) and error.errno is None


def _is_same(planned: FileStatus, size: int, version: str) -> bool:
    return size == planned.size and planned.version in ("", version)


def _changed(path: str, planned: FileStatus, found: FileStatus | None) -> str:
    was = _described(planned)
    now = "nothing: it is gone" if found is None else _described(found)
    return f"{path}: expected the file this run was planned with ({was}); got {now}. It changed while it was read"


def _described(status: FileStatus) -> str:
    size = f"{status.size:,} bytes"
    if not status.version.isdigit() or is_url(status.path):
        return f"{size}, version {status.version}" if status.version else size
    import datetime  # only an error needs it

    changed = datetime.datetime.fromtimestamp(int(status.version) / 1e9, datetime.UTC)
    return f"{size}, written {changed:%Y-%m-%d %H:%M:%S.%f} UTC"
