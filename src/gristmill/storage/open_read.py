"""Read bytes: part of a plain file, or a whole one as a stream that may be compressed.

A file that is cut off or damaged is a `ReadError` that names it. What the bytes mean is not known here.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.storage.file_system import StorageOptions, file_system, is_url, plain

_PIECE_BYTES = 1 << 20
_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def read_range(path: str, start: int, end: int, *, storage_options: StorageOptions | None = None) -> pa.Buffer:
    """Return bytes start to end of a plain file, fewer where the file ends before.

    Read, not mapped: a file that shrinks while it is mapped ends the process with SIGBUS. Into Arrow's memory, not into
    `bytes`: Arrow's pool hands out the same pages again, where fresh ones cost 0.7 ms a megabyte.
    """
    try:
        if not is_url(path):
            return _pread(plain(path), start, end - start)
        with file_system(path, storage_options).open_read(path) as file:
            file.seek(start)
            return pa.py_buffer(file.read(end - start))
    except OSError as error:
        raise ReadError(f"{path}: expected to read bytes {start} to {end}; got {error}") from error


def _pread(path: str, start: int, length: int) -> pa.Buffer:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        length = max(0, min(length, os.fstat(descriptor).st_size - start))
        buffer = pa.allocate_buffer(length)
        view, done = memoryview(buffer), 0
        while done < length and (count := os.preadv(descriptor, [view[done : done + (1 << 30)]], start + done)):
            done += count
        return buffer.slice(0, done)
    finally:
        os.close(descriptor)


def open_stream(path: str, *, storage_options: StorageOptions | None = None) -> pa.NativeFile:
    """Open a file for sequential reading, decompressed if its name says it is compressed."""
    codec = next((name for suffix, name in _CODECS.items() if path.endswith(suffix)), None)
    try:
        raw: object = plain(path) if not is_url(path) else file_system(path, storage_options).open_read(path)
        if codec is None:
            return pa.PythonFile(raw) if is_url(path) else pa.OSFile(raw)
        return pa.CompressedInputStream(raw if is_url(path) else pa.OSFile(raw), codec)
    except OSError as error:
        raise ReadError(f"{path}: expected a readable file; got {error}") from error


def read_pieces(path: str, *, storage_options: StorageOptions | None = None) -> Iterator[bytes]:
    """Yield the (decompressed) content in pieces of at most 1 MiB.

    A damaged file yields what is before the damage, up to one piece, and then raises `ReadError`.
    """
    size = 0
    with open_stream(path, storage_options=storage_options) as stream:
        while True:
            try:
                piece = stream.read(_PIECE_BYTES)
            except OSError as error:
                at = f"after {size} bytes of content"
                raise ReadError(f"{path}: expected a whole compressed file; got an error {at}: {error}") from error
            if not piece:
                return
            size += len(piece)
            yield piece


def read_start(path: str, num_bytes: int, *, storage_options: StorageOptions | None = None) -> bytes:
    """Return the first bytes of the (decompressed) content."""
    return next(read_pieces(path, storage_options=storage_options), b"")[:num_bytes]


def read_all(path: str, *, storage_options: StorageOptions | None = None) -> bytes:
    """Return the whole content, decompressed."""
    return b"".join(read_pieces(path, storage_options=storage_options))


def file_size(path: str, *, storage_options: StorageOptions | None = None) -> int:
    """Return how many bytes a file has as it is stored."""
    if not is_url(path):
        try:
            return Path(plain(path)).stat().st_size
        except OSError as error:
            raise ReadError(f"{path}: expected a readable file; got {error}") from error
    status = file_system(path, storage_options).status(path)
    if status is None:
        raise ReadError(f"{path}: expected a readable file; got none")
    return status.size
