"""A server for a page and what it asks: reads only, and holds out against clients that are slow, many or malicious.

The standard library's threading server, a thread for each connection, one request on each. It adds limits:
on connections, on how many of them are streams, on time and bytes for the headers, on the time to take an answer. A
connection beyond the limit is told so at once, since one that waits would look like a server that hangs.
What the answers are is up to a `Site`.
"""

import contextlib
import io
import select
import socket
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec

from gristmill.dashboard.guard import ANSWER_HEADERS, Guard
from gristmill.dashboard.static_files import StaticFile
from gristmill.errors import ConfigError

MOST_QUERY_FIELDS = 20


@dataclass(frozen=True)
class Limits:
    """What one server spends on its clients. Half of the connections are left to requests that end."""

    connections: int = 64
    streams: int = 32
    header_bytes: int = 8_192
    header_s: float = 10.0
    send_s: float = 10.0


class Answer(msgspec.Struct, frozen=True):
    """What a request gets."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


class Wrong(Exception):  # an answer more than an error
    """A question that has no answer: what it was, and what was expected."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Site(Protocol):
    """What is served."""

    @property
    def pages(self) -> Mapping[str, StaticFile]:
        """Files by path; they are given out without a token."""

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return what was asked for, or raise `Wrong`."""

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[bytes] | None:
        """Return pieces to send one by one (an empty one only tests if anybody listens); None if it is no stream."""


class WebServer(socketserver.ThreadingTCPServer):
    """Serves a site at an address. Bound when it is made; `serve_forever` answers, `shutdown` ends it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, site: Site, guard: Guard, host: str, port: int, limits: Limits | None = None) -> None:
        self.site = site
        self.guard = guard
        self.limits = limits or Limits()
        self._free = threading.BoundedSemaphore(self.limits.connections)
        self._lock = threading.Lock()
        self._num_streams = 0
        self.ended = threading.Event()
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Request)
        except OSError as error:
            raise ConfigError(
                f"dashboard: expected to listen on {host}:{port}; got {error.strerror or error}"
            ) from None

    @property
    def num_streams(self) -> int:
        """How many listen to a stream now."""
        return self._num_streams

    @contextlib.contextmanager
    def stream_slot(self) -> Iterator[bool]:
        """Give whether there is room for one more stream, which is taken until the end of the block."""
        with self._lock:
            has_room = self._num_streams < self.limits.streams
            self._num_streams += has_room
        try:
            yield has_room
        finally:
            with self._lock:
                self._num_streams -= has_room

    @property
    def port(self) -> int:
        """The port it is bound to."""
        return int(self.server_address[1])

    def shutdown(self) -> None:
        self.ended.set()
        super().shutdown()

    def process_request(self, request: "socket.socket | tuple[bytes, socket.socket]", client_address: object) -> None:
        assert isinstance(request, socket.socket)  # noqa: S101  # the other kind is a datagram's
        if self._free.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except RuntimeError:  # no thread can be started
                self._free.release()
                self.shutdown_request(request)
            return
        with contextlib.suppress(OSError):
            request.settimeout(0)
            request.send(_bare("503 Busy"))
        self.shutdown_request(request)

    def process_request_thread(
        self, request: "socket.socket | tuple[bytes, socket.socket]", client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing about clients that hang up."""


class _Request(BaseHTTPRequestHandler):
    """One request. The headers are read whole before the standard library sees them."""

    server: WebServer
    protocol_version = "HTTP/1.1"
    server_version = "gristmill"
    sys_version = ""

    def setup(self) -> None:
        self.request.settimeout(self.server.limits.header_s)
        super().setup()
        with contextlib.suppress(OSError):
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)  # noqa: FBT003  # a C interface

    def handle(self) -> None:
        """Answer one request, and close."""
        self.close_connection = True
        head = self._read_head()
        if head is None:
            return
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.raw_requestline = self.rfile.readline()
        if not self.parse_request():
            return
        self.close_connection = True
        self.request.settimeout(self.server.limits.send_s)
        with contextlib.suppress(OSError):  # the client has gone, or takes too long
            self._answer()

    def _read_head(self) -> bytes | None:
        """Return everything up to the empty line, or None if it is too long, too slow or cut off."""
        limits, head = self.server.limits, bytearray()
        deadline = time.monotonic() + limits.header_s  # for all of it: a byte every nine seconds is not in time
        while b"\r\n\r\n" not in head:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.request.settimeout(left)
            try:
                piece = self.request.recv(4096)
            except OSError:
                return None
            if not piece:
                return None
            head += piece
            if len(head) > limits.header_bytes and b"\r\n\r\n" not in head[: limits.header_bytes]:
                self._refuse_raw(431, "Headers too large")
                return None
        return bytes(head[: head.index(b"\r\n\r\n") + 4])

    def _refuse_raw(self, status: int, words: str) -> None:
        with contextlib.suppress(OSError):
            self.request.sendall(
                f"HTTP/1.1 {status} {words}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
            )

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        page = self.server.site.pages.get(path)
        refusal = self.server.guard.refusal(self.command, self.headers, is_page=page is not None)  # type: ignore[arg-type]  # a Message reads like a Mapping
        if refusal is not None:
            self._send(Answer(refusal.words.encode(), "text/plain; charset=utf-8", refusal.status))
        elif page is not None:
            self._send_page(page)
        else:
            self._send_data(path)

    def _send_data(self, path: str) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query, max_num_fields=MOST_QUERY_FIELDS, keep_blank_values=True))
        try:
            stream = self.server.site.stream(path, query)
            if stream is not None and self.command == "GET":
                self._send_stream(stream)
                return
            answer = self.server.site.answer(path, query)
        except Wrong as wrong:
            answer = Answer(str(wrong).encode(), "text/plain; charset=utf-8", wrong.status)
        except OSError as error:  # a file of the run that cannot be read
            words = f"expected to read the run's files; got {error.strerror or type(error).__name__}"
            answer = Answer(words.encode(), "text/plain; charset=utf-8", 503)
        except Exception as error:  # one question must not end the server
            words = f"the dashboard failed on this question: {type(error).__name__}: {error}"
            answer = Answer(words.encode(errors="replace"), "text/plain; charset=utf-8", 500)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        self._send_head(answer.status, answer.content_type, len(answer.body))
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _send_page(self, page: StaticFile) -> None:
        zipped = "gzip" in self.headers.get("Accept-Encoding", "")
        body = page.zipped if zipped else page.content
        self._send_head(200, page.content_type, len(body), zipped=zipped)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_head(self, status: int, content_type: str, length: int | None, *, zipped: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        if length is not None:
            self.send_header("Content-Length", str(length))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        for name, value in ANSWER_HEADERS:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()

    def _send_stream(self, pieces: Iterator[bytes]) -> None:
        with self.server.stream_slot() as has_room:
            if not has_room:
                words = f"expected at most {self.server.limits.streams} streams; there are as many already"
                self._send(Answer(words.encode(), "text/plain; charset=utf-8", 503))
                return
            self._send_head(200, "text/event-stream", None)
            for piece in pieces:
                if self.server.ended.is_set() or self._has_hung_up():
                    return
                if piece:
                    self.wfile.write(piece)

    def _has_hung_up(self) -> bool:
        """Whether the other side has closed. It has nothing more to say, so what is readable is the end."""
        readable, _, _ = select.select([self.request], [], [], 0)
        return bool(readable) and not self.request.recv(1024)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: addresses hold ids of documents."""


def _bare(status: str) -> bytes:
    """An answer to clients that deserve no more."""
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
