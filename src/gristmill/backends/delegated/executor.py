"""`DelegatedExecutor`: what executors have in common that hand a plan to another engine."""

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from gristmill.backends.base import BaseExecutor
from gristmill.backends.ray_connection import cluster_has_gpu

if TYPE_CHECKING:  # what runs a plan is imported when one runs
    from gristmill.backends.delegated.registrar_actor import RegistrarOffice


class DelegatedExecutor(BaseExecutor):
    """Runs in a row share the process that keeps their books; starting and ending workers is up to the other engine."""

    _office: "RegistrarOffice | None" = None

    def has_gpu(self) -> bool:
        return cluster_has_gpu(type(self).__name__)

    @contextlib.contextmanager
    def kept_ready(self, imports: Sequence[str] = ()) -> Iterator[Self]:
        """Yield an executor whose runs share the process that keeps their books: one start less for each."""
        del imports  # workers are the other engine's
        if self._office is not None:
            yield self
            return
        ready = copy.copy(self)
        object.__setattr__(ready, "_office", self.office())  # frozen for everyone else
        yield ready

    def office(self) -> "RegistrarOffice":
        """Where the books of a run are kept."""
        from gristmill.backends.delegated.registrar_actor import RegistrarOffice

        return self._office or RegistrarOffice()
