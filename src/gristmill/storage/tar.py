"""Tar archives by their headers: which members there are, where each begins, and where its content lies.

A header is 512 bytes: name, size, a checksum over the header, a type (POSIX 1003.1 "ustar"; GNU's and PAX's long names
come in headers of their own before it). Names are labels only: nothing is unpacked to disk, so `..` and links lead
nowhere. Python's `tarfile` stops silently at the first header it cannot read, even in the middle of an archive; what
follows would be lost unnoticed. Here that is a `DamagedFile`, with its place and how much is lost. Zeros between
members are passed over: archives that were joined with `cat` are read to their end. Zeros that do not end an archive
are damage of the kind a disk leaves: members may have been there, which is reported after all others are read.

Files with holes (`tar --sparse`) are stored without them, with a map of what is stored. There are four ways to write
the map, and all are read: GNU's own header, and the versions 0.0, 0.1 and 1.0 in extended headers.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gristmill.errors import DamagedFile

BLOCK = 512
_END = 2 * BLOCK  # zeros that end an archive, at least; most programs go on to fill a whole record
_RECORD = 20 * BLOCK
_MANY_ZEROS = 1 << 16
_FILE_TYPES = b"0\0" + b"7"  # regular, regular in old archives, contiguous
_WITHOUT_CONTENT = b"123456"  # links, devices, directories, pipes: whatever size they state, none follows
_DIRECTORY = b"5"
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"
_SPARSE = b"S"
_MOST_EXTENDED = 1 << 20  # bytes of an extended header, or of a map of holes: a megabyte cannot be a name
_MOST_DIGITS = 20  # of a number: more than any size has, and few enough for Python to read

Read = Callable[[int, int], "bytes | memoryview"]  # bytes start to end, fewer only where the archive ends first


class Member(NamedTuple):
    """A member: `start` is where its headers begin, extended ones included; `end` where those of the next may.

    `size` is that of the file. For one with holes, `pieces` are what is stored of it, end to end from `data` on: (where
    in the file, how many bytes).
    """

    name: str
    start: int
    data: int
    size: int
    end: int
    is_file: bool
    pieces: tuple[tuple[int, int], ...] | None = None
    is_directory: bool = False


def members(read: Read, start: int, end: int, *, who: str, is_last: bool = True) -> Iterator[Member]:
    """Yield the members whose headers begin in [start, end); members begin at both, or the archive ends there.

    Content is not read. Raises DamagedFile where there is no header, where the content is cut off, and, with `is_last`,
    where nothing says that the archive is at its end: one that was cut between two members looks like that. For zeros
    in the middle it is raised after the last member.
    """
    position = start
    has_ended = False
    holes: list[tuple[int, int]] = []
    while position < end:
        header = bytes(read(position, position + BLOCK))
        if header and not header.strip(b"\0"):
            has_ended = True
            zeros, position = position, _behind_zeros(read, position + len(header), end)
            if position < end and read(position, position + 1) and not _is_end(zeros, position):
                holes.append((zeros, position))
        elif header:
            member = _member(read, position, end, who)
            yield member
            has_ended = False
            position = min(member.end, end)  # padding may be missing at the end
        else:
            break
    if holes:
        got = f"{holes[0][1] - holes[0][0]:,} bytes of zeros in its middle, at byte {holes[0][0]:,}"
        first = holes[0][0]
        raise damaged(first, first + sum(stop - start for start, stop in holes), got, who)
    if is_last and not has_ended:
        got = f"no block of zeros at its end, byte {position:,}: it may have been cut"
        error = damaged(position, position, got, who)
        error.is_complete = True
        raise error


def _is_end(start: int, stop: int) -> bool:
    """Whether zeros between two members may be the end of one archive, with another after it."""
    size = stop - start
    return size == _END or (_END <= size < _END + _RECORD and stop % _RECORD == 0)


def _behind_zeros(read: Read, position: int, end: int) -> int:
    """Where a block begins that is not all zeros. The end of an archive is padded to some kilobytes, or any length."""
    while position < end:
        piece = bytes(read(position, min(position + _MANY_ZEROS, end)))
        rest = piece.lstrip(b"\0")
        if rest or not piece:
            return position + (len(piece) - len(rest)) // BLOCK * BLOCK if rest else end
        position += len(piece)
    return position


def content(read: Read, member: Member, who: str) -> bytes:
    """Return what is in a file, with zeros where it has holes. Raises DamagedFile if the archive ends too early."""
    pieces = ((0, member.size),) if member.pieces is None else member.pieces
    stored = sum(length for _, length in pieces)
    data = bytes(read(member.data, member.data + stored))
    if len(data) < stored:
        got = f"{len(data):,} of {stored:,} bytes of {member.name!r}"
        raise damaged(member.start, member.data + len(data), got, who)
    if member.pieces is None:
        return data
    whole, position = bytearray(member.size), 0
    for offset, length in pieces:
        whole[offset : offset + length] = data[position : position + length]
        position += length
    return bytes(whole)


def _member(read: Read, start: int, end: int, who: str) -> Member:
    name: str | None = None
    said: list[tuple[str, str]] = []
    position = start
    while True:
        header = bytes(read(position, position + BLOCK))
        kind, stated = _checked(header, start, position, end, who)
        data = position + BLOCK
        if kind not in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL):
            break
        extended = _extended(read, start, data, stated, end, who)
        if kind == _LONG_NAME:
            name = _text(extended.rstrip(b"\0"))
        elif kind == _PAX:
            said += _pax_records(extended, start, end, who)
        position = data + _padded(stated)
    known = dict(said)
    name = known.get("path", _name(header) if name is None else name)
    size = _decimal(known["size"]) if "size" in known else stated
    stored = 0 if kind in _WITHOUT_CONTENT else size
    if stored is None or data + stored > end:
        got = f"{max(0, end - data):,} of {known.get('size', stored)} bytes of {name!r}"
        raise damaged(start, end, got, who)
    is_file = kind in _FILE_TYPES + _SPARSE and not _name(header).endswith("/")
    is_directory = kind == _DIRECTORY or (kind in _FILE_TYPES and not is_file)
    member = Member(name, start, data, stored, data + _padded(stored), is_file, is_directory=is_directory)
    try:
        member = _with_holes(read, member, header, said) if is_file else member
    except (ValueError, KeyError):
        raise damaged(start, end, f"a map of holes of {name!r} that cannot be read", who) from None
    if member.pieces is not None and member.data + sum(length for _, length in member.pieces) > end:
        raise damaged(start, end, f"{max(0, end - member.data):,} bytes of {name!r}, and not the rest", who)
    return member


def _extended(read: Read, start: int, data: int, size: int, end: int, who: str) -> bytes:
    """What is in an extended header of a member."""
    if size > _MOST_EXTENDED or data + _padded(size) > end:
        raise damaged(start, end, f"an extended header of {size:,} bytes at byte {data - BLOCK:,}", who)
    extended = bytes(read(data, data + size))
    if len(extended) < size:
        raise damaged(start, start + len(extended), "half an extended header", who)
    return extended


# Files with holes


def _with_holes(read: Read, member: Member, header: bytes, said: list[tuple[str, str]]) -> Member:
    """Return a member as it is if it has no holes; with its pieces and its true size and name if it has.

    Raises ValueError or KeyError if the map cannot be read.
    """
    known = dict(said)
    data = member.data
    if header[156:157] == _SPARSE:
        size = _whole(_number(header[483:495]))
        numbers, data = _map_of_header(read, header, data)
    elif known.get("GNU.sparse.major") == "1":
        size = _whole(_decimal(known["GNU.sparse.realsize"]))
        numbers, data = _map_of_content(read, member)
    elif "GNU.sparse.map" in known:
        size = _whole(_decimal(known["GNU.sparse.size"]))
        numbers = [_whole(_decimal(number)) for number in known["GNU.sparse.map"].split(",") if number]
    elif "GNU.sparse.size" in known:
        size = _whole(_decimal(known["GNU.sparse.size"]))
        pairs = ("GNU.sparse.offset", "GNU.sparse.numbytes")
        numbers = [_whole(_decimal(value)) for key, value in said if key in pairs]
    else:
        return member
    pieces = [(offset, length) for offset, length in zip(numbers[::2], numbers[1::2], strict=True) if length]
    ends = [0, *(offset + length for offset, length in pieces)]
    behind = member.end + (data - member.data if header[156:157] == _SPARSE else 0)
    in_order = all(offset >= end for (offset, _), end in zip(pieces, ends, strict=False))
    if not in_order or ends[-1] > size or data + sum(length for _, length in pieces) > behind:
        raise ValueError("expected pieces in order and within the file")
    name = known.get("GNU.sparse.name", member.name)
    return member._replace(name=name, data=data, size=size, end=behind, pieces=tuple(pieces))


def _map_of_header(read: Read, header: bytes, data: int) -> tuple[list[int], int]:
    """GNU's own: four pieces in the header, 21 in each block after it, as long as a byte says that there are more."""
    numbers: list[int] = []
    fields, more = header[386:482], header[482]
    while True:
        for at in range(0, len(fields), 24):
            if fields[at : at + 12].strip(b" \0") or fields[at + 12 : at + 24].strip(b" \0"):
                numbers += [_whole(_number(fields[at : at + 12])), _whole(_number(fields[at + 12 : at + 24]))]
        if not more:
            return numbers, data
        block = bytes(read(data, data + BLOCK))
        if len(block) < BLOCK or len(numbers) > _MOST_EXTENDED:
            raise ValueError("expected a whole map")
        fields, more, data = block[:504], block[504], data + BLOCK


def _map_of_content(read: Read, member: Member) -> tuple[list[int], int]:
    """Version 1.0: a count and then that many pairs, one number a line, in blocks ahead of the content."""
    text, wanted = b"", 1
    while text.count(b"\n") < wanted:
        block = bytes(read(member.data + len(text), member.data + len(text) + BLOCK))
        text += block
        count = _decimal(_text(text.partition(b"\n")[0])) if b"\n" in text else 0
        if len(block) < BLOCK or len(text) > _MOST_EXTENDED or count is None:
            raise ValueError("expected a whole map")
        wanted = 1 + 2 * count
    lines = text.split(b"\n")[1:wanted]
    return [_whole(_decimal(_text(line))) for line in lines], member.data + len(text)


def _whole(number: int | None) -> int:
    if number is None or number < 0:
        raise ValueError("expected a number")
    return number


# Headers


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
    """Octal digits; or, where those do not suffice, a binary number after a byte 0x80."""
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
    return name.decode("utf-8", "backslashreplace")  # a label, which every file can hold


def _pax_records(content: bytes, start: int, end: int, who: str) -> list[tuple[str, str]]:
    """Records of the form "<length> <key>=<value>\\n", up to zeros; anything else is damage.

    A header that is not understood may have said how long the content is, or what the member is called.
    """
    records, position = [], 0
    while position < len(content) and content[position]:
        digits, _, _ = content[position : position + _MOST_DIGITS + 1].partition(b" ")
        length = _decimal(_text(digits)) or 0
        record = content[position : position + length]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if len(record) < length or not equals or not record.endswith(b"\n"):
            raise damaged(start, end, f"{content[position : position + 16]!r} in an extended header", who)
        records.append((_text(key), _text(value)))
        position += length
    return records


def _decimal(text: str) -> int | None:
    """A number no longer than any size is; int() takes digits of every script, and no more than 4,300."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class Forward:
    """A stream read by position, forwards only: what lies before a position once asked for is gone."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = bytearray()
        self._position = 0  # of the first byte held

    def read(self, start: int, end: int) -> bytes:
        """Return bytes start to end, fewer only where the content ends first."""
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
