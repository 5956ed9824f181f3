"""The fork server: a small clean process that imports everything once and forks a worker in a few milliseconds.

It has no threads, so forking it is safe whatever the user's program has running. It holds no decisions: it starts
workers, reports their ends, and when the driver is gone, however that happened, it kills them all, removes what the
driver would have removed, and ends itself.

Driver to server: ("plan", bytes) once a run, then ("start", worker, group, gpus) with [socket, crumb block] each.
Server to driver: ("loaded", error), ("started", worker, pid), ("exited", worker, wait status).
"""

import ctypes
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import socket
import sys
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

from gristmill.backends.processes.channel import Channel, ChannelClosed

PR_SET_PDEATHSIG = 1

Loaded = tuple[Any, Any]  # groups and settings, typed where they are used: this file imports as little as it can


class _DriverGone(BaseException):  # no stage's import may catch it
    pass


@dataclass(frozen=True)
class ServerPlan:
    """What the server needs to know; the groups are pickled once more, to be opened when the path is set."""

    path: list[str]
    directory: str
    groups: bytes
    settings: bytes
    scratch: str | None  # the driver's temporary directory


def main() -> None:
    """Serve until the driver's end of the socket closes."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    # Not SIGKILL: there may be something to clean up. The closed socket says the same, but not during an import.
    signal.signal(signal.SIGTERM, _leave)
    _die_with_parent(signal.SIGTERM)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    workers: dict[int, int] = {}  # pid -> worker
    loaded: Loaded | None = None
    scratch: str | None = None
    try:
        _import(sys.argv[2:])
        while True:
            readable, _, _ = select.select([channel.sock.fileno(), wake_read], [], [])
            if wake_read in readable:
                os.read(wake_read, 4096)
                _report_ended(channel, workers)
            if channel.sock.fileno() not in readable:
                continue
            for message, fds in channel.receive():
                if message[0] == "plan":
                    scratch = message[1].scratch
                    loaded = _load(channel, message[1])
                elif loaded is not None:  # what cannot be loaded cannot be started; the driver has been told
                    _start(channel, workers, loaded, message[1:], fds)
    except (ChannelClosed, _DriverGone):
        pass
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(0)  # at once: taking a loaded interpreter apart takes longer than many a run


def _import(modules: list[str]) -> None:
    """Paid once here, not in every worker, and while the driver is still importing what it needs itself."""
    for module in modules:
        importlib.import_module(module)


def _load(channel: Channel, plan: ServerPlan) -> Loaded | None:
    sys.path[:] = plan.path
    os.chdir(plan.directory)
    from gristmill.backends.worker import load_stages

    groups, error = load_stages(plan.groups)
    channel.send(("loaded", error))
    if error:
        return None
    gc.freeze()  # a collection in a worker would write to, and so copy, every page shared with this process
    return groups, pickle.loads(plan.settings)


def _start(
    channel: Channel,
    workers: dict[int, int],
    loaded: Loaded,
    which: tuple[int, int, tuple[str, ...]],
    fds: list[int],
) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1  # this is the last frame of a new process: whatever happens, it must not run on into the loop above
        try:
            channel.sock.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _die_with_parent(signal.SIGKILL)
            from gristmill.backends.processes.worker_process import work

            work(loaded, which, socket.socket(fileno=fds[0]), fds[1])
            status = 0
        finally:
            if status:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    workers[pid] = which[0]
    for fd in fds:
        os.close(fd)
    channel.send(("started", which[0], pid))


def _report_ended(channel: Channel, workers: dict[int, int]) -> None:
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        channel.send(("exited", workers.pop(pid), status))


def _leave(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _DriverGone


def _die_with_parent(number: signal.Signals) -> None:
    """Ask the kernel for a signal when the parent of this process dies. Elsewhere the closed socket has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
