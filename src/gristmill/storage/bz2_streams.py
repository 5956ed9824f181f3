"""The streams of a bzip2 file, read from any byte onwards.

A bzip2 file may be several streams end to end, each of which can be decompressed alone, as in Wikimedia's multistream
dumps and whatever parallel compressors write. A stream begins, at a whole byte, with `BZh`, a digit, and the mark of a
block or of its end: ten bytes. Such a place counts as a beginning if its first block decompresses, which a checksum
confirms. So where streams begin depends on the file alone, and any number of readers agree about it without an index.

A part of a file owns the streams that begin in it, and what follows them up to the next beginning. Damage in between
belongs to the reader of the stream before it, so it is reported once, wherever the file was cut.
"""

import bz2
import re
from collections.abc import Iterator
from typing import NamedTuple

from gristmill.storage.open_read import InputFile

_MARK = re.compile(rb"BZh[1-9](?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)")
_MARK_BYTES = 10
_FIRST_BLOCK_BYTES = 1 << 20  # of the file; a block is at most 900,000 bytes and never much larger when compressed
_READ_BYTES = 1 << 18
_SEARCH_BYTES = 1 << 22
_PIECE_BYTES = 1 << 20


class Piece(NamedTuple):
    """Some decompressed content, and where in the file its stream begins."""

    stream: int
    content: bytes


class Damage(NamedTuple):
    """Bytes `start` to `end` of the file, which cannot be read. `owner` is the stream they are in or follow."""

    owner: int
    start: int
    end: int
    problem: str


def find_stream(file: InputFile, start: int, end: int) -> int | None:
    """Return where the first stream begins in [start, end), or None if none does."""
    position = start
    while position < end:
        content = bytes(memoryview(file.read_range(position, min(position + _SEARCH_BYTES, end + _MARK_BYTES - 1))))
        for found in _MARK.finditer(content):
            if position + found.start() < end and _is_beginning(file, position + found.start()):
                return position + found.start()
        if len(content) < _MARK_BYTES:
            return None
        position += len(content) - _MARK_BYTES + 1
    return None


def _is_beginning(file: InputFile, position: int) -> bool:
    """Whether a stream begins here: its first block has the checksum it states, or it ends at once."""
    decompressor = bz2.BZ2Decompressor()
    content = memoryview(file.read_range(position, position + _FIRST_BLOCK_BYTES))
    try:
        return bool(decompressor.decompress(content, max_length=1)) or decompressor.eof
    except (OSError, ValueError):
        return False


def read_streams(file: InputFile, start: int, end: int) -> Iterator[Piece | Damage]:
    """Yield the content from the first stream in [start, end) on, with a `Damage` for whatever is damaged.

    It goes on past `end`, because things may begin in one stream and end in the next: the caller stops.
    """
    position = find_stream(file, start, end)
    if start == 0 and position != 0:
        behind = position if position is not None else _next_stream(file, end)
        yield Damage(0, 0, behind, "no stream at its beginning")
        position = None if behind >= end else behind
    owner = position
    while position is not None and position < file.size and owner is not None:
        if position != owner and not _begins_at(file, position):
            behind = _next_stream(file, position)
            if not _is_padding(file, position, behind):
                yield Damage(owner, position, behind, "no stream where the one before it ends")
            position = behind
            continue
        owner = position
        stream = _Stream(file, position)
        yield from stream.pieces()
        position = stream.end
        if stream.problem:
            position = _next_stream(file, owner + 1)
            yield Damage(owner, owner, position, stream.problem)


def _begins_at(file: InputFile, position: int) -> bool:
    content = bytes(memoryview(file.read_range(position, position + _MARK_BYTES)))
    return _MARK.match(content) is not None and _is_beginning(file, position)


def _next_stream(file: InputFile, position: int) -> int:
    """Where the next stream begins; the end of the file if none does."""
    found = find_stream(file, position, file.size)
    return file.size if found is None else found


def _is_padding(file: InputFile, start: int, end: int) -> bool:
    """Whether there is nothing but zeros: some copying tools add them to the end."""
    while start < end:
        content = bytes(memoryview(file.read_range(start, min(start + _SEARCH_BYTES, end))))
        if content.strip(b"\0"):
            return False
        start += len(content)
    return True


class _Stream:
    """One stream while it is read; `end` and `problem` are known once all its pieces have been taken."""

    def __init__(self, file: InputFile, start: int) -> None:
        self._file = file
        self._start = start
        self.end = start
        self.problem = ""

    def pieces(self) -> Iterator[Piece]:
        decompressor = bz2.BZ2Decompressor()
        position = self._start
        while not decompressor.eof:
            content: bytes | memoryview = b""
            if decompressor.needs_input:
                content = memoryview(self._file.read_range(position, position + _READ_BYTES))
                if not content:
                    self.problem = "the end of the file in the middle of a stream"
                    return
                position += len(content)
            try:
                made = decompressor.decompress(content, max_length=_PIECE_BYTES)
            except (OSError, ValueError) as error:
                self.problem = str(error)
                return
            if made:
                yield Piece(self._start, made)
        self.end = position - len(decompressor.unused_data)
