"""`LockFile`: one run at a time in a directory, for as long as its process lives.

The lock is the kernel's (flock): it is free the moment the process is gone, however it went, and other machines see it
on a network disk. What the file says is for people: the process, its machine, and which start of it.
"""

import contextlib
import errno
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import NamedTuple

# Which start of which machine this is: what was written before the last one may not have reached the disk.

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine_start() -> str:
    """Return a name that is another after every restart, and on every machine."""
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text().strip()
    import psutil

    # To the second, and moved when the clock is set: then files are looked at once more than they need be.
    return f"{socket.gethostname()} {psutil.boot_time():.0f}"


NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that has none
TRIES = 10  # `gristmill status` looks whether a lock is free, which takes it for a moment
PAUSE_S = 0.02


class Holder(NamedTuple):
    """Who wrote a lock file."""

    pid: str
    host: str
    start: str  # of the machine
    lives: bool = False  # the process is known to be there, whether or not it has the lock

    def __str__(self) -> str:
        elsewhere = f" of {self.host}" if self.host and self.host != socket.gethostname() else ""
        return f"process {self.pid}{elsewhere}"

    def is_of_another_start(self) -> bool:
        """Whether this machine was started again since, or is another."""
        return self.start.strip() != machine_start()


class Held(Exception):  # an answer more than an error
    """Another run has the lock."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(str(holder))
        self.holder = holder


class LockFile:
    """A lock that is taken when it is made. OSError if there is no place for it, or no locks."""

    def __init__(self, path: Path, mode: int = 0o600) -> None:
        self.path = path
        self._descriptor = _taken(path, mode)
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {socket.gethostname()} {machine_start()}\n".encode(), 0)
        except BaseException:  # or nobody could have it while this process lives
            self.release()
            raise

    def release(self, *, remove: bool = False) -> None:
        """Let others have it. `remove` leaves no file behind."""
        if self._descriptor >= 0:
            if remove:
                with contextlib.suppress(OSError):  # a file that stays does no harm, a lock that stays does
                    self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
        self._descriptor = -1


def _taken(path: Path, mode: int) -> int:
    for attempt in range(TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                return descriptor
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            if attempt == TRIES - 1:
                raise Held(holder) from None
            time.sleep(PAUSE_S)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            os.close(descriptor)  # of a file that whoever had it has removed since
    raise Held(Holder("?", "", ""))


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> Holder:
    words = os.pread(descriptor, 300, 0).decode(errors="replace").split(maxsplit=2)
    pid, host, start = (*words, "", "", "")[:3] if words else ("?", "", "")
    return Holder(pid, host, start)


def holder_of(path: Path) -> tuple[Holder, bool] | None:
    """Who has, or had, the lock of a directory, and whether they live; None if there never was one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        holder = _holder(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return holder, True
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return holder, _is_running(holder)
        return holder, False
    finally:
        os.close(descriptor)


def _is_running(holder: Holder) -> bool:
    """Where the file system has no locks: a process of this start of this machine that is there."""
    if holder.is_of_another_start() or not holder.pid.isdecimal():
        return False
    try:
        os.kill(int(holder.pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
