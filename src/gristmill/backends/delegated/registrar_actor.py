"""Registrars in an actor, and how workers and the driver talk to one. Ray is imported when a run begins.

The actor is an office with a registrar for each run: starting a process takes a second of a core, so runs in a row
share it, and a late worker of an earlier run asks in vain instead of disturbing the next run.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from gristmill.backends.delegated.envelope import Envelope, Receipt, Ticket, unpack
from gristmill.backends.delegated.registrar import News, Registrar
from gristmill.backends.ray_connection import check_connected
from gristmill.engine.events import Learnt
from gristmill.engine.faults import Fault
from gristmill.metrics.node_sample import NodeSample

if TYPE_CHECKING:
    from collections.abc import Callable

    from gristmill.engine.plan import AnyTask


class _Office:
    """The process. It also owns final tasks: what a worker owns is gone with the worker."""

    def __init__(self) -> None:
        self._registrars: dict[str, Registrar] = {}

    def open(self, session: str) -> None:
        """Begin a run; those before are over."""
        self._registrars = {session: Registrar()}

    def ask(self, session: str, method: str, arguments: tuple[object, ...], named: dict[str, object]) -> object:
        return getattr(self._registrars[session], method)(*arguments, **named)

    def keep(self, envelope: Envelope) -> object:
        import ray

        return [ray.put(envelope)]  # in a list, so that the reference itself is the answer


class RegistrarOffice:
    """The office of one run, or of several in a row. It is started when the first of them begins."""

    def __init__(self) -> None:
        self._actor: Any = None  # Ray has no type for the handle of an actor

    def open(self, session: str) -> "RemoteRegistrar":
        """The registrar of a run. Its process ends with the last handle to it."""
        import ray

        if self._actor is None:
            # It needs no core of its own: most of the time it waits.
            self._actor = ray.remote(_Office).options(num_cpus=0, max_restarts=0).remote()
        ray.get(self._actor.open.remote(session))  # or a worker might ask before the run has begun
        return RemoteRegistrar(self._actor, session)


class RemoteRegistrar:
    """A handle that may be sent to workers. Every call waits for the answer."""

    def __init__(self, actor: Any, session: str) -> None:
        self._actor = actor
        self._session = session

    def _ask(self, method: str, *arguments: object, **named: object) -> Any:
        import ray

        return ray.get(self._actor.ask.remote(self._session, method, arguments, named))

    def begin(self, group: int, worker: str, items: Sequence[tuple[int, str]]) -> list[Ticket | None]:
        return list(self._ask("begin", group, worker, items))

    def leave_crumb(self, group: int, item_id: str, crumb: tuple[int, int, int, int]) -> None:
        self._ask("leave_crumb", group, item_id, crumb)

    def raised(self, group: int, item_id: str, stage: str, error: str, fault: Fault) -> Ticket:
        return Ticket(*self._ask("raised", group, item_id, stage, error, fault))

    def finish(self, receipts: Sequence[Receipt]) -> list[bool]:
        return list(self._ask("finish", receipts)) if receipts else []

    def keep(self, envelope: Envelope) -> object:
        import ray

        kept: Any = ray.get(self._actor.keep.remote(envelope))
        return kept[0]

    def learnt(self, group: int) -> Learnt:
        return cast("Learnt", self._ask("learnt", group))

    def worker_ready(self, group: int) -> None:
        self._ask("worker_ready", group)

    def set_up_failed(self, error: str) -> None:
        self._ask("set_up_failed", error)

    def claim_node(self, node: str) -> str:
        return str(self._ask("claim_node", node))

    def node_ready(self, node: str) -> None:
        self._ask("node_ready", node)

    def say(self, message: str) -> None:
        # Do not wait for an answer: the caller is a watchdog, and the run may be over.
        self._actor.ask.remote(self._session, "say", (message,), {})

    def sampled(self, group: int, worker: str, memory_bytes: int, sample: NodeSample) -> None:
        # Do not wait: it says nothing about the work.
        self._actor.ask.remote(self._session, "sampled", (group, worker, memory_bytes, sample), {})

    @staticmethod
    def _unpack(envelope: Envelope) -> "AnyTask":
        return unpack(envelope)

    # For the driver

    def take(self) -> News:
        return News(*self._ask("take"))

    def running(self) -> dict[int, list[str]]:
        return dict(self._ask("running"))

    def closed(self) -> set[int]:
        return set(self._ask("closed"))

    def close(self, roots: Sequence[int]) -> None:
        if roots:
            self._ask("close", roots)

    def stop(self) -> None:
        self._ask("stop")

    def fetch(self, reference: object) -> "Callable[[], AnyTask]":
        """A function that gets a final task when it is looked at; the office lives as long as this function."""

        def get() -> "AnyTask":
            import ray

            check_connected()
            fetched: Any = ray.get(cast("Any", reference))
            return self._unpack(fetched)  # through self: an actor without a handle ends, and its objects with it

        return get
