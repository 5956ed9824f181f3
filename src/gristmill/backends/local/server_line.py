"""`ServerLine`: a pool's line to the process that starts workers, which is started again if it ends.

Nothing here waits for the server: one that is stopped, or imports a module for ever, must not stop the driver too.
"""

import contextlib
import selectors
from pathlib import Path

from gristmill.backends.local.launch import Server
from gristmill.errors import RunFailed
from gristmill.worker.channel import BufferedChannel, ChannelClosed, Message
from gristmill.worker.fork_server import WAITING, ServerPlan, Which

MOST_STARTS_AGAIN = 3  # of the server, in one run
STOPPED = ("T", "t")  # by a signal, by a debugger
ASLEEP_FOR_GOOD = "D"


class ServerLine:
    """Sends the server a plan and orders for workers, and hears what became of them. `server` stays the same object."""

    def __init__(self, server: Server, selector: selectors.BaseSelector) -> None:
        self.server = server
        self._selector = selector
        self._channel = BufferedChannel(server.sock)
        self._plan: ServerPlan | None = None
        self._watches_room = False  # whether the selector watches for room in the socket
        self.times_started_again = 0

    def open(self, plan: ServerPlan) -> None:
        """Tell the server what to load."""
        self._plan = plan
        self._selector.register(self.server.sock, selectors.EVENT_READ, None)
        self._channel.send(("plan", plan))
        self.flush()

    def start(self, which: Which, fds: list[int]) -> None:
        """Have a worker started; its descriptors are the server's from now on."""
        self._channel.send(("start", *which), fds, gives_away=True)
        self.flush()

    def flush(self) -> None:
        """Send as much as the socket takes. If the server has ended, `receive` finds out."""
        with contextlib.suppress(ChannelClosed):
            self._channel.flush()
        full = self._channel.wants_write
        if full != self._watches_room:
            self._watches_room = full
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if full else 0)
            self._selector.modify(self.server.sock, events, None)

    def receive(self) -> tuple[list[Message], bool]:
        """Return what the server has said, and whether it has ended."""
        messages, ended = self._channel.receive()
        return [message for message, _ in messages], ended

    def start_again(self) -> str:
        """Replace the server, which has ended, and tell the new one the plan; return what to tell the user."""
        pid = self.server.process.pid
        self._selector.unregister(self.server.sock)
        self._channel.close()
        how = self.server.end()
        doing = self.server.notes.read()  # the block outlives the process
        if doing != WAITING:
            how += f" while {doing}" if doing[:3] != "in " else f" {doing}"
        if self.times_started_again == MOST_STARTS_AGAIN:
            raise RunFailed(
                f"the process that starts workers has ended {MOST_STARTS_AGAIN + 1} times (the last time: {how}). "
                "What is committed stays; the same command continues the run"
            )
        self.times_started_again += 1
        self.server.start_again()
        self._channel = BufferedChannel(self.server.sock)
        self._watches_room = False
        if self._plan is not None:
            self.open(self._plan)
        return (
            f"the process that starts workers (process {pid}) has ended: {how}. It is started again "
            f"({self.times_started_again} of at most {MOST_STARTS_AGAIN} times), and what its workers had is done again"
        )

    def doing(self) -> str:
        """What the server is doing, for those who wait for it."""
        pid = self.server.process.pid
        return f"the process that starts workers (process {pid}) is {standstill(pid) or self.server.notes.read()}"


def standstill(pid: int) -> str:
    """Why the system keeps a process from running; "" if it does not, or that cannot be told."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state in STOPPED:
            return f"stopped by a signal or a debugger; kill -CONT {pid} lets it go on"
        if state == ASLEEP_FOR_GOOD:
            return "waiting for a disk or a network file system"
    return ""
