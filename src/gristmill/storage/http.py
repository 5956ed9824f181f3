"""Requests to web servers, through libcurl: the one user of pycurl.

One request at a time (`ask`), one whose body is handed on as it comes (`receive`), or many at once (`Many`). libcurl
knows proxies, redirects, TLS and HTTP/2, and costs a sixteenth of what requests does (docs/adr/0052). What a status
means, and whether to try again, is for the caller to decide.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from gristmill import __version__
from gristmill.errors import check_installed, require
from gristmill.storage.s3_requests import Signed, is_signed, signed

if TYPE_CHECKING:
    import pycurl

EXTRA = "fetch"
MAX_REDIRECTS = 10
CONNECT_S = 20
_BUFFER_BYTES = 1 << 18
_CA_FILES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
_LOOK_S = 0.5  # between two looks for requests that have fallen silent
_WRITE_ERROR = 23
_TIMED_OUT = 28
_ENDED_BY_LOOK = 42

K = TypeVar("K")
OnHead = Callable[["Head"], bool]  # whether to go on and receive the body
Sink = Callable[[bytes], object]


class Request(msgspec.Struct, frozen=True):
    """What to ask. `most_bytes`: an answer with a longer body is cut off, and is an error."""

    url: str
    headers: tuple[str, ...] = ()
    method: str = "GET"
    most_bytes: int | None = None


class Head(msgspec.Struct):
    """The beginning of an answer: status (0 while nothing has come) and headers, with names in lower case."""

    status: int = 0
    headers: dict[str, str] = {}

    @property
    def length(self) -> int | None:
        """How many bytes the body has, if the server says so."""
        given = self.headers.get("content-length", "")
        return int(given) if given.isdecimal() else None


class Answer(msgspec.Struct):
    """What came of a request. `error` says why no answer, or not all of it, has come; "" if all has."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    error: str = ""
    timed_out: bool = False


class Client(msgspec.Struct, frozen=True):
    """How a client behaves with servers: who it says it is, and after how many seconds without a byte it gives up."""

    contact: str | None = None
    timeout: float = 30.0
    requester_pays: bool = False

    @property
    def user_agent(self) -> str:
        """What servers read in their logs."""
        contact = f"contact: {self.contact}" if self.contact else "no contact given"
        return f"gristmill/{__version__} (training data curation; {contact})"


def check_ready() -> None:
    """Say what to install, if pycurl is missing."""
    check_installed("pycurl", extra=EXTRA)


@cache
def _ca_file() -> str:
    return next((os.environ[name] for name in _CA_FILES if os.environ.get(name)), "")


@cache
def _curl() -> "type[pycurl]":
    return require("pycurl", extra=EXTRA)  # type: ignore[return-value]  # a module


def ask(request: Request, client: Client) -> Answer:
    """Ask, and wait for the whole answer."""
    body = BytesIO()
    answer = receive(request, client, body.write)
    answer.body = body.getvalue()
    return answer


def receive(request: Request, client: Client, sink: Sink, on_head: OnHead = lambda _: True) -> Answer:
    """Ask, and hand the body on as it comes. Where `on_head` says no, none of it is received, which is not an error."""
    call = _Call(request, client, sink, on_head)
    curl = _curl()
    call.handle.setopt(curl.BUFFERSIZE, _BUFFER_BYTES)
    call.handle.setopt(curl.NOPROGRESS, 0)
    call.handle.setopt(curl.XFERINFOFUNCTION, call.look)  # about once a second while nothing comes
    try:
        call.handle.perform()
        return call.answer()
    except curl.error as error:
        return call.answer(*error.args)
    finally:
        call.handle.close()


class Many(Generic[K]):
    """Several requests under way at once; connections are kept for later ones. For one thread."""

    def __init__(self, client: Client, most: int) -> None:
        curl = _curl()
        self._client = client
        self._multi = curl.CurlMulti()
        self._multi.setopt(curl.M_MAX_TOTAL_CONNECTIONS, most)
        self._calls: dict[Any, _Call] = {}
        self._looked_at = 0.0
        self._idle: dict[bool, list[Any]] = {True: [], False: []}  # by whether they sign: that setting stays

    def __len__(self) -> int:
        return len(self._calls)

    def start(self, key: K, request: Request, on_head: OnHead = lambda _: True) -> None:
        """Begin a request. `key` is what it is known by when it ends."""
        idle = self._idle[is_signed(request.url)]
        handle = idle.pop() if idle else None
        body = BytesIO()
        call = _Call(request, self._client, body.write, on_head, handle)
        call.key, call.body = key, body
        self._calls[call.handle] = call
        self._multi.add_handle(call.handle)

    def wait(self, timeout: float) -> Iterator[tuple[K, Answer]]:
        """Wait until something happens, at most `timeout`, and yield the requests that have ended."""
        self._multi.perform()
        ended = self._ended()
        if not ended:
            self._multi.select(min(timeout, _LOOK_S))
            self._multi.perform()
            ended = self._ended()
        if (now := time.monotonic()) - self._looked_at > _LOOK_S:
            self._looked_at = now
            known = {handle for handle, _, _ in ended}
            silent = [handle for handle, call in self._calls.items() if handle not in known and call.is_silent(now)]
            ended += [(handle, _TIMED_OUT, "") for handle in silent]
        for handle, code, message in ended:
            yield self._end(handle, code, message)

    def close(self) -> None:
        """Give up what is under way, and close all connections."""
        for handle in self._calls:
            self._multi.remove_handle(handle)
        for handle in [*self._calls, *self._idle[True], *self._idle[False]]:
            handle.close()
        self._calls.clear()
        self._idle = {True: [], False: []}
        self._multi.close()

    def _ended(self) -> list[tuple[Any, int, str]]:
        ended: list[tuple[Any, int, str]] = []
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            ended += [(handle, 0, "") for handle in succeeded]
            ended += failed
        return ended

    def _end(self, handle: Any, code: int, message: str) -> tuple[K, Answer]:
        call = self._calls.pop(handle)
        self._multi.remove_handle(handle)
        answer = call.answer(code, message)
        answer.body = call.body.getvalue()
        self._idle[is_signed(call.url)].append(handle)
        return cast("K", call.key), answer


class _Call:
    """A request and what has come of it."""

    def __init__(self, request: Request, client: Client, sink: Sink, on_head: OnHead, handle: Any = None) -> None:
        self.key: object = None
        self.url = request.url
        self.body = BytesIO()
        self._lines: list[bytes] = []  # of the answer's head
        self._parsed: tuple[int, Head] | None = None
        self._sink = sink
        self._on_head = on_head
        self._most = request.most_bytes
        self._received = 0
        self._goes_on: bool | None = None
        self._stopped = ""  # why the rest is not wanted
        self._raised: BaseException | None = None
        self._timeout = client.timeout
        self._heard_at = time.monotonic()
        curl = _curl()
        self.handle = curl.Curl() if handle is None else handle
        target: Signed = signed(request.url, requester_pays=client.requester_pays)
        self.handle.setopt(curl.URL, target.url)
        self.handle.setopt(curl.HTTPHEADER, [*request.headers, *target.headers])
        self.handle.setopt(curl.HEADERFUNCTION, self._lines.append)  # libcurl takes 300 kB of them at most
        self.handle.setopt(curl.WRITEFUNCTION, self._take_body)
        if handle is None:
            self._set(curl, request, client, target)

    def _set(self, curl: Any, request: Request, client: Client, target: Signed) -> None:
        """Set what is the same for all requests that a client makes with this handle, one after another."""
        handle = self.handle
        if target.signature:
            handle.setopt(curl.AWS_SIGV4, target.signature)
            handle.setopt(curl.USERPWD, target.credentials)
        handle.setopt(curl.USERAGENT, client.user_agent)
        handle.setopt(curl.NOBODY, request.method == "HEAD")
        handle.setopt(curl.NOSIGNAL, 1)  # it is used in threads
        handle.setopt(curl.FOLLOWLOCATION, 1)
        handle.setopt(curl.MAXREDIRS, MAX_REDIRECTS)
        handle.setopt(curl.PROTOCOLS, curl.PROTO_HTTP | curl.PROTO_HTTPS)
        handle.setopt(curl.REDIR_PROTOCOLS, curl.PROTO_HTTP | curl.PROTO_HTTPS)
        handle.setopt(curl.CONNECTTIMEOUT_MS, int(1000 * min(client.timeout, CONNECT_S)))
        if ca_file := _ca_file():
            handle.setopt(curl.CAINFO, ca_file)

    def is_silent(self, now: float) -> bool:
        """Whether nothing has come for too long. libcurl's own limit is on an average over several seconds."""
        return now - self._heard_at > self._timeout

    def look(self, *_: object) -> int:
        """Called by libcurl now and then; a result other than 0 ends the call."""
        return int(self.is_silent(time.monotonic()))

    @property
    def head(self) -> Head:
        """What is known of the beginning of the answer."""
        if self._parsed is None or self._parsed[0] != len(self._lines):
            self._parsed = (len(self._lines), self._read_head())
        return self._parsed[1]

    def _read_head(self) -> Head:
        """The last answer: those before it were redirects, or "100 Continue"."""
        text = b"".join(self._lines).decode("latin-1")
        lines = text[max(text.rfind("\nHTTP/") + 1, 0) :].split("\r\n")
        status = lines[0].split(" ", 2)[1:2]
        pairs = [line.partition(":") for line in lines[1:]]
        headers = {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
        return Head(int(status[0]) if status and status[0].isdigit() else 0, headers)

    def _take_body(self, piece: bytes) -> int | None:
        self._heard_at = time.monotonic()
        if self._goes_on is None:
            self._goes_on = self._on_head(self.head)
        if not self._goes_on:
            return -1
        self._received += len(piece)
        if self._most is not None and self._received > self._most:
            self._stopped = f"expected a body of at most {self._most:,} bytes; got more"
            return -1
        try:
            self._sink(piece)
        except OSError as error:  # of the disk: curl would say "write error" and nothing else
            self._raised = error
            return -1
        return None

    def answer(self, code: int = 0, message: str = "") -> Answer:
        """What came of it, given how curl says it ended."""
        if self._raised is not None:
            raise self._raised
        head = self.head
        if self._goes_on is None and not code:
            self._on_head(head)  # there was no body to ask about
        error = ""
        timed_out = code in (_TIMED_OUT, _ENDED_BY_LOOK)
        if timed_out:
            error = f"nothing for {self._timeout:g} seconds"
        elif self._stopped:
            error = self._stopped
        elif code and not (code == _WRITE_ERROR and self._goes_on is False):
            error = f"{message or 'no reason'} (libcurl {code})"
        return Answer(head.status, head.headers, error=error, timed_out=timed_out)
