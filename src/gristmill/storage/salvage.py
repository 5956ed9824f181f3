"""The good part of a damaged compressed file: everything up to the damage, to the byte.

A fast decompressor works on large pieces, and when it meets damage in one, loses what it has made of it. Here a file
that is known to be damaged is read a second time, byte by byte where the damage is. So what is kept depends on the file
alone. Zeros after the end (tapes and some copying tools pad with them) are not damage; anything else after the end is
reported, but only counts as lost content if it may be another member whose beginning is damaged. As with gunzip, a
flipped bit may change text before a checksum shows it.
"""

import bz2
import os
import struct
import zlib
from collections.abc import Generator, Iterator
from typing import BinaryIO

import pyarrow as pa

from gristmill.errors import DamagedFile

_CHUNK_BYTES = 1 << 13  # of the file at a time: a thousand times that in memory at worst
_PIECE_BYTES = 1 << 20
_MAGIC = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
_SIGNATURE = {"gzip": b"\x1f\x8b\x08", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}  # with gzip's one method
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)  # magic numbers of zstd frames without content


def salvage(raw: BinaryIO, codec: str, *, name: str, skip: int) -> Iterator[bytes]:
    """Yield the content after its first `skip` bytes, up to the damage; then raise `DamagedFile`."""
    size = raw.seek(0, os.SEEK_END)
    if codec == "zstd":
        yield from _Zstd(raw, size, name).content(skip)
        return
    for piece in _members(raw, codec, size, name):
        if len(piece) > skip:
            yield piece[skip:]
        skip = max(0, skip - len(piece))


def _damaged(name: str, codec: str, problem: str, position: int, size: int, *, complete: bool = False) -> DamagedFile:
    place = f"at byte {position:,} of {size:,}"
    error = DamagedFile(f"{name}: expected a whole {codec} file; got {problem} {place}")
    error.position, error.lost_bytes, error.is_complete = position, max(0, size - position), complete
    return error


def _ends_early(name: str, codec: str, start: int, size: int) -> DamagedFile:
    """The error for a member that begins at `start` and is cut off.

    The missing bytes cannot be counted. The bytes left of the member stand for them: they are the nearest guess, and a
    loss of 0 would pass every limit by bytes.
    """
    error = _damaged(name, codec, "a premature end of the file", size, size)
    error.lost_bytes = size - start
    return error


def _behind_the_end(raw: BinaryIO, codec: str, position: int, size: int, name: str, *, num_members: int) -> None:
    """Look at what follows the last member: nothing or zeros are fine, anything else may be a damaged member."""
    is_zero, has_member = True, num_members > 1
    raw.seek(position)
    while piece := raw.read(_PIECE_BYTES):
        has_member = has_member or _SIGNATURE[codec] in piece
        is_zero = is_zero and not piece.strip(b"\0")
    if is_zero:
        return
    raw.seek(position)
    if has_member or _is_nearly(raw.read(len(_SIGNATURE[codec])), _SIGNATURE[codec]):
        problem = f"{size - position:,} bytes that are not {codec} where another member seems to begin"
        raise _damaged(name, codec, problem, position, size)
    problem = f"{size - position:,} bytes after its end that are not {codec} (all of its content was read)"
    raise _damaged(name, codec, problem, position, size, complete=True)


def _is_nearly(found: bytes, signature: bytes) -> bool:
    """Whether a member may have begun like this: with one byte damaged, or cut off in its first bytes."""
    if len(found) < len(signature):
        return signature.startswith(found)
    return sum(a != b for a, b in zip(found, signature, strict=True)) <= 1


# gzip and bz2


def _members(raw: BinaryIO, codec: str, size: int, name: str) -> Iterator[bytes]:
    """The content of all members (complete compressed files, end to end)."""
    position = num_members = 0
    while position < size:
        raw.seek(position)
        if raw.read(len(_MAGIC[codec])) != _MAGIC[codec] and position:
            _behind_the_end(raw, codec, position, size, name, num_members=num_members)
            return
        position = yield from _member(raw, codec, position, size, name)
        num_members += 1


def _member(raw: BinaryIO, codec: str, start: int, size: int, name: str) -> Generator[bytes, None, int]:
    """Yield a member's content and return where it ends.

    It is decoded twice: the chunk that turns out to be bad is fed a byte at a time the second time.
    """
    good = _bad_chunk(raw, codec, start)  # where the first chunk that cannot be decoded whole begins
    decoder = _decoder(codec)
    raw.seek(start)
    position = start
    while not decoder.eof:
        data = raw.read(_CHUNK_BYTES if position < good else 1)
        if not data:
            raise _ends_early(name, codec, start, size)
        position += len(data)
        try:
            yield from _outputs(decoder, data)
        except (zlib.error, OSError) as error:
            # A wrong checksum or length of the content, with at most gzip's length after it.
            complete = str(error).endswith(("data check", "length check")) and size - position <= 4
            damage = _damaged(name, codec, f"{error}", position, size, complete=complete)
            if position == size and not complete:
                damage.lost_bytes = size - start  # noticed at the last byte, wherever the damage is
            raise damage from error
    return position - len(decoder.unused_data)


def _bad_chunk(raw: BinaryIO, codec: str, start: int) -> int:
    """Where the chunk begins in which decoding a member fails; past what was decoded if it does not."""
    decoder = _decoder(codec)
    raw.seek(start)
    position = start
    while not decoder.eof and (data := raw.read(_CHUNK_BYTES)):
        try:
            for _ in _outputs(decoder, data):
                pass
        except (zlib.error, OSError):
            return position
        position += len(data)
    return position + 1


def _decoder(codec: str) -> "zlib._Decompress | bz2.BZ2Decompressor":
    return zlib.decompressobj(wbits=31) if codec == "gzip" else bz2.BZ2Decompressor()


def _outputs(decoder: "zlib._Decompress | bz2.BZ2Decompressor", data: bytes) -> Iterator[bytes]:
    """What a decoder makes of some input, a bounded piece at a time."""
    if isinstance(decoder, bz2.BZ2Decompressor):
        yield decoder.decompress(data, _PIECE_BYTES)
        while not decoder.eof and not decoder.needs_input:
            yield decoder.decompress(b"", _PIECE_BYTES)
        return
    yield decoder.decompress(data, _PIECE_BYTES)
    while decoder.unconsumed_tail and not decoder.eof:
        yield decoder.decompress(decoder.unconsumed_tail, _PIECE_BYTES)


# zstd, for which Python has no decoder of its own: Arrow's, fed by hand


class _Zstd:
    """A damaged zstd file."""

    def __init__(self, raw: BinaryIO, size: int, name: str) -> None:
        self._raw, self._size, self._name = raw, size, name
        self._last_frame = self._num_frames = 0  # where the last one begins, and how many there are

    def content(self, skip: int) -> Iterator[bytes]:
        end = self._end_of_frames()
        feed = _Feed(self._raw, end, slow_from=self._bad_from(end))
        stream = pa.CompressedInputStream(pa.PythonFile(feed, "r"), "zstd")
        try:
            left = skip
            while left and (piece := stream.read(min(left, _PIECE_BYTES))):
                left -= len(piece)
            # Byte by byte: a call that fails loses what it has made. Less than a piece is left before the damage.
            yield from self._piecewise(stream)
        except OSError as error:
            if feed.position >= self._size:
                raise _ends_early(self._name, "zstd", self._last_frame, self._size) from error
            problem = "data that cannot be decoded"
            raise _damaged(self._name, "zstd", problem, feed.position, self._size) from error
        _behind_the_end(self._raw, "zstd", end, self._size, self._name, num_members=self._num_frames)

    @staticmethod
    def _piecewise(stream: pa.NativeFile) -> Iterator[bytes]:
        found = bytearray()
        try:
            while byte := stream.read(1):
                found += byte
                if len(found) == _PIECE_BYTES:
                    yield bytes(found)
                    found.clear()
        except OSError:
            yield bytes(found)
            raise
        yield bytes(found)

    def _bad_from(self, end: int) -> int:
        """Where the piece that Arrow fails in begins."""
        feed = _Feed(self._raw, end, slow_from=end)
        stream = pa.CompressedInputStream(pa.PythonFile(feed, "r"), "zstd")
        try:
            while stream.read(_PIECE_BYTES):
                pass
        except OSError:
            return feed.last
        return end

    def _end_of_frames(self) -> int:
        """Where the last frame ends if something that is not a frame follows; else the end of the file."""
        position = 0
        while position < self._size:
            following = self._after_frame(position)
            if following is None:
                return position or self._size
            self._last_frame, self._num_frames = position, self._num_frames + 1
            position = following
        return self._size

    def _after_frame(self, position: int) -> int | None:
        """Where a frame ends, by its headers (RFC 8878, 3.1); None where there is no frame."""
        head = self._at(position, 18)
        if len(head) < 4:
            return None
        (magic,) = struct.unpack("<I", head[:4])
        if magic in _SKIPPABLE:
            return position + 8 + int.from_bytes(head[4:8], "little")
        if head[:4] != _MAGIC["zstd"] or len(head) == 4:
            return None if head[:4] != _MAGIC["zstd"] else self._size
        flags = head[4]
        is_single, has_checksum = flags >> 5 & 1, flags >> 2 & 1
        content_size = (is_single, 2, 4, 8)[flags >> 6]
        position += 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3] + content_size
        last = 0
        while not last:
            header = int.from_bytes(self._at(position, 3), "little")
            last, kind, length = header & 1, header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else length)
            if position > self._size or kind == 3:  # reserved: the header is damaged
                return self._size
        return position + 4 * has_checksum

    def _at(self, position: int, length: int) -> bytes:
        self._raw.seek(position)
        return self._raw.read(length)


class _Feed:
    """A file that gives its bytes one by one from a certain place on."""

    closed = False

    def __init__(self, raw: BinaryIO, end: int, *, slow_from: int) -> None:
        self._raw, self._end, self._slow_from = raw, end, slow_from
        self.position = self.last = 0

    def read(self, size: int) -> bytes:
        most = min(size, self._end - self.position)
        if most > 0 and self.position >= self._slow_from:
            most = 1
        self._raw.seek(self.position)
        piece = self._raw.read(max(0, most))
        self.last, self.position = self.position, self.position + len(piece)
        return piece

    def close(self) -> None:
        """Do nothing: the file belongs to the caller."""
