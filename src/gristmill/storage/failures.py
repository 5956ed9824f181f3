"""What to tell a user when a disk or a store fails: the file, what the system says, how much room is left, what to do.

Only words are made here. Whether a failure is tried again, and how a run ends on it, is decided by the engine.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from gristmill.errors import GristmillError, MachineError, MachineFailed
from gristmill.storage.file_system import is_url, plain

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
        return str(error)  # has said it already
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
    explained.errno = error.errno  # not `filename`: with both Python would print its own sentence instead of ours
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
    """End a run with what the system says about one of its files; `directory` if it does not say which."""
    try:
        yield
    except MachineError as error:
        raise MachineFailed(f"{who}: {error}") from error
    except GristmillError:
        raise
    except OSError as error:  # of a file of the run: nothing else is opened by what is called so
        path = error.filename if isinstance(error.filename, str) else str(directory)
        raise MachineFailed(f"{who}: {explain(path, error)}") from error


def free_room(path: str) -> str | None:
    """Say how much is free where a path is, or would be; None if nobody can know, as with a store.

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
