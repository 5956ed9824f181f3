"""A slow HTTP server for tests and benchmarks of remote calls, in a process of its own, and the client both sides use.

Every answer takes `delay_s`. What goes wrong is decided by the key and the number of the try alone, so that two clients
that ask the same meet the same: a share of the tries gets status 500, and a share is never answered. A key that begins
with "poison" always gets 400.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

DELAY_S = 0.1
ERROR_PERCENT = 5
HANG_PERCENT = 1
TIMEOUT_S = 1.0  # after which a client gives up a try
TRIES = 6


class Refused(Exception):
    """The server does not like the request, and will not like it tomorrow."""


def fate(key: str, attempt: int) -> str:
    """What becomes of a try: "fine", "error" or "hang"."""
    dice = zlib.crc32(f"{key}/{attempt}".encode()) % 100
    return "error" if dice < ERROR_PERCENT else "hang" if dice < ERROR_PERCENT + HANG_PERCENT else "fine"


def answer_to(key: str) -> str:
    """What the server answers to a key in the end."""
    return f"{zlib.crc32(key.encode()):08x}"


# The server


@dataclass
class Statistics:
    """What a server has seen since it was last asked."""

    requests: int = 0
    answered: dict[str, int] = field(default_factory=dict)  # by key: how often with 200
    first_s: float = 0.0
    last_s: float = 0.0
    in_flight: int = 0
    most_in_flight: int = 0


class _Connection(asyncio.Protocol):
    def __init__(self, statistics: Statistics, delay_s: float) -> None:
        self.statistics = statistics
        self.delay_s = delay_s
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            request, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            path = request.split(b" ", 2)[1].decode()
            if path == "/statistics":
                self._give_statistics()
            else:
                self._ask(path)

    def _ask(self, path: str) -> None:
        _, key, attempt = path.rsplit("/", 2)
        seen, loop = self.statistics, asyncio.get_running_loop()
        now = loop.time()
        seen.first_s = seen.first_s or now
        seen.requests += 1
        seen.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
        if key.startswith("poison"):
            loop.call_later(self.delay_s, self._reply, 400, key, "no")
            return
        what = fate(key, int(attempt))
        if what == "hang":
            self.is_hanging = True
        else:
            loop.call_later(self.delay_s, self._reply, 200 if what == "fine" else 500, key, answer_to(key))

    def _reply(self, status: int, key: str, body: str) -> None:
        seen = self.statistics
        seen.in_flight -= 1
        seen.last_s = asyncio.get_running_loop().time()
        if status == 200:
            seen.answered[key] = seen.answered.get(key, 0) + 1
        self._write(status, body)

    def _give_statistics(self) -> None:
        said = vars(self.statistics).copy()
        self.statistics.__init__()  # type: ignore[misc]
        self._write(200, json.dumps(said))

    def _write(self, status: int, body: str) -> None:
        payload = body.encode()
        self.transport.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\n\r\n%b" % (status, len(payload), payload))

    is_hanging = False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_hanging:
            self.statistics.in_flight -= 1


async def _serve(delay_s: float) -> None:
    statistics = Statistics()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(statistics, delay_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)  # ends with whoever started it


@contextlib.contextmanager
def serving(delay_s: float = DELAY_S) -> Iterator[int]:
    """A server in a process of its own, as long as this lasts; its port."""
    command = [sys.executable, __file__, str(delay_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


# The client


class Client:
    """Connections that are kept open, one for every request under way."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, key: str) -> str:
        """Ask until there is an answer, as often as TRIES allows."""
        for attempt in range(TRIES):
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    status, body = await self.get(f"/ask/{key}/{attempt}")
            except TimeoutError:
                continue
            if status == 400:
                raise Refused(f"status 400 for {key}")
            if status == 200:
                return body
        raise ConnectionError(f"no answer to {key} in {TRIES} tries")

    async def get(self, path: str) -> tuple[int, str]:
        """One request; a connection it was cancelled on is not used again."""
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        done = False
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            length = int(head.rsplit(b":", 1)[1])
            body = await reader.readexactly(length)
            done = True
        finally:
            if done:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return status, body.decode()

    async def statistics(self) -> Statistics:
        """What the server has seen since it was last asked."""
        return Statistics(**json.loads((await self.get("/statistics"))[1]))

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


def take_statistics(port: int) -> Statistics:
    """What the server has seen since it was last asked, for whoever has no event loop."""

    async def ask() -> Statistics:
        client = Client(port)
        try:
            return await client.statistics()
        finally:
            await client.close()

    return asyncio.run(ask())


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
