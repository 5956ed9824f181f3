"""Tar archives by their headers: which members there are, where each begins, and where its content lies.

A header is 512 bytes: name, size, a checksum over the header, a type (POSIX 1003.1 "ustar"; GNU's and PAX's long names
come in headers of their own before it). Names are labels only: nothing is unpacked to disk, so `..` and links lead
nowhere. Python's `tarfile` ends without a word at the first header it cannot read, in the middle of an archive too;
what is behind it would be lost, and nobody told. Here that is `DamagedFile`, with its place and how much is lost. Zeros
between members are passed over: archives that were joined with `cat` are read to their end.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gristmill.errors import DamagedFile

BLOCK = 512
_ZEROS = bytes(BLOCK)
_MANY_ZEROS = 1 << 16
_FILE_TYPES = b"0\0" + b"7"  # regular, as old archives say it, contiguous
_WITHOUT_CONTENT = b"123456"  # links, devices, directories, pipes: whatever size they state, none follows
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"
_MOST_EXTENDED = 1 << 20  # bytes of an extended header: a name of a megabyte is none

Read = Callable[[int, int], "bytes | memoryview"]  # bytes start to end, fewer only where the archive ends before


class Member(NamedTuple):
    """A member: `start` is where its headers begin, extended ones included; `end` where those of the next may."""

    name: str
    start: int
    data: int
    size: int
    end: int
    is_file: bool


def members(read: Read, start: int, end: int, *, who: str, is_last: bool = True) -> Iterator[Member]:
    """Yield the members whose headers begin in [start, end); members begin at both, or the archive ends there.

    Content is not read. Raises DamagedFile where there is no header, where the content is cut off, and where nothing
    says that the archive `is_last` of is at its end: one that was cut between two members looks like that.
    """
    position = start
    has_ended = False
    while position < end:
        header = bytes(read(position, position + BLOCK))
        if header and not header.strip(b"\0"):
            has_ended = True
            position = _behind_zeros(read, position + len(header), end)
        elif header:
            member = _member(read, position, end, who)
            yield member
            has_ended = False
            position = min(member.end, end)  # padding may be missing at the end
        else:
            break
    if is_last and not has_ended:
        got = f"no block of zeros at its end, byte {position:,}: it may have been cut"
        error = damaged(position, position, got, who)
        error.is_complete = True
        raise error


def _behind_zeros(read: Read, position: int, end: int) -> int:
    """Where a block begins that is not all zeros. The end of an archive is padded to some kilobytes, or to anything."""
    while position < end:
        piece = bytes(read(position, min(position + _MANY_ZEROS, end)))
        rest = piece.lstrip(b"\0")
        if rest or not piece:
            return position + (len(piece) - len(rest)) // BLOCK * BLOCK if rest else end
        position += len(piece)
    return position


def _member(read: Read, start: int, end: int, who: str) -> Member:
    name: str | None = None
    size: int | None = None
    position = start
    while True:
        header = bytes(read(position, position + BLOCK))
        kind, stated = _checked(header, start, position, end, who)
        data = position + BLOCK
        if kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL):
            behind = data + _padded(stated)
            if stated > _MOST_EXTENDED or behind > end:
                raise damaged(start, end, f"an extended header of {stated:,} bytes at byte {position:,}", who)
            content = bytes(read(data, data + stated))
            if len(content) < stated:
                raise damaged(start, start + len(content), "half an extended header", who)
            if kind == _LONG_NAME:
                name = _text(content.rstrip(b"\0"))
            elif kind == _PAX:
                said = dict(_pax_records(content))
                name = said.get("path", name)
                size = int(said["size"]) if said.get("size", "").isdigit() else size
            position = behind
            continue
        size = stated if size is None else size
        stored = 0 if kind in _WITHOUT_CONTENT else size
        behind = data + _padded(stored)
        if data + stored > end:
            raise damaged(start, end, f"{end - data:,} of {stored:,} bytes of {name or _name(header)!r}", who)
        is_file = kind in _FILE_TYPES and not _name(header).endswith("/")
        return Member(_name(header) if name is None else name, start, data, stored, behind, is_file)


def _checked(header: bytes, start: int, position: int, end: int, who: str) -> tuple[bytes, int]:
    """The type and size of a header whose checksum is right."""
    if len(header) == BLOCK:
        stated = _number(header[148:156])
        # The sum is taken with eight spaces in its own place.
        if stated is not None and stated == sum(header) - sum(header[148:156]) + 8 * ord(" "):
            size = _number(header[124:136])
            if size is not None and size >= 0:
                return header[156:157], size
    raise damaged(start, end, f"{header[:16]!r} at byte {position:,}", who)


def damaged(start: int, end: int, got: str, who: str) -> DamagedFile:
    """The error for an archive that cannot be read from the member at `start` on."""
    error = DamagedFile(f"{who}: expected a whole tar archive; got {got}")
    error.position = start
    error.lost_bytes = end - start
    return error


def _number(field: bytes) -> int | None:
    """Octal digits; or, where they would not do, a binary number behind a byte 0x80."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        return None


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _pax_records(content: bytes) -> Iterator[tuple[str, str]]:
    """Records of the form "<length> <key>=<value>\\n"; whatever follows one that is not of it is left."""
    position = 0
    while position < len(content):
        digits, _, _ = content[position:].partition(b" ")
        length = int(digits) if digits.isdigit() else 0
        if not length or position + length > len(content):
            return
        key, _, value = content[position + len(digits) + 1 : position + length - 1].partition(b"=")
        yield _text(key), _text(value)
        position += length


class Forward:
    """Content that comes from its beginning, read by position: what lies before a position once asked for is gone."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = bytearray()
        self._position = 0  # of the first byte held

    def read(self, start: int, end: int) -> bytes:
        """Return bytes start to end, fewer only where the content ends before."""
        while self._position + len(self._held) < end:
            self._drop_before(start)
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._held += piece
        self._drop_before(start)
        return bytes(self._held[: end - start])

    def _drop_before(self, start: int) -> None:
        gone = min(start - self._position, len(self._held))
        del self._held[:gone]
        self._position += gone
