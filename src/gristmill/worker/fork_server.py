"""The fork server: a small clean process that imports everything once and forks a worker in a few milliseconds.

It has no threads, so forking it is safe whatever the user's program has running. It holds no decisions: it starts
workers, reports their ends, and when the driver is gone, however that happened, it kills them all, removes what the
driver would have removed, and ends itself. What it is doing is noted in a block of shared memory, for the driver to
read should it take long. A worker leads a process group; what is left of the group when it has ended is ended too.

Driver to server: ("plan", bytes) once a run, then ("start", *which) with [socket, crumb block] for each worker.
Server to driver: ("loaded", error), ("started", worker, pid), ("refused", worker, error), ("exited", worker, status).
"""

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from types import FrameType
from typing import Any

import msgspec

from gristmill.worker.channel import Channel, ChannelClosed
from gristmill.worker.notes import Notes

PR_SET_PDEATHSIG = 1
WAITING = "waiting for something to do"
FORK_PAUSES_S = (0.1, 0.3, 1.0)  # where the system has no room for another process just now

Which = tuple[int, int, tuple[str, ...], tuple[tuple[str, float], ...]]  # worker, group, GPUs, what was learnt
Loaded = tuple[Any, Any]  # groups and settings, typed where they are used: this file imports as little as it can


class _DriverGone(BaseException):  # no stage's import may catch it
    pass


class ServerPlan(msgspec.Struct, frozen=True):
    """What the server needs to know; the groups are pickled once more, to be opened when the path is set."""

    path: list[str]
    directory: str
    groups: bytes
    settings: bytes
    scratch: str | None  # the driver's temporary directory


def main() -> None:
    """Serve until the driver's end of the socket closes."""
    parent = os.getppid()
    server = _ForkServer(Channel(socket.socket(fileno=int(sys.argv[1]))), Notes.open(int(sys.argv[2])))
    # Not SIGKILL: there may be something to clean up. The closed socket says so too, but not during an import.
    signal.signal(signal.SIGTERM, _leave)
    _die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # prints of a killed worker are out by then
    driver_is_gone = False
    try:
        server.import_modules(sys.argv[3:])
        server.serve()
    except ChannelClosed:
        driver_is_gone = True
    except _DriverGone:
        driver_is_gone = os.getppid() != parent  # otherwise something else sent the signal, and the driver goes on
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the socket closes first, then the kernel says the same again
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        server.end(cleans_up=driver_is_gone)
        os._exit(0 if driver_is_gone else 1)  # at once: shutting an interpreter down takes longer than many a run


class _ForkServer:
    """The state of the server."""

    def __init__(self, channel: Channel, note: Notes) -> None:
        self.channel = channel
        self.note = note
        self.workers: dict[int, int] = {}  # pid -> worker
        self.loaded: Loaded | None = None
        self.scratch: str | None = None

    def import_modules(self, modules: list[str]) -> None:
        """Import once here, not in every worker, and while the driver is still importing what it needs itself."""
        for module in modules:
            self.note(f"importing {module}")
            importlib.import_module(module)

    def serve(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            self.note(WAITING)
            readable, _, _ = select.select([self.channel.sock.fileno(), wake_read], [], [])
            if wake_read in readable:
                os.read(wake_read, 4096)
                self._report_ended()
            if self.channel.sock.fileno() in readable:
                for message, fds in self.channel.receive():
                    if message[0] == "plan":
                        self._load(message[1])
                    elif self.loaded is not None:  # what cannot be loaded cannot be started; the driver has been told
                        self.note(f"starting worker {message[1]}")
                        self._start(self.loaded, message[1:], fds)

    def end(self, *, cleans_up: bool) -> None:
        for pid in self.workers:
            _end_group(pid)
        if cleans_up and self.scratch is not None:
            _remove(self.scratch)

    def _load(self, plan: ServerPlan) -> None:
        self.scratch, self.loaded = plan.scratch, None
        sys.path[:] = plan.path
        os.chdir(plan.directory)
        from gristmill.worker.stage_pickle import load_stages

        own = os.getpid()
        groups, error = load_stages(plan.groups, self.note)
        if os.getpid() != own:
            os._exit(1)  # a stage has forked and come back; there can be only one server
        self.channel.send(("loaded", error))
        if not error:
            settings = pickle.loads(plan.settings)
            self.import_modules(["gristmill.worker.worker_log"])
            if settings.observation.is_on and "pyarrow" in sys.modules:
                self.import_modules(["gristmill.worker.tallying", "gristmill.worker.observer"])
            gc.freeze()  # a collection in a worker would write to, and so copy, every page shared with this process
            self.loaded = groups, settings

    def _start(self, loaded: Loaded, which: Which, fds: list[int]) -> None:
        server = os.getpid()
        try:
            pid = _fork()
        except OSError as error:
            words = f"{error}: the system allows no more processes, or has no memory for one"
            self.channel.send(("refused", which[0], words))
        else:
            if pid == 0:
                _be_worker(self.channel, server, loaded, which, fds)
            self.workers[pid] = which[0]
            with contextlib.suppress(OSError):  # the worker does it too: it must be done before anything looks
                os.setpgid(pid, pid)
            self.channel.send(("started", which[0], pid))
        for fd in fds:
            os.close(fd)

    def _report_ended(self) -> None:
        while self.workers and (ended := self._next_ended()) is not None:
            pid, status = ended
            if pid in self.workers:  # a stage may have started other processes, in `before_fork`
                self.channel.send(("exited", self.workers.pop(pid), status))

    def _next_ended(self) -> tuple[int, int] | None:
        """A child that has ended, with its status; None if all are alive. What is left of its group is ended."""
        with contextlib.suppress(ChildProcessError):
            if not hasattr(os, "waitid"):  # macOS
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid in self.workers:
                    _end_group(pid)
                return (pid, status) if pid else None
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                if found.si_pid in self.workers:
                    _end_group(found.si_pid)  # before it is waited for: until then no other process gets its number
                return os.waitpid(found.si_pid, 0)
        return None


def _remove(directory: str) -> None:
    """Remove a directory with all that is in it, as far as possible. The driver waits for it, and shutil takes 2 ms."""
    for path, directories, files in os.walk(directory, topdown=False):
        for name in (*files, *directories):
            with contextlib.suppress(OSError):
                os.unlink(f"{path}/{name}")  # noqa: PTH108  # a link to a directory too
        with contextlib.suppress(OSError):
            os.rmdir(path)  # noqa: PTH106


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()  # or every worker would print it again
    for pause_s in FORK_PAUSES_S:
        try:
            return os.fork()
        except OSError:
            time.sleep(pause_s)
    return os.fork()


def _be_worker(channel: Channel, server: int, loaded: Loaded, which: Which, fds: list[int]) -> None:
    """Be the new process; never returns: whatever happens, it must not run on into the server's loop."""
    status = 1
    own = os.getpid()
    try:
        os.setpgid(0, 0)
        channel.sock.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _die_with_parent(signal.SIGKILL)
        if os.getppid() != server:  # the server died before we asked
            os._exit(1)
        from gristmill.worker.loop import work

        work(loaded, which, socket.socket(fileno=fds[0]), fds[1])
        status = 0
    finally:
        if status and os.getpid() == own:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_group(pid: int) -> None:
    """Kill a worker, if it is there, and what its stages have started and not ended."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _DriverGone


def _die_with_parent(number: signal.Signals) -> None:
    """Ask the kernel for a signal when the parent of this process dies. Elsewhere the closed socket must do instead."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
