"""The processes of a local run, seen from the driver: start, send, receive, notice deaths.

It turns reality into events and decides nothing. Its twin for debuggers is in `inline_pool.py`.
"""

import contextlib
import os
import pickle
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gristmill.backends.local.launch import Server, signal_name
from gristmill.backends.local.server_line import ServerLine, standstill
from gristmill.engine import events as e
from gristmill.engine.plan import AnyTask, Group
from gristmill.errors import ConfigError
from gristmill.metrics.node_sample import NodeSample
from gristmill.worker import shared_memory
from gristmill.worker.channel import MAX_FDS, BufferedChannel, ChannelClosed
from gristmill.worker.crumbs import empty_block, place_of, read_crumb
from gristmill.worker.desk import Hearing, ParcelShelf, Posting
from gristmill.worker.fork_server import ServerPlan
from gristmill.worker.job import RunSettings
from gristmill.worker.machine import NodeSampler, oom_kills, own_bytes, resident_bytes
from gristmill.worker.stage_pickle import pickled
from gristmill.worker.wire import pack

AWAIT_S = 10.0  # for workers that were killed to be gone, before the server is too


class _Worker(msgspec.Struct, eq=False):
    group: Group
    channel: BufferedChannel
    crumbs: memoryview
    hearing: Hearing
    pid: int | None = None
    kill_reason: str | None = None
    closed: bool = False
    status: int | None = None
    posted: list[tuple[str, object]] = []  # goes out as one message
    posted_fds: list[int] = []
    watched: bool = False  # whether the selector watches for room in the socket


class ProcessPool(Posting):
    """Worker processes forked by a fork server."""

    def __init__(
        self,
        groups: tuple[Group, ...],
        settings: RunSettings,
        server: Server,
        gpu_names: Sequence[str] = (),
        scratch: str | None = None,
    ) -> None:
        self.groups = groups
        self.settings = settings
        self.server = server
        self.gpu_names = gpu_names
        self.scratch = scratch  # a directory to remove if the driver is killed
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, _Worker] = {}
        self._dirty: dict[int, None] = {}
        self._shelf = ParcelShelf()
        self._messages: list[str] = []
        self._oom_kills = 0
        self._sampler = NodeSampler()
        self._line = ServerLine(server, self._selector)

    def pack(self, task: AnyTask) -> int:
        return self._shelf.put(pack(task))

    def keep(self, payload: int) -> Callable[[], AnyTask]:
        return self._shelf.keep(payload)

    # Starting and ending

    def open(self) -> None:
        """Tell the server what to load."""
        self._oom_kills = oom_kills()
        settings = pickle.dumps(self.settings)
        self._line.open(ServerPlan(list(sys.path), str(Path.cwd()), pickled(self.groups), settings, self.scratch))

    def close(self) -> None:
        """End every worker; none is left when this returns."""
        for number in list(self._workers):
            self.kill(number, "the run is over")
        if self.server.is_kept:
            self._await_ends()
        for worker in self._workers.values():
            worker.channel.close()
        self._workers.clear()
        self._selector.close()
        if not self.server.is_kept:
            self.server.close()

    def _await_ends(self) -> None:
        """Hear of the end of every worker now: the next run has workers with the same numbers."""
        deadline = time.monotonic() + AWAIT_S
        with selectors.DefaultSelector() as said:
            said.register(self.server.sock, selectors.EVENT_READ)
            while any(worker.status is None for worker in self._workers.values()):
                said.select(max(0.0, deadline - time.monotonic()))
                messages, ended = self._line.receive()
                for kind, number, what in (message for message in messages if message[0] != "loaded"):
                    if kind == "started":  # it was still starting, and has a process now
                        self._workers[number].pid = what
                        self.kill(number, "the run is over")
                    else:
                        self._workers[number].status = what if kind == "exited" else 0
                if ended or time.monotonic() > deadline:  # stopped, or busy with an import: the next run gets another
                    self.server.end()
                    self.server.start_again()
                    return

    def start(self, number: int, group: int, node: int, gpus: tuple[int, ...], learnt: e.Learnt = ()) -> None:
        del node  # there is only this one
        ours, theirs = socket.socketpair()
        empty = empty_block(self.groups[group].lanes)
        crumb_fd = shared_memory.create(len(empty), lambda view: view.__setitem__(slice(None), empty))
        mapped = memoryview(shared_memory.map_block(os.dup(crumb_fd), len(empty)))
        self._workers[number] = _Worker(self.groups[group], BufferedChannel(ours), mapped, Hearing(number, self._shelf))
        self._selector.register(ours, selectors.EVENT_READ, number)
        names = tuple(self.gpu_names[gpu] for gpu in gpus)
        self._line.start((number, group, names, learnt), [theirs.detach(), crumb_fd])

    def kill(self, number: int, reason: str) -> None:
        worker = self._workers.get(number)
        if worker is not None and worker.pid is not None and worker.status is None:
            worker.kill_reason = reason
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)

    # Sending

    def _post(self, number: int, message: tuple[str, object], fds: Sequence[int] = ()) -> None:
        worker = self._workers.get(number)
        if worker is None or worker.closed:
            return
        if len(worker.posted_fds) + len(fds) > MAX_FDS:
            self._seal(worker)
        worker.posted.append(message)
        worker.posted_fds += fds
        self._dirty[number] = None

    @staticmethod
    def _seal(worker: _Worker) -> None:
        if worker.posted:
            worker.channel.send(worker.posted, worker.posted_fds)
            worker.posted, worker.posted_fds = [], []

    def flush(self) -> None:
        """Send what has been posted, as far as the sockets take it."""
        for number in list(self._dirty):
            worker = self._workers.get(number)
            if worker is None or worker.closed:
                del self._dirty[number]
                continue
            self._seal(worker)
            with contextlib.suppress(ChannelClosed):
                worker.channel.flush()
            full = worker.channel.wants_write
            if full != worker.watched:
                worker.watched = full
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if full else 0)
                self._selector.modify(worker.channel.sock, events, number)
            if not full:
                del self._dirty[number]

    # Receiving

    def poll(self, timeout: float) -> list[e.Event]:
        """Wait for news and return it as events."""
        events: list[e.Event] = []
        for key, mask in self._selector.select(timeout):
            if key.data is None:
                self._line.flush()
                events += self._hear_server()
            elif mask & selectors.EVENT_READ:
                events += self._hear_worker(key.data)
        if self._dirty:
            self.flush()
        return events

    def _hear_worker(self, number: int) -> list[e.Event]:
        worker = self._workers.get(number)
        if worker is None or worker.closed:  # it has ended since the selector saw something
            return []
        messages, closed = worker.channel.receive()
        events: list[e.Event] = []
        for batch, fds in messages:
            events += worker.hearing.events(batch, fds)
        if closed:
            worker.closed = True
            self._selector.unregister(worker.channel.sock)
        return events

    def _hear_server(self) -> list[e.Event]:
        messages, ended = self._line.receive()
        events: list[e.Event] = []
        for kind, *rest in messages:
            if kind == "loaded" and rest[0]:
                raise ConfigError(f"the pipeline's stages cannot be loaded in a new process:\n{rest[0]}")
            self.server.has_loaded = True
            if kind == "started":
                self._workers[rest[0]].pid = rest[1]
            elif kind == "exited":
                events += self._ended(*rest)
            elif kind == "refused":
                self._let_go(rest[0])
                events.append(e.WorkerSetupFailed(rest[0], f"a worker cannot be started: {rest[1]}"))
        return events + self._start_server_again() if ended else events

    def _start_server_again(self) -> list[e.Event]:
        """The workers have died with their server. None of them is to blame, nor the task it was doing."""
        events: list[e.Event] = []
        self._messages.append(self._line.start_again())
        for number in list(self._workers):
            events += self._hear_worker(number)
            self._let_go(number)
            events.append(e.WorkerExited(number))
        return events

    def _ended(self, number: int, status: int) -> list[e.Event]:
        """A worker has ended. Everything it said has arrived; its socket need not be closed, as a child may hold it."""
        worker = self._workers[number]
        events = self._hear_worker(number)
        worker.status = status
        self._let_go(number)
        if worker.hearing.drained:
            return [*events, e.WorkerExited(number)]
        if worker.hearing.failed_setup:
            return events
        cause = self._cause(worker, status)
        place = place_of(worker.crumbs, worker.group)
        self._messages.append(f"a worker of {worker.group.name} ended: {cause}" + (f" ({place})" if place else ""))
        return [*events, e.WorkerLost(number, cause, read_crumb(worker.crumbs))]

    def _let_go(self, number: int) -> None:
        worker = self._workers.pop(number)
        if not worker.closed:
            self._selector.unregister(worker.channel.sock)
        worker.channel.close()

    def _cause(self, worker: _Worker, status: int) -> str:
        if worker.kill_reason is not None:
            return worker.kill_reason
        if os.WIFSIGNALED(status):
            name = signal_name(os.WTERMSIG(status))
            killed = oom_kills()
            if name == "SIGKILL" and killed > self._oom_kills:
                self._oom_kills = killed
                return "killed by the system because memory ran out"
            hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
            return f"killed by {name}{hint}"
        return f"ended with exit code {os.WEXITSTATUS(status)}"

    # Words

    def describe(self, number: int) -> str:
        worker = self._workers[number]
        process = "" if worker.pid is None else f" (process {worker.pid})"
        return f"worker {number}{process} of {worker.group.name}"

    def where(self, number: int) -> str:
        """In which stage and document a worker is, or what keeps it, for a message."""
        worker = self._workers[number]
        if worker.pid is None:
            return f"it has no process yet: {self._line.doing()}"
        if worker.closed:
            return f"it is gone, but not given up: {self._line.doing()}"
        held = standstill(worker.pid)
        words = (place_of(worker.crumbs, worker.group), f"its process is {held}" if held else "")
        return "; ".join(word for word in words if word)

    def take_messages(self) -> list[str]:
        messages, self._messages = self._messages, []
        return messages

    def memory_bytes(self) -> int:
        """Resident memory of the driver and all its processes; what they share is counted once."""
        pids = [worker.pid for worker in self._workers.values() if worker.pid is not None]
        if not pids:  # the run is over, or has not begun: nothing is shared, so adding up shares, 3 ms, is not needed
            return own_bytes()
        return resident_bytes([os.getpid(), self.server.process.pid, *pids])

    def samples(self) -> list[NodeSample]:
        """This machine, as it was at most a few seconds ago."""
        return [self._sampler.latest()]
