"""Starts the fork server. Small on purpose: it runs before the driver has imported the rest of itself."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.tasks.document_check import DOCUMENT_MODULE

# No garbage is collected in the server: imports make none, and looking for it takes a tenth of their time.
SERVER_CODE = "import gc; gc.disable(); from gristmill.backends.processes.fork_server import main; main()"
WORKER_MODULE = "gristmill.backends.processes.worker_process"
END_S = 1.0


@dataclass
class Server:
    """The process that forks workers, and the driver's end of the socket to it."""

    process: subprocess.Popen[bytes]
    sock: socket.socket
    is_kept: bool = False  # for the next run; otherwise it ends with the one it was started for
    has_loaded: bool = False  # a plan, so that its size tells what it will be

    def close(self) -> None:
        """Let the server see that the driver is gone: it kills its workers and ends."""
        self.sock.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def launch(imports: Sequence[str] = ()) -> Server:
    """Start a fork server; it imports while the driver goes on."""
    ours, theirs = socket.socketpair()
    # Loaded here, it will be wanted there.
    modules = [WORKER_MODULE, *([DOCUMENT_MODULE] if DOCUMENT_MODULE in sys.modules else []), *imports]
    # numpy's BLAS starts a thread per core when imported, and a process with threads must not be forked.
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **os.environ}
    # What this process can import, that one must be able to: an editable install, a path set by hand.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER_CODE, str(theirs.fileno()), *modules],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is the driver's to handle
            env=environment,
        )
    return Server(process, ours)
