"""`Endpoint`: a small web server in a thread of its own that answers a Prometheus server's questions.

It reads and never writes: `/metrics`, and a line that says so. Standard library only; its answers are made by the
code that starts it.
"""

import gzip
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gristmill.errors import ConfigError

Answer = Callable[[str], tuple[bytes, str, bool]]  # what is accepted -> text, content type, whether it is the end
IDLE_S = 10.0  # after which a silent client is dropped; each has a thread
POLL_S = 0.1  # how long the thread may take to notice that it has to stop
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not bound to
HERE = b"gristmill: metrics for Prometheus are at /metrics\n"


class Endpoint:
    """Listens from the moment it is made. `scrapes` and `saw_end` say what was fetched from it."""

    def __init__(self, host: str, port: int, answer: Answer) -> None:
        self.scrapes = 0
        self.saw_end = threading.Event()
        self._answer = answer
        try:
            family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            self._server = _server_class(family)((host, port), _handler(self))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"--metrics-port: expected a free port on this machine; got {host}:{port}: {why}"
            ) from error
        self.host, self.port = host, self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="gristmill-metrics", daemon=True
        )
        self._thread.start()

    @property
    def target(self) -> str:
        """Address and port for a Prometheus server: this machine's name if it listens everywhere."""
        host = socket.gethostname() if self.host in EVERYWHERE else self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def fetched(self, accept: str) -> tuple[bytes, str, Callable[[], None]]:
        """Return what to send, and what to call once it is sent."""
        self.scrapes += 1  # counted first: the run may end while the answer is on its way
        text, content_type, is_end = self._answer(accept)
        return text, content_type, self.saw_end.set if is_end else lambda: None

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _server_class(family: int) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True  # a client that reads slowly does not hold up the end of a run

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: a client that hangs up is not news of the run."""

    return Server


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "gristmill"
        sys_version = ""
        timeout = IDLE_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/":
                return self._send(HERE, "text/plain; charset=utf-8")
            if path != "/metrics":
                return self.send_error(404)
            text, content_type, sent = endpoint.fetched(self.headers.get("Accept", ""))
            self._send(text, content_type)
            return sent()

        def _send(self, text: bytes, content_type: str) -> None:
            packed = "gzip" in self.headers.get("Accept-Encoding", "")
            body = gzip.compress(text, compresslevel=1) if packed else text
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # the name it has there
            """Say nothing: there is a request every few seconds."""

    return Handler
