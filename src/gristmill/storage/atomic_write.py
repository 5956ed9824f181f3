"""Write files so that each appears whole or not at all.

A file is written under a temporary name, checksummed on the way, forced to disk and renamed; then its new name is
forced too. `write_file` does all of it. In a run the steps are taken separately: `stage_file` writes, `force_file` is
called where machines may be lost in between, and `publish` renames once the ledger says so.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import xxhash

from gristmill.errors import GristmillError, MachineError, MachineFailed
from gristmill.storage.file_system import StorageOptions, file_system, is_url, plain

# What to tell a user when a disk or a store fails: the file, what the system says, how much room is left, what to do.
#
# Only the wording is made here. Whether to try again after a failure, and how it ends a run, is decided by the engine.

GO_ON = "run the same command again to go on; nothing that is committed is lost"
_ADVICE = {
    errno.ENOSPC: "Make room",
    errno.EDQUOT: "Make room or have the quota raised",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "Mount the file system for writing (a disk with errors is made read-only: see dmesg)",
    errno.EIO: "Check the disk (dmesg says what it reported)",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENFILE: "Let fewer programs run: the whole machine has no file handles left",
    errno.ESTALE: "Mount the network file system again",
    errno.EACCES: "Allow this user to write there",
    errno.EPERM: "Allow this user to write there",
    errno.ENOENT: "Find out what removed it while the run was using it",
    errno.ENOTDIR: "Find out what replaced a directory above it",
    errno.ENAMETOOLONG: "Choose a directory with a shorter path",
}
_WHERE_ROOM_MATTERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


def explain(path: str, error: OSError) -> str:
    """Say that a file of the run cannot be used, why, how much room there is and how to go on.

    >>> explain("s3://bucket/out/a.jsonl", PermissionError(13, "Permission denied"))  # doctest: +ELLIPSIS
    's3://bucket/out/a.jsonl: Permission denied. Allow this user to write there, then run the same command again ...'
    """
    if isinstance(error, GristmillError):
        return str(error)  # it has been explained already
    number = error.errno
    reason = error.strerror or str(error) or type(error).__name__
    room = free_room(path) if number in _WHERE_ROOM_MATTERS else None
    advice = _ADVICE.get(number) if number is not None else None
    return f"{path}: {reason}{f' ({room})' if room else ''}. {advice or 'Fix this'}, then {GO_ON}."


def machine_error(path: str, error: OSError) -> MachineError:
    """Return the error to raise in place of a system's own about a file of the run."""
    if isinstance(error, MachineError):
        return error
    explained = MachineError(explain(path, error))
    explained.errno = error.errno  # not `filename`: with both, Python would print its own sentence instead of ours
    return explained


@contextlib.contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Raise what the system says about a file of the run as a `MachineError`, in words."""
    try:
        yield
    except GristmillError:
        raise
    except OSError as error:
        raise machine_error(str(path), error) from error


@contextlib.contextmanager
def machine_failures(who: str, directory: str | Path) -> Iterator[None]:
    """End a run with what the system says about one of its files, or about `directory` if it does not say which."""
    try:
        yield
    except MachineError as error:
        raise MachineFailed(f"{who}: {error}") from error
    except GristmillError:
        raise
    except OSError as error:  # about a file of the run: code called in this way opens nothing else
        path = error.filename if isinstance(error.filename, str) else str(directory)
        raise MachineFailed(f"{who}: {explain(path, error)}") from error


def free_room(path: str) -> str | None:
    """Say how much is free where a path is, or would be; None if that cannot be known, as with a store.

    Reserved blocks do not count: a user cannot have them. A file system may also run out of names (inodes).
    """
    if is_url(path):
        return None
    place = Path(plain(path)).absolute()
    for directory in (place, *place.parents):
        with contextlib.suppress(OSError):
            found = os.statvfs(directory)
            names = ", no inode free" if found.f_files and not found.f_favail else ""
            return f"{_amount(found.f_bavail * found.f_frsize)} free on its file system{names}"
    return None


def _amount(count: int) -> str:
    if count < 1000:
        return f"{count} bytes"
    power = min(4, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


# Bytes given to the system at a time. For more than that it looks for large blocks of memory, which a virtual machine
# has often given back to its host: written in one piece, 768 MB took 2.8 s here, in pieces of this size 0.3 s.
_PIECE_BYTES = 1 << 17
_SETTLED_S = 600  # every file system writes a new name to disk by itself within this time (ext4: 5 s, XFS: 30 s)
_NOT_FOR_DIRECTORIES = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # some network file systems have no such fsync
Chunk = bytes | memoryview


class WrittenFile(msgspec.Struct, frozen=True):
    """What was written, and where."""

    path: str
    num_bytes: int
    checksum: str


def stage_file(
    temporary: str, chunks: Iterable[Chunk], *, storage_options: StorageOptions | None = None
) -> WrittenFile:
    """Write a file under a temporary name.

    The directory must exist: the process that started the run made it, and has removed it if the run is over. So a
    worker that outlives its run cannot leave a file behind.
    """
    fs = file_system(temporary, storage_options)
    digest, size = xxhash.xxh3_128(), 0
    with explained(temporary), fs.open_write(temporary) as file:
        for chunk in chunks:
            for piece in _pieces(chunk):
                digest.update(piece)
                file.write(piece)
            size += len(chunk)
    return WrittenFile(temporary, size, _named(digest))


def write_file(
    path: str, chunks: Iterable[Chunk], *, storage_options: StorageOptions | None = None, forced: bool = True
) -> WrittenFile:
    """Write a file that appears under its name at once; unless `forced`, it may be lost if the machine stops."""
    directory, _, name = path.rpartition("/")
    temporary = f"{directory}/.{name}.{os.getpid()}.tmp" if directory else f".{name}.{os.getpid()}.tmp"
    with explained(path):
        make_directory(directory or ".", storage_options=storage_options)
        try:
            written = stage_file(temporary, chunks, storage_options=storage_options)
            if forced:
                force_file(temporary)
            publish(temporary, path, storage_options=storage_options)
            if forced:
                force_names(directory or ".")
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to report
                remove(temporary, storage_options=storage_options)
            raise
    return WrittenFile(path, written.num_bytes, written.checksum)


@contextlib.contextmanager
def whole_file(path: Path, *, forced: bool = False) -> Iterator[Path]:
    """Yield where to write a local file; it appears as `path` afterwards, or not at all if writing failed."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with explained(path):
            yield temporary
            if forced:
                force_file(str(temporary))
            temporary.replace(path)
            if forced:
                force_names(str(path.parent))
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
        raise


def publish(temporary: str, final: str, *, storage_options: StorageOptions | None = None) -> None:
    """Give a staged file its final name. Doing so again after a crash is not an error."""
    fs = file_system(final, storage_options)
    if fs.status(temporary) is None and fs.status(final) is not None:
        return
    fs.rename(temporary, final)


def remove(path: str, *, storage_options: StorageOptions | None = None) -> None:
    """Remove a file, if it is there."""
    file_system(path, storage_options).remove(path)


def remove_for_good(paths: Iterable[str], *, storage_options: StorageOptions | None = None) -> None:
    """Remove files so that none reappears after the machine has stopped."""
    directories = set()
    for path in paths:
        remove(path, storage_options=storage_options)
        directories.add(path.rpartition("/")[0] or ".")
    for directory in sorted(directories):
        if is_url(directory) or Path(plain(directory)).is_dir():  # else the whole directory is gone
            force_names(directory)


def make_directory(path: str, *, storage_options: StorageOptions | None = None) -> None:
    """Make a directory and its parents, if they are not there."""
    file_system(path, storage_options).make_directory(path)


def force_file(path: str) -> None:
    """Return once a file is on disk, whatever becomes of the machine. An object of a store is safe once closed."""
    if is_url(path):
        return
    with explained(path):
        descriptor = os.open(plain(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def force_names(directory: str, *, above: bool = False) -> None:
    """Return once the names in a directory are on disk: those made, those changed and those removed.

    Forcing a file does not force its name, though some file systems do both. A new directory has a name too, and those
    above may be new: with `above` they are forced up to the first directory in which nothing has changed lately.
    """
    if is_url(directory):
        return
    place = Path(plain(directory)).absolute()
    with explained(directory):
        if not above:
            _force_names_in(place)
            return
        from concurrent.futures import ThreadPoolExecutor  # for the driver: workers write without it

        places = [place, *_new_above(place)]
        with ThreadPoolExecutor(len(places)) as forcing:  # all at once: a file system then writes them to disk together
            list(forcing.map(_force_names_in, places))


def _new_above(directory: Path) -> Iterator[Path]:
    for parent in directory.parents:
        if time.time() - parent.stat().st_mtime > _SETTLED_S:
            return
        if os.access(parent, os.R_OK):  # another user's directory is not ours to force
            yield parent


def _force_names_in(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_FOR_DIRECTORIES:
            raise
    finally:
        os.close(descriptor)


def checksum_of(path: str) -> str:
    """Return the checksum of a local file, in the form noted when it was written."""
    with Path(plain(path)).open("rb") as file:
        return checksum_of_stream(file)


def checksum_of_stream(file: BinaryIO) -> str:
    """Return the checksum of the rest of an open file."""
    digest = xxhash.xxh3_128()
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return _named(digest)


def _pieces(chunk: Chunk) -> Iterator[Chunk]:
    if len(chunk) <= _PIECE_BYTES:
        yield chunk
        return
    view = memoryview(chunk).cast("B")
    for start in range(0, len(view), _PIECE_BYTES):
        yield view[start : start + _PIECE_BYTES]


def _named(digest: xxhash.xxh3_128) -> str:
    return f"xxh3:{digest.hexdigest()}"
