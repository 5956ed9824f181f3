"""`PdfProcess`: pdfium in a process of its own, which is ended when a file takes too long and replaced when it crashes.

A call into C cannot be interrupted, and a crash of pdfium would take its worker along. So a worker that reads PDFs has
a child: content goes there, pages come back one by one. A page that does not come in time ends the child, and the file
goes to quarantine with the pages that came. What comes back is msgpack and never pickle: whoever takes over a parser of
files from strangers gets no further than the child.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import msgspec

from gristmill.errors import MachineFailed
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import Dropped
from gristmill.stages.text.pdf.extract_pdf import TIME_LIMIT, PdfText, Read, extract_pdf

CRASHED = "crashed"
KINDS = {CRASHED: "pdfium ended its process on the file, twice, or needed more than `max_pdf_memory` for it."}

GRACE_S = 1.0  # for a child that notices the limit itself, between two pages: it has the text in the order it is read
_START_S = 120.0  # for a child to import what it needs, on a machine where all processes want the cores
_CODE = "import sys; from gristmill.stages.text.pdf.pdf_process import serve; serve(int(sys.argv[1]))"


class _Ask(msgspec.Struct):
    """What goes to the child, before the content."""

    limits: dict[str, Any]
    options: dict[str, float]


class _Ready(msgspec.Struct, tag=True):
    pass


class _Page(msgspec.Struct, tag=True):
    text: str


class _Text(msgspec.Struct, tag=True):
    text: str
    num_pages: int
    scanned_share: float
    text_garbled_share: float


class _Dropped(msgspec.Struct, tag=True):
    reason: str
    value: int | float | None
    threshold: str | None


class _Aside(msgspec.Struct, tag=True):
    error: str
    kind: str
    document: str


_Answer = msgspec.msgpack.Decoder(_Ready | _Page | _Text | _Dropped | _Aside)
_encode = msgspec.msgpack.encode


class PdfProcess:
    """Reads PDFs in a child, which starts with the first of them. A copy has a child of its own."""

    def __init__(self) -> None:
        self._child: _Child | None = None
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[type["PdfProcess"], tuple[()]]:
        return PdfProcess, ()

    def read(self, content: bytes, limits: IngestLimits, **options: float) -> Read:
        """Return what `extract_pdf` returns, within the time limits, whatever the file does."""
        ask = _encode(_Ask(msgspec.to_builtins(limits), options))
        with self._turn:
            found = self._try(ask, content, limits, limits.pdf_s)
            if isinstance(found, _Died):  # the first time may not be the file's fault
                found = self._try(ask, content, limits, limits.pdf_s - found.seconds)
        if not isinstance(found, _Died):
            return found
        error = f"expected the text of a PDF; pdfium ended with {found.how} on page {found.num_pages + 1}"
        return Quarantined(error, CRASHED, document=found.text)

    def _try(self, ask: bytes, content: bytes, limits: IngestLimits, left_s: float) -> "Read | _Died":
        child = self._child or _Child()
        self._child = None
        found = child.read(ask, content, limits, left_s)
        if not child.is_over:
            self._child = child
        return found

    def close(self) -> None:
        """End the child."""
        with self._turn:
            if self._child is not None:
                self._child.end()
            self._child = None


class _Died(msgspec.Struct):
    how: str
    num_pages: int
    text: str
    seconds: float  # without those it took to start


class _Child:
    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        # The child must be able to import what this process can.
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CODE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is not for it
                env={**os.environ, "PYTHONPATH": paths},
            )
        except OSError as error:
            self._pipe.close()
            raise MachineFailed(f"the process that reads PDFs cannot be started: {error}") from error
        finally:
            theirs.close()
        self._finalizer = weakref.finalize(self, _end, self._process, self._pipe)
        self._is_ready = False

    @property
    def is_over(self) -> bool:
        return not self._finalizer.alive

    def end(self) -> None:
        self._finalizer()

    def read(self, ask: bytes, content: bytes, limits: IngestLimits, left_s: float) -> Read | _Died:
        pages: list[str] = []
        begun = time.monotonic()
        try:
            self._wait_until_ready()
            begun = time.monotonic()
            self._pipe.send_bytes(ask)
            self._pipe.send_bytes(content)
            return self._answer(pages, limits, left_s)
        except (EOFError, ConnectionError):
            code = self._process.wait()
            self.end()
            return _Died(_how(code), len(pages), "\n\n".join(pages), time.monotonic() - begun)
        except BaseException:  # Ctrl-C, another time limit: the answer will not be fetched
            self.end()
            raise

    def _wait_until_ready(self) -> None:
        if self._is_ready:
            return
        if not self._pipe.poll(_START_S):
            raise MachineFailed(f"the process that reads PDFs has not started within {_START_S:g} s")
        try:
            self._pipe.recv_bytes()
        except EOFError as error:
            code = self._process.wait()
            raise MachineFailed(f"the process that reads PDFs ended with {_how(code)} before it began") from error
        self._is_ready = True

    def _answer(self, pages: list[str], limits: IngestLimits, left_s: float) -> Read:
        begun = time.monotonic()
        while True:
            left = begun + left_s - time.monotonic()
            if not self._pipe.poll(max(0.0, min(left, limits.pdf_page_s)) + GRACE_S):
                self.end()
                return _too_long(pages, limits, time.monotonic() - begun)
            said = _Answer.decode(self._pipe.recv_bytes())
            if isinstance(said, _Page):
                pages.append(said.text)
            elif not isinstance(said, _Ready):
                return _found(said)


def _too_long(pages: list[str], limits: IngestLimits, seconds: float) -> Quarantined:
    error = f"expected a PDF within {limits.pdf_s:g} s, and each page within {limits.pdf_page_s:g} s"
    text = "\n\n".join(page for page in pages if page)
    return Quarantined(f"{error}; page {len(pages) + 1} was not read after {seconds:.1f} s", TIME_LIMIT, document=text)


def _found(said: _Text | _Dropped | _Aside) -> Read:
    if isinstance(said, _Text):
        return PdfText(said.text, said.num_pages, said.scanned_share, said.text_garbled_share)
    if isinstance(said, _Dropped):
        return Dropped(said.reason, said.value, said.threshold)
    return Quarantined(said.error, said.kind, document=said.document)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    pipe.close()
    process.kill()
    process.wait()


# The child


def serve(descriptor: int) -> None:
    """Read PDFs for the process at the other end, until that is gone."""
    pipe = Connection(descriptor)
    asked: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()
    # It notices the parent's end even while pdfium hangs, which does not hold Python's lock.
    threading.Thread(target=_listen, args=(pipe, asked), daemon=True).start()
    _take_the_blame()
    pipe.send_bytes(_encode(_Ready()))
    while True:
        ask, content = asked.get()
        wanted = msgspec.msgpack.decode(ask, type=_Ask)
        limits = IngestLimits(**wanted.limits)
        with _memory_limited(limits.max_pdf_memory):
            found = extract_pdf(
                content, limits, on_page=lambda text: pipe.send_bytes(_encode(_Page(text))), **wanted.options
            )
        pipe.send_bytes(_encode(_said(found)))


def _listen(pipe: Connection, asked: "queue.SimpleQueue[tuple[bytes, bytes]]") -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            asked.put((pipe.recv_bytes(), pipe.recv_bytes()))
    os._exit(0)


def _said(found: Read) -> _Text | _Dropped | _Aside:
    if isinstance(found, PdfText):
        return _Text(found.text, found.num_pages, found.scanned_share, found.text_garbled_share)
    if isinstance(found, Dropped):
        value = found.value if isinstance(found.value, int | float) else None
        return _Dropped(found.reason, value, found.threshold)
    return _Aside(found.error, found.kind, found.document or "")


def _take_the_blame() -> None:
    """Where memory runs out, let Linux end this process before those that have done nothing; and leave no core file."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


@contextlib.contextmanager
def _memory_limited(num_bytes: int) -> Iterator[None]:
    """Allow `num_bytes` on top of what is in use, where the system can say what is; beyond that, pdfium aborts."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        yield
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
