"""A small HTTP proxy before a store, on 127.0.0.1, that answers some requests as a store in trouble would.

Requests are passed on as they are; moto does not mind that they were signed for another port.
"""

import contextlib
import http.client
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>{}</Message></Error>'
LOST = "lost"  # passed on, but the answer never arrives


class FaultyProxy:
    """`fault(method, path)` says what happens to a request: None, (status, code, message), or LOST."""

    def __init__(self, store):
        self.fault = lambda method, path: None
        self.without_headers = set()
        self.requests = []
        self._backend = urlsplit(store.endpoint)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.store = replace(store, endpoint=f"http://127.0.0.1:{self._server.server_port}")

    @contextlib.contextmanager
    def running(self):
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _handler(proxy):  # noqa: C901  # one small method after another
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self):
                body = self._body()
                proxy.requests.append((self.command, self.path))
                fault = proxy.fault(self.command, self.path)
                if isinstance(fault, tuple):
                    return self._send(fault[0], {"Content-Type": "application/xml"}, ERROR.format(*fault[1:]).encode())
                answer = proxy._pass_on(self.command, self.path, self.headers, body)
                if fault == LOST:
                    self.close_connection = True
                    return None
                return self._send(*answer)

            def _body(self):
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pieces = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)

            def _send(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if self.command != "HEAD":
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer

            def log_message(self, *args):
                pass

        return Handler

    def _pass_on(self, method, path, headers, body):
        dropped = {"host", "transfer-encoding", "content-length", *self.without_headers}
        kept = {name: value for name, value in headers.items() if name.lower() not in dropped}
        connection = http.client.HTTPConnection(self._backend.hostname, self._backend.port)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers={**kept, "Host": self._backend.netloc})
            answer = connection.getresponse()
            content = answer.read()
            dropped = {"connection", "transfer-encoding", *(() if method == "HEAD" else ("content-length",))}
            return answer.status, {n: v for n, v in answer.getheaders() if n.lower() not in dropped}, content
