"""`Silence`: which document a worker has been at for a long time, found out without any cost while it works.

A stage gets a batch, and says nothing while it goes through it. After `LOOK_AFTER_S` at the same call a thread looks at
what the stage holds in its local variables, innermost function first: a text or an id of the batch among them is the
document it is at. What is found is left beside the crumb, where the driver can read it: its id, file and line.
"""

import contextlib
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from gristmill.errors import GristmillError
from gristmill.storage.file_system import is_url, plain
from gristmill.tasks.batch import Batch
from gristmill.worker.crumbs import CRUMB, write_note

AnyBatch = Batch[Any]
LOOK_AFTER_S = 30.0
LOOK_EVERY_S = 5.0
MOST_FRAMES, MOST_STRINGS = 60, 200
LINES_ENDINGS = (".jsonl", ".json", ".ndjson", ".jsonlines")
MOST_BYTES, MOST_HITS, PIECE_BYTES = 4 << 30, 1_000, 1 << 22  # of a file that is searched, and of what is found in it
END = "group_runner.py"  # our functions around a stage's: frames further out are not the stage's


class Silence:
    """Looks at one worker from a thread of its own. `doing` is crumb and task: the same, while nothing moves."""

    def __init__(self, block: Any, doing: Callable[[], tuple[bytes, int]]) -> None:
        self._block = block  # an mmap, or anything that can be written like one
        self._doing = doing
        self._of = threading.get_ident()
        self._last: tuple[bytes, int] | None = None
        self._since = 0.0
        self._has_noted = False
        self._is_over = threading.Event()

    def __enter__(self) -> "Silence":
        """Begin to look now and then."""
        threading.Thread(target=self._run, name="gristmill-silence", daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop looking: the process may go on as another worker."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_EVERY_S):
            # The block is closed, because the worker is ending; or a batch cannot be looked at, and none is named.
            with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError, GristmillError):
                self.look(time.monotonic())

    def look(self, now: float) -> None:
        """See whether anything has moved; if not for a long time, note the document."""
        doing = self._doing()
        if doing != self._last:
            self._last, self._since = doing, now
            if self._has_noted:
                write_note(self._block, "")
                self._has_noted = False
        elif not self._has_noted and now - self._since >= LOOK_AFTER_S and CRUMB.unpack(doing[0])[1] >= 0:
            frame = sys._current_frames().get(self._of)
            found = "" if frame is None else document_in(frame)
            write_note(self._block, found)
            self._has_noted = bool(found)


def document_in(frame: FrameType) -> str:
    """The document a stage is at, as its innermost functions know it; "" if none of them does."""
    frames = list(_frames(frame))
    batch = next((found for each in frames for found in each.f_locals.values() if isinstance(found, Batch)), None)
    if batch is None:
        return ""
    if batch.num_items == 1:
        return _name(batch, 0)
    columns = _texts(batch)
    for each in frames:
        for text in _strings(each):
            for column in columns:
                if text in column:
                    return _name(batch, column.index(text))
    return ""


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield frame
        if frame.f_code.co_filename.endswith(END):
            return
        frame = frame.f_back


def _strings(frame: FrameType) -> list[str]:
    found = []
    for value in list(frame.f_locals.values())[:MOST_STRINGS]:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            found += [inner for inner in list(value.values())[:MOST_STRINGS] if isinstance(inner, str)]
    return [text for text in found if text]


def _texts(batch: AnyBatch) -> list[list[str]]:
    """What documents of a table may be known by."""
    from gristmill.tasks.table import TableBatch  # here: a worker without tables does without Arrow

    if not isinstance(batch, TableBatch):
        return []
    return [[str(value.as_py()) for value in batch.column(name)] for name in ("text", "id") if batch.has_column(name)]


def _name(batch: AnyBatch, row: int) -> str:
    item = batch.item(row)
    for path in batch.sources() if item.id else ():
        if line := line_of(path, item.id):
            return f"document {item.id} of {path.rpartition('/')[2]}:{line}"
    source = item.source.rpartition("/")[2]
    return f"document {item.id or row}" + (f" of {source}" if source else "")


def line_of(path: str, document_id: str) -> int:
    """The line of a document in a file of JSON lines, counted from 1; 0 if it cannot be found quickly.

    A batch does not know it: lines are not counted while all goes well. The file is searched in place, at 2 GB/s.
    """
    if is_url(path) or not path.endswith(LINES_ENDINGS):
        return 0
    needle = json.dumps(document_id, ensure_ascii=False).strip('"').encode("utf-8", "surrogatepass")
    try:
        with open(plain(path), "rb") as file:  # noqa: PTH123  # Path interns every part of a path
            if not 0 < os.fstat(file.fileno()).st_size <= MOST_BYTES:
                return 0
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _line_in(data, needle, document_id)
    except OSError:
        return 0  # it is on another machine, or gone


def _line_in(data: mmap.mmap, needle: bytes, document_id: str) -> int:
    at = data.find(needle)
    for _ in range(MOST_HITS):
        if at < 0:
            break
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = len(data) if end < 0 else end
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(data[start:end])
            if isinstance(found, dict) and str(found.get("id")) == document_id:
                return 1 + sum(
                    data[piece : min(piece + PIECE_BYTES, start)].count(b"\n") for piece in range(0, start, PIECE_BYTES)
                )
        at = data.find(needle, end)
    return 0
