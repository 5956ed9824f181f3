"""What a run keeps on stores beside its outputs: a lease on each directory it publishes in, and temporary objects."""

import contextlib
from collections.abc import Iterable

from gristmill.errors import MachineError
from gristmill.runs.publication import patiently
from gristmill.runs.store_lease import Lease, NoConditionalWrites
from gristmill.runs.store_options import OptionsOf
from gristmill.stages.context import STAGING_DIR
from gristmill.storage.file_system import is_url
from gristmill.storage.remote_file_system import RemoteFileSystem

HIDDEN = ".gristmill"


class StoreSinks:
    """The directories on stores of one run. A run without any never makes one of these."""

    def __init__(self, session: str, options_of: OptionsOf) -> None:
        self._session = session
        self._options_of = options_of
        self._leases: dict[str, Lease] = {}  # by the directory they are in
        self._staging: list[str] = []

    def _store(self, url: str) -> RemoteFileSystem:
        return RemoteFileSystem(url, self._options_of(url))

    def hold(self, home: str) -> None:
        """Take the lease in a directory, unless this run has it already: a run directory is often in its output's."""
        home = home.rstrip("/")
        if home not in self._leases:
            lease = Lease(self._store(home), home, self._session)
            lease.take()
            self._leases[home] = lease

    def hold_outputs(self, directories: Iterable[str]) -> list[str]:
        """Keep every other run out of these directories; return what to tell the user where that cannot be done."""
        messages = []
        for directory in filter(is_url, directories):
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
