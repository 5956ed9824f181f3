"""`KeptDocuments`: dropped and quarantined documents, from the files a run keeps them in.

The page asks for a document by a number that was given out with its excerpt: no name of a file comes from a request.
Files are those below the directories of the run; what is a link to elsewhere is left out.
"""

import contextlib
import json
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from gristmill.dashboard.measures import Excerpt
from gristmill.metrics.snapshot import alike, without_kind

MOST_CHARS = 200_000  # of a document that is shown
MOST_READ_BYTES = 16_000_000  # of files looked through for examples
MOST_LINE_BYTES = 16_000_000  # a longer document is passed over
EXCERPT_CHARS = 400
EXAMPLES = 20
RECORDS = 100
MOST_REFS = 100_000
HIDDEN = ("traceback", "document", "text")  # fields that are shown apart from the others


class Record(msgspec.Struct, frozen=True):
    """One document in quarantine, in a row of a table."""

    ref: int
    id: str
    place: str
    error: str


class Document(msgspec.Struct, frozen=True):
    """A document in full, or as much of it as is shown."""

    title: str
    facts: dict[str, object]
    text: str
    length: int
    cut: bool
    traceback: str = ""


class KeptDocuments:
    """Gives out numbers for documents, and the documents for numbers. May be used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: list[tuple[Path, int, int]] = []  # file, offset, bytes
        self._numbers: dict[tuple[Path, int, int], int] = {}

    def rejects(self, directory: Path, stage: str, reason: str) -> list[Excerpt]:
        """Return the first documents a stage dropped for a reason, as far as they are found without much reading."""
        found: list[Excerpt] = []
        if directory.is_symlink():
            return found
        for file, offset, line in _lines(sorted(directory.glob("*.jsonl")), MOST_READ_BYTES):
            record = _object(line)
            if (record.get("reject_stage"), record.get("reject_reason")) != (stage, reason):
                continue
            value = record.get("reject_value")
            found.append(
                Excerpt(
                    _text(record.get("reject_id")),
                    _text(record.get("reject_source")),
                    _text(record.get("text"))[:EXCERPT_CHARS],
                    float(value) if isinstance(value, int | float) else None,
                    self._number(file, offset, len(line)),
                )
            )
            if len(found) == EXAMPLES:
                break
        return found

    def quarantined(self, files: Iterable[Path], stage: str, kind: str, message: str) -> list[Record]:
        """Return the first documents a stage failed on with errors like this one."""
        found: list[Record] = []
        for file, offset, line in _lines(files, MOST_READ_BYTES):
            record = _object(line)
            error = _text(record.get("error"))
            if (record.get("stage"), record.get("kind")) != (stage, kind):
                continue
            if not alike(without_kind(error, kind)).endswith(alike(message)):
                continue
            number = record.get("line")
            place = f"{_text(record.get('source'))}" + (f":{number}" if number is not None else "")
            found.append(
                Record(self._number(file, offset, len(line)), _text(record.get("document_id")), place, error[:300])
            )
            if len(found) == RECORDS:
                break
        return found

    def document(self, ref: int) -> Document | None:
        """Return the document with a number; None if there is none, or its file has changed since."""
        with self._lock:
            if not 0 <= ref < len(self._places):
                return None
            file, offset, length = self._places[ref]
        record: dict[str, object] = {}
        with contextlib.suppress(OSError), _opened(file) as opened:
            opened.seek(offset)
            record = _object(opened.read(length))
        if not record:
            return None
        text = _text(record.get("document", record.get("text")))
        facts = {
            name: _shown(value) for name, value in record.items() if name not in HIDDEN and value not in (None, "")
        }
        title = _text(record.get("reject_id") or record.get("document_id") or record.get("id") or "(no id)")
        trace = _text(record.get("traceback"))
        return Document(title[:300], facts, text[:MOST_CHARS], len(text), len(text) > MOST_CHARS, trace[-MOST_CHARS:])

    def _number(self, file: Path, offset: int, length: int) -> int:
        place = file, offset, length
        with self._lock:
            if place not in self._numbers:
                if len(self._places) >= MOST_REFS:  # numbers given out long ago are forgotten
                    self._places, self._numbers = [], {}
                self._numbers[place] = len(self._places)
                self._places.append(place)
            return self._numbers[place]


def _opened(file: Path) -> BinaryIO:
    """Open a file, but never follow a link of its name, even one that was put in its place a moment ago."""
    return os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _lines(files: Iterable[Path], most_bytes: int) -> Iterator[tuple[Path, int, bytes]]:
    for file in files:
        if file.is_symlink() or not file.is_file():
            continue
        offset = 0
        with _opened(file) as opened:
            while line := opened.readline(MOST_LINE_BYTES):
                yield file, offset, line
                offset += len(line)
                most_bytes -= len(line)
                if most_bytes <= 0:
                    return


def _object(line: bytes) -> dict[str, object]:
    """What a line says; nothing if it is damaged or still being written."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _shown(value: object) -> object:
    return value if isinstance(value, int | float | bool) else _text(value)[:2_000]
