"""Starts the fork server. Small on purpose: it runs before the driver has imported the rest of itself."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gristmill.backends.local.standard_descriptors import hold_standard_descriptors
from gristmill.errors import MachineFailed
from gristmill.worker.notes import Notes

# No garbage is collected in the server: imports make none, and looking for it takes a tenth of their time.
SERVER_MODULE = "gristmill.worker.fork_server"
SERVER_CODE = f"import gc; gc.disable(); from {SERVER_MODULE} import main; main()"
DOCUMENT_MODULE = "gristmill.tasks.document"
WORKER_MODULE = "gristmill.worker.loop"
END_S = 1.0


def signal_name(number: int) -> str:
    """What a signal is called. Real-time signals have only numbers."""
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")


class Server(msgspec.Struct, eq=False):
    """The process that forks workers, and the driver's end of the socket to it."""

    process: subprocess.Popen[bytes]
    sock: socket.socket
    notes: Notes  # what it is doing, written by itself
    imports: Sequence[str] = ()
    is_kept: bool = False  # for the next run; otherwise it ends with the run it was started for
    has_loaded: bool = False  # whether it has loaded a plan, so that its size now is the size it will have

    def close(self) -> None:
        """Let the server see that the driver is gone: it kills its workers and ends."""
        self.sock.close()
        self._await_end()
        self.end()

    def _await_end(self) -> None:
        """Wait for the process, but not for long. `wait` with a time-out would sleep, and wake up to 50 ms too late."""
        if sys.platform == "linux" and self.process.returncode is None:
            with contextlib.suppress(OSError):  # an old kernel, or no descriptor left
                ended = os.pidfd_open(self.process.pid)
                try:
                    poller = select.poll()
                    poller.register(ended, select.POLLIN)
                    poller.poll(1000 * END_S)
                finally:
                    os.close(ended)
                self.process.poll()
                return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)

    def end(self) -> str:
        """End it now, with all it has started; return how it ended, even if it had ended before."""
        if self.process.returncode is None:
            os.kill(self.process.pid, signal.SIGKILL)  # `Popen.kill` would reap it if it has ended
            self._leave_nobody()
        code = self.process.wait()
        return f"killed by {signal_name(-code)}" if code < 0 else f"it ended with exit code {code}"

    def start_again(self) -> None:
        """Start a new process in place of one that has ended."""
        self.sock.close()
        fresh = launch(self.imports)
        self.process, self.sock, self.notes, self.has_loaded = fresh.process, fresh.sock, fresh.notes, False

    def _leave_nobody(self) -> None:
        """End what a killed server leaves: its workers die with it, but not the processes their stages started.

        The server leads a session, whose number stays taken until it is waited for, so no other process can be hit.
        """
        own = self.process.pid
        for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208  # pathlib is slow here
            with contextlib.suppress(OSError, ValueError):
                if int(name) != own and os.getsid(int(name)) == own:
                    os.kill(int(name), signal.SIGKILL)


def launch(imports: Sequence[str] = ()) -> Server:
    """Start a fork server; it imports while the driver goes on. Raises MachineFailed if the system refuses."""
    hold_standard_descriptors()
    ours, theirs = socket.socketpair()
    notes = Notes.create("starting")
    try:
        process = _popen([theirs.fileno(), notes.fd], imports)
    except OSError as error:
        ours.close()
        raise MachineFailed(
            f"the process that starts workers cannot be started: {error}. Is there memory for another process, and are "
            "more allowed (ulimit -u)? The same command continues the run"
        ) from error
    finally:
        theirs.close()
        notes.close_fd()
    return Server(process, ours, notes, imports)


def _popen(fds: list[int], imports: Sequence[str]) -> subprocess.Popen[bytes]:
    # If it is loaded here, it will be needed there.
    modules = [WORKER_MODULE, *([DOCUMENT_MODULE] if DOCUMENT_MODULE in sys.modules else []), *imports]
    # numpy's BLAS starts a thread per core when imported, and a process with threads must not be forked.
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **os.environ}
    # That process must be able to import what this one can: an editable install, a path set by hand.
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return subprocess.Popen(
        # And nothing else: -c alone would look in the working directory first, where a user's copy.py may be.
        [sys.executable, "-P", "-c", SERVER_CODE, *map(str, fds), *modules],
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=where_prints_go(),
        start_new_session=True,  # Ctrl-C in the terminal is the driver's to handle
        env=environment,
    )


def where_prints_go() -> int:
    """Standard error: what stages print must not end up in what this program prints for another to read."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
