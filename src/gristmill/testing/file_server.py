"""`MisbehavingFileServer`: a server of files for tests, which fails as real ones do and counts what it sends.

    with MisbehavingFileServer({"a.warc.gz": content}) as server:
        server.faults["a.warc.gz"] = [Fault("cut", at=1000), Fault("status", 503, retry_after="1")]
        fetch(f"{server.url}/a.warc.gz")

It speaks HTTP/1.1 with ranges, `If-Range`, `HEAD` and entity tags, on 127.0.0.1 and a free port. Each fault of a file
applies to one request, in order; once they are used up, the file is served. With `max_rate` it refuses all for a second
once it is asked for more, as servers of open data do.
`python -m gristmill.testing.file_server DIRECTORY` serves a directory to other programs.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import socket
import time
import zlib
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from gristmill.testing.loopback_server import LoopbackServer, read_head

Kind = Literal["status", "cut", "stall", "short", "long", "unmeasured", "whole", "changed", "bomb", "garbled"]
_PIECE_BYTES = 1 << 16
_STATISTICS = "/.statistics"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
_RANGES = re.compile(r"bytes=((?:\d+-\d+,)+\d+-\d+)$")
_BOUNDARY = "3d6b6a416f9b5"
_BOMB_BYTES = 1 << 26


@dataclass(frozen=True)
class Fault:
    """What is done to one request.

    `status`      answered with this status, and `Retry-After` if it is given
    `cut`         the connection is closed after `at` bytes of the body
    `stall`       nothing more comes after `at` bytes
    `short`       the announced length, and what is sent, is `at` bytes less than the file has
    `long`        the announced length is `at` bytes more than the file has; then the connection is closed
    `unmeasured`  the length is not announced; the connection is closed after `at` bytes, as if that were all
    `whole`       a range is answered with 200 and the whole file
    `changed`     from now on the file has different content and a different tag
    `bomb`        the body is 64 MiB of zeros, compressed
    `garbled`     a byte in the middle of what is sent is changed
    """

    kind: Kind
    status: int = 503
    at: int = 0
    retry_after: str = ""


@dataclass
class Seen:
    """A request as the server saw it: when it came, what is answered, and how many bytes of a body were sent so far."""

    at: float
    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    status: int = 0
    sent: int = 0

    @property
    def range(self) -> str:
        return self.headers.get("range", "")

    @property
    def user_agent(self) -> str:
        return self.headers.get("user-agent", "")


@dataclass
class MisbehavingFileServer(LoopbackServer):
    """Serves `files` (bytes, or paths of files) by name, or the files of the directory `root`.

    `latency_s` passes before each answer, and `bytes_per_s` bounds each connection. Above `max_rate` requests a second
    everything is refused with `refusal` for `refuse_s` seconds. A request for several ranges is answered with them, or,
    without `several_ranges`, with the whole file, as S3 does. Without `heeds_conditions` it sends the rest of a file
    that has changed by now, whatever `If-Range` says.
    """

    files: dict[str, bytes | Path] = field(default_factory=dict)
    root: Path | None = None
    latency_s: float = 0.0
    bytes_per_s: float | None = None
    max_rate: float | None = None
    refuse_s: float = 1.0
    refusal: Fault = Fault("status", 503)
    has_tags: bool = True
    heeds_conditions: bool = True
    port: int = 0
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    several_ranges: bool = True
    log: list[Seen] = field(default_factory=list, init=False)
    max_connections_seen: int = field(default=0, init=False)
    _recent: deque[float] = field(default_factory=deque, init=False)
    _refusing_until: float = field(default=0.0, init=False)
    _open: int = field(default=0, init=False)

    # What a test asks

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sent(self) -> int:
        """Bytes of bodies sent so far."""
        return sum(seen.sent for seen in list(self.log))

    def requests(self, path: str = "") -> list[Seen]:
        """What was asked for so far, of one file or of all."""
        return [seen for seen in list(self.log) if not path or seen.path == path]

    def forget(self) -> None:
        """Start counting afresh."""
        self.log.clear()

    # One connection

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        self.max_connections_seen = max(self.max_connections_seen, self._open)
        # Little is buffered, so that what counts as sent has left for the client.
        writer.transport.set_write_buffer_limits(high=0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PIECE_BYTES)
        try:
            await super()._answer_all(reader, writer)
        finally:
            self._open -= 1

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, headers = await read_head(reader)
        method, path, _ = first.split(" ", 2)
        asked = Seen(time.monotonic(), method, unquote(path.partition("?")[0]).lstrip("/"), headers)
        if path == _STATISTICS:
            return await self._send_head(writer, asked, 200, {}, json.dumps(self._statistics()).encode())
        self.log.append(asked)
        return await self._respond(reader, writer, asked)

    def _statistics(self) -> dict[str, float]:
        seen = list(self.log)
        self.forget()
        times = [each.at for each in seen]
        return {
            "requests": len(seen),
            "refused": sum(each.status in (403, 429, 503) for each in seen),
            "answered": sum(each.status in (200, 206) for each in seen),
            "sent": sum(each.sent for each in seen),
            "wall_s": max(times, default=0.0) - min(times, default=0.0),
            "max_connections": self.max_connections_seen,
        }

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Seen) -> bool:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        content = self._content(asked.path)
        fault = self._fault(asked)
        if fault is not None and fault.kind == "status":
            more = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            return await self._send_head(writer, asked, fault.status, more, b"refused")
        if content is None:
            return await self._send_head(writer, asked, 404, {}, b"not found")
        if fault is not None and fault.kind == "changed":
            self.files[asked.path] = content = bytes(reversed(_read(content, 0, _size(content))))
            fault = None
        if fault is not None and fault.kind == "bomb":
            return await self._send_head(writer, asked, 200, {"Content-Encoding": "gzip"}, _bomb())
        return await self._send_file(reader, writer, asked, content, fault)

    def _content(self, path: str) -> bytes | Path | None:
        if path in self.files:
            return self.files[path]
        found = None if self.root is None else (self.root / path).resolve()
        below = found is not None and found.is_relative_to(Path(self.root or ".").resolve())
        return found if found is not None and below and found.is_file() else None

    def _fault(self, asked: Seen) -> Fault | None:
        now = time.monotonic()
        if self.max_rate is not None and asked.method == "GET":
            while self._recent and self._recent[0] <= now - 1.0:
                self._recent.popleft()
            if now < self._refusing_until:
                return self.refusal
            if len(self._recent) >= self.max_rate:
                self._refusing_until = now + self.refuse_s
                return self.refusal
            self._recent.append(now)
        waiting = self.faults.get(asked.path)
        return waiting.pop(0) if waiting and asked.method == "GET" else None

    async def _send_file(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: Seen,
        content: bytes | Path,
        fault: Fault | None,
    ) -> bool:
        kind, at = ("", 0) if fault is None else (fault.kind, fault.at)
        size = _size(content) - (at if kind == "short" else 0)
        tag = _tag(content)
        is_same = not self.heeds_conditions or asked.headers.get("if-range", tag) == tag
        start, end, status = _wanted(asked.headers, size, is_same=is_same)
        headers = {"Accept-Ranges": "bytes", **({"ETag": tag} if self.has_tags else {})}
        several = _RANGES.match(asked.range) if self.several_ranges and is_same else None
        if kind == "whole":
            start, end, status = 0, size, 200
        elif several is not None:
            content = _several(content, several[1], size)
            start, end, status = 0, len(content), 206 if content else 416
            headers["Content-Type"] = f"multipart/byteranges; boundary={_BOUNDARY}"
        if asked.headers.get("if-match", tag) != tag:
            return await self._send_head(writer, asked, 412, {}, b"")
        if status == 416:
            return await self._send_head(writer, asked, 416, {"Content-Range": f"bytes */{size}"}, b"")
        if status == 206 and several is None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        length = end - start + (at if kind == "long" else 0)
        if kind == "unmeasured":
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(length)
        await self._write_head(writer, asked, status, headers)
        if asked.method == "HEAD":
            return True
        stop = min(end, start + at) if kind in ("cut", "stall", "unmeasured") else end
        await self._send_body(writer, asked, content, start, stop, garbled=kind == "garbled")
        if kind == "stall":
            await reader.read()  # until the client has had enough
        return kind not in ("cut", "stall", "long", "unmeasured")

    async def _send_body(
        self,
        writer: asyncio.StreamWriter,
        asked: Seen,
        content: bytes | Path,
        start: int,
        stop: int,
        *,
        garbled: bool,
    ) -> None:
        for begin in range(start, stop, _PIECE_BYTES):
            piece = _read(content, begin, min(stop, begin + _PIECE_BYTES))
            if garbled and begin <= (start + stop) // 2 < begin + len(piece):
                place = (start + stop) // 2 - begin
                piece = piece[:place] + bytes([piece[place] ^ 1]) + piece[place + 1 :]
            writer.write(piece)
            await writer.drain()
            asked.sent += len(piece)
            if self.bytes_per_s is not None:
                await asyncio.sleep(len(piece) / self.bytes_per_s)

    async def _send_head(
        self, writer: asyncio.StreamWriter, asked: Seen, status: int, headers: dict[str, str], body: bytes
    ) -> bool:
        await self._write_head(writer, asked, status, {**headers, "Content-Length": str(len(body))})
        if asked.method != "HEAD":
            writer.write(body)
            await writer.drain()
        return True

    async def _write_head(
        self, writer: asyncio.StreamWriter, asked: Seen, status: int, headers: dict[str, str]
    ) -> None:
        asked.status = status
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()


def _size(content: bytes | Path) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _read(content: bytes | Path, start: int, end: int) -> bytes:
    if isinstance(content, bytes):
        return content[start:end]
    with content.open("rb") as file:
        file.seek(start)
        return file.read(end - start)


def _tag(content: bytes | Path) -> str:
    if isinstance(content, Path):
        status = content.stat()
        return f'"{status.st_size:x}-{status.st_mtime_ns:x}"'
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _wanted(headers: dict[str, str], size: int, *, is_same: bool) -> tuple[int, int, int]:
    """First byte, byte behind the last, and the status; `is_same`: the file is still the one asked for."""
    asked = _RANGE.match(headers.get("range", ""))
    if asked is None or not is_same:
        return 0, size, 200
    first, last = asked.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last) + 1, size) if first and last else size
    return (start, end, 206) if start < end else (0, 0, 416)


def _several(content: bytes | Path, ranges: str, size: int) -> bytes:
    """Several ranges as one body, without those that begin behind the end; nothing if all do."""
    made = []
    for first, last in (each.split("-") for each in ranges.split(",")):
        start, end = int(first), min(int(last) + 1, size)
        if start < end:
            head = f"--{_BOUNDARY}\r\nContent-Type: text/plain\r\nContent-Range: bytes {start}-{end - 1}/{size}\r\n\r\n"
            made.append(head.encode() + _read(content, start, end) + b"\r\n")
    return b"".join([*made, f"--{_BOUNDARY}--\r\n".encode()]) if made else b""


@cache
def _bomb() -> bytes:
    made = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    zeros = bytes(1 << 20)
    return b"".join([*(made.compress(zeros) for _ in range(_BOMB_BYTES >> 20)), made.flush()])


def _main() -> None:
    parser = argparse.ArgumentParser(description="Serve a directory, as badly as asked for. Prints its address.")
    parser.add_argument("root", type=Path)
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--max-rate", type=float, default=None)
    parser.add_argument("--bytes-per-s", type=float, default=None)
    parser.add_argument("--one-range", action="store_true", help="answer several ranges with the whole file")
    given = parser.parse_args()
    server = MisbehavingFileServer(
        root=given.root,
        latency_s=given.latency_s,
        max_rate=given.max_rate,
        bytes_per_s=given.bytes_per_s,
        several_ranges=not given.one_range,
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(lambda: print(server.url, flush=True)))


if __name__ == "__main__":
    _main()
