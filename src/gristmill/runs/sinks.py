"""What a run keeps beside its outputs: a lock on each directory it publishes in, and temporary files.

<output>/.gristmill/output.lock      held for as long as the run lives; on a store it is a lease
<output>/.gristmill/tmp/<session>/   what is not committed yet, beside the output: on a disk publishing is a rename
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError, MachineError
from gristmill.runs.lock_file import NO_LOCKS, Held, LockFile
from gristmill.runs.publication import OptionsOf, patiently
from gristmill.stages.context import STAGING_DIR
from gristmill.storage.file_system import is_url, plain

if TYPE_CHECKING:  # what is for stores is loaded where there is one: every start of a program would pay for it
    from gristmill.runs.store_lease import Lease
    from gristmill.storage.remote_file_system import RemoteFileSystem

HIDDEN = ".gristmill"  # in a directory a run publishes files in: its lock, its temporary files, often the run directory

TRIES = 20


def make_directories(path: Path, *, mode: int, root: Path) -> None:
    """Make a directory and what is missing above it; what is below `root` or hidden gets the mode, others the usual."""
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
        # Quarantine holds documents, the header paths and settings: nobody else's business unless somebody says so.
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
                    f"{directory}: expected no other run into this directory; {held} is writing to it. "
                    "Wait until it has ended, or choose another directory"
                ) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise ConfigError(f"{directory}: expected a directory that can be written to; {error}") from error
                self._unlocked.add(directory)
                messages.append(f"{directory}: its file system has no locks, so nothing keeps another run out of it")
        return messages

    def _locked(self, home: Path) -> LockFile:
        """Lock a directory. A run that ends at this moment may remove it in between: then it is made again."""
        for _ in range(TRIES):
            # "Exists" too: `mkdir(exist_ok=True)` says so of a directory that is gone when it looks what is there.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                self.make(home)
                return LockFile(home / "output.lock", self.file_mode)
        self.make(home)
        return LockFile(home / "output.lock", self.file_mode)

    def claim_staging(self, directories: Iterable[str]) -> None:
        """Remove what earlier sessions left under temporary names. Whoever has the lock knows that they are dead."""
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
        """Remove what is temporary and let others have the directories."""
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
    """The directories on stores of one run. A run without any never makes one of these."""

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
        """Remove what earlier sessions left under temporary names. Whoever has the lease knows that they are dead."""
        self._staging = [f"{directory.rstrip('/')}/{STAGING_DIR}" for directory in filter(is_url, directories)]
        for root in self._staging:
            store = self._store(root)
            patiently(lambda store=store, root=root: store.remove_all(store.walk_all(root)))  # type: ignore[misc]
            store.abort_uploads(root)

    def make_staging(self) -> None:
        """Write something where the workers will: a missing bucket or a key that may only read is found now."""
        for root in self._staging:
            store, name = self._store(root), f"{root}/{self._session}/started"
            patiently(lambda store=store, name=name: store.write(name, b""))  # type: ignore[misc]

    def close(self) -> None:
        """Remove what is temporary and let others have the directories."""
        for root in self._staging:
            store = self._store(root)
            with contextlib.suppress(MachineError):  # the next run does it
                store.remove_all(store.walk_all(f"{root}/{self._session}"))
                store.abort_uploads(f"{root}/{self._session}")
        for lease in self._leases.values():
            lease.release()
        self._leases.clear()
        self._staging.clear()
