"""What a run keeps beside its outputs: a lock on each directory it publishes in, and temporary files.

<output>/.gristmill/output.lock      held for as long as the run lives; on a store it is a lease
<output>/.gristmill/tmp/<session>/   what is not committed yet, beside the output: on a disk publishing is a rename
"""

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gristmill.errors import ConfigError, MachineError
from gristmill.runs.publication import OptionsOf, patiently
from gristmill.stages.context import STAGING_DIR
from gristmill.storage.file_system import is_url, plain

if TYPE_CHECKING:
    from gristmill.runs.store_lease import Lease
    from gristmill.storage.remote_file_system import RemoteFileSystem

# `LockFile`: one run at a time in a directory, for as long as its process lives.
#
# The lock is the kernel's (flock): it is free the moment the process is gone, however it went, and other machines see
# it on a network disk. What the file says is for people: the process, its machine, and which start of it.

# Which start of which machine this is: what was written before the last one may not have reached the disk.

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine_start() -> str:
    """Return a name that differs after every restart, and on every machine."""
    with contextlib.suppress(OSError):
        return BOOT_ID.read_text().strip()
    import psutil

    # To the second, and it shifts when the clock is set: then files are checked once more than necessary.
    return f"{socket.gethostname()} {psutil.boot_time():.0f}"


NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # a file system that has none
TRIES = 10  # `gristmill status` checks whether a lock is free by taking it for a moment
PAUSE_S = 0.02


class Holder(NamedTuple):
    """Who wrote a lock file."""

    pid: str
    host: str
    start: str  # of the machine
    lives: bool = False  # whether the process is known to be there, with or without the lock

    def __str__(self) -> str:
        elsewhere = f" of {self.host}" if self.host and self.host != socket.gethostname() else ""
        return f"process {self.pid}{elsewhere}"

    def is_of_another_start(self) -> bool:
        """Whether this machine was restarted since, or is a different one."""
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
        except BaseException:  # or nothing could take it while this process lives
            self.release()
            raise

    def release(self, *, remove: bool = False) -> None:
        """Release the lock. `remove` leaves no file behind."""
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
            os.close(descriptor)  # of a file its holder has removed since
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
    """Which process has, or had, the lock of a directory, and whether it lives; None if there never was one."""
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
    """For file systems without locks: whether a process of this start of this machine is there."""
    if holder.is_of_another_start() or not holder.pid.isdecimal():
        return False
    try:
        os.kill(int(holder.pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


HIDDEN = ".gristmill"  # in a directory a run publishes files in: its lock, its temporary files, often the run directory

LOCK_TRIES = 20


def make_directories(path: Path, *, mode: int, root: Path) -> None:
    """Make a directory and those missing above it; those below `root` or hidden get the mode, others the usual."""
    missing = [path, *path.parents]
    missing = missing[: next(number for number, place in enumerate(missing) if place.is_dir())]
    for place in reversed(missing):
        is_ours = place == path or HIDDEN in place.parts or root in (place, *place.parents)
        place.mkdir(mode=mode if is_ours else 0o777, exist_ok=True)


class DiskSinks:
    """The directories on disks of one run."""

    def __init__(self, session: str, root: Path, *, shared: bool) -> None:
        self._session = session
        self._root = root
        # Quarantine holds documents, the header paths and settings: no one else's business unless the user says so.
        self.file_mode, self.directory_mode = (0o666, 0o777) if shared else (0o600, 0o700)
        self._locks: list[tuple[LockFile, list[Path]]] = []  # with the directories that were made for them
        self._unlocked: set[str] = set()
        self._staging: list[Path] = []

    def make(self, path: Path) -> None:
        """Make a directory of the run."""
        make_directories(path, mode=self.directory_mode, root=self._root)

    def hold_outputs(self, directories: Iterable[str]) -> list[str]:
        """Keep every other run out of these directories; return what to tell the user where that cannot be done."""
        messages = []
        local = [directory for directory in directories if not is_url(directory)]
        for directory in {os.path.realpath(plain(path)): path for path in local}.values():
            home = Path(plain(directory)) / HIDDEN
            made = [path for path in (home.parent, home) if not path.exists()]
            try:
                self._locks.append((self._locked(home), made))
            except Held as held:
                raise ConfigError(
                    f"{directory}: expected no other run to write to this directory; {held} does. "
                    "Wait until it has ended, or choose another directory"
                ) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise ConfigError(f"{directory}: expected a directory that can be written to; {error}") from error
                self._unlocked.add(directory)
                messages.append(f"{directory}: its file system has no locks, so nothing keeps another run out of it")
        return messages

    def _locked(self, home: Path) -> LockFile:
        """Lock a directory. A run that ends at this moment may remove it: then it is made again."""
        for _ in range(LOCK_TRIES):
            # "Exists" too: `mkdir(exist_ok=True)` raises it if the directory is gone by the time it looks.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                self.make(home)
                return LockFile(home / "output.lock", self.file_mode)
        self.make(home)
        return LockFile(home / "output.lock", self.file_mode)

    def claim_staging(self, directories: Iterable[str]) -> None:
        """Remove what earlier sessions left under temporary names. The lock guarantees that those sessions are dead."""
        local = [directory for directory in directories if not is_url(directory)]
        self._staging = [Path(plain(directory)) / STAGING_DIR for directory in local]
        for directory, root in zip(local, self._staging, strict=True):
            if directory not in self._unlocked:
                shutil.rmtree(root, ignore_errors=True)

    def make_staging(self) -> None:
        """Make the temporary directories of this session."""
        for root in self._staging:
            self.make(root / self._session)
        for _, made in self._locks:
            made.clear()  # from here on they are the run's output, with files or without

    def close(self) -> None:
        """Remove what is temporary and release the directories."""
        for root in self._staging:
            shutil.rmtree(root / self._session, ignore_errors=True)
            with contextlib.suppress(OSError):
                root.rmdir()
                root.parent.rmdir()
        for lock, made in self._locks:
            lock.release(remove=True)
            for directory in dict.fromkeys([*reversed(made), lock.path.parent]):
                with contextlib.suppress(OSError):  # it may hold the run directory itself
                    directory.rmdir()
        self._locks.clear()


class StoreSinks:
    """The directories on stores of one run. A run without stores never makes one of these."""

    def __init__(self, session: str, options_of: OptionsOf) -> None:
        self._session = session
        self._options_of = options_of
        self._leases: dict[str, Lease] = {}  # by the directory they are in
        self._staging: list[str] = []

    def _store(self, url: str) -> "RemoteFileSystem":
        from gristmill.storage.remote_file_system import RemoteFileSystem

        return RemoteFileSystem(url, self._options_of(url))

    def hold(self, home: str) -> None:
        """Take the lease in a directory, unless this run has it already: a run directory is often in its output's."""
        home = home.rstrip("/")
        if home not in self._leases:
            from gristmill.runs.store_lease import Lease

            lease = Lease(self._store(home), home, self._session)
            lease.take()
            self._leases[home] = lease

    def hold_outputs(self, directories: Iterable[str]) -> list[str]:
        """Keep every other run out of these directories; return what to tell the user where that cannot be done."""
        messages = []
        for directory in filter(is_url, directories):
            from gristmill.runs.store_lease import NoConditionalWrites

            try:
                self.hold(f"{directory.rstrip('/')}/{HIDDEN}")
            except NoConditionalWrites:
                messages.append(
                    f"{directory}: its store has no conditional writes, so nothing keeps another run out of it"
                )
        return messages

    def check(self) -> None:
        """Raise if another run may be writing there by now."""
        for lease in self._leases.values():
            lease.check()

    def claim_staging(self, directories: Iterable[str]) -> None:
        """Remove what earlier sessions left under temporary names. The lease guarantees that those are dead."""
        self._staging = [f"{directory.rstrip('/')}/{STAGING_DIR}" for directory in filter(is_url, directories)]
        for root in self._staging:
            store = self._store(root)
            patiently(lambda store=store, root=root: store.remove_all(store.walk_all(root)))  # type: ignore[misc]
            store.abort_uploads(root)

    def make_staging(self) -> None:
        """Write something where the workers will: this reveals a missing bucket or a read-only key at once."""
        for root in self._staging:
            store, name = self._store(root), f"{root}/{self._session}/started"
            patiently(lambda store=store, name=name: store.write(name, b""))  # type: ignore[misc]

    def close(self) -> None:
        """Remove what is temporary and release the directories."""
        for root in self._staging:
            store = self._store(root)
            with contextlib.suppress(MachineError):  # the next run does it
                store.remove_all(store.walk_all(f"{root}/{self._session}"))
                store.abort_uploads(f"{root}/{self._session}")
        for lease in self._leases.values():
            lease.release()
        self._leases.clear()
        self._staging.clear()
