"""Files of many gzip members, read from any byte onwards: a part owns the members that start in it.

An archive of web pages has a member for each record, and no index of their starts. Three bytes mark one, `1f 8b 08`,
and the first bytes it unpacks to (`WARC/1.`). In an undamaged file of 65 MB, 24,930 places had the three bytes and
24,928 unpacked thus: exactly the members. But a page may itself be such an archive. Data that cannot be compressed is
stored as it is, so members of the inner one are found in the outer one, and must not be taken for records.

So a start is *trusted* if whole members, checksums included, follow one another from there for `TRUST_BYTES`, or to the
end of the file. Stored data comes in pieces of at most 65,535 bytes with five bytes of a header between them, which
break any chain of inner members. After a damaged member, reading goes on at the next trusted start.

So what is read is defined for the whole file: from byte 0, member by member, over damage to the next trusted start. A
part finds a trusted start a little before its first byte and goes on from there, so it comes to the same places as a
reader of the whole file (docs/adr/0053, tests/property/test_member_splits.py). Nothing here knows what records mean.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

MAGIC = b"\x1f\x8b\x08"
_RESERVED_FLAGS = 0xE0  # of a member's fourth byte: zlib refuses them, ISA-L does not look
TRUST_BYTES = 1 << 17
LOOK_BACK_BYTES = 1 << 18  # before a part, at first; then eight times as far
GIVE_UP_TIMES = 64  # a member that unpacks to this many times what is allowed is not unpacked to its end
_FEED_BYTES = 1 << 14  # most members are smaller, and what is fed beyond their end is copied
_WINDOW_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_PEEK_BYTES = 1 << 10  # of a member, to see how it begins: codes and the name of a file may come first

Read = Callable[[int, int], bytes | memoryview]  # bytes start to end of the file, fewer only at its end


class Member(NamedTuple):
    """A member; the next one starts at `end`. `content` is None where that would be too large."""

    start: int
    end: int
    content: bytes | None
    size: int


class Damage(NamedTuple):
    """Bytes that no member could be made of, and why; reading goes on at `end`."""

    start: int
    end: int
    why: str


class Members:
    """A file of members. `begins` is what the content of each begins with, `most_bytes` what it may unpack to."""

    def __init__(self, read: Read, size: int, begins: Sequence[bytes], most_bytes: int) -> None:
        self._window = _Window(read, size)
        self._size = size
        self._begins = tuple(begins)
        self._most = most_bytes

    def part(self, start: int, end: int) -> Iterator[Member | Damage]:
        """Yield the members, and the damage, that start between `start` and `end`."""
        position = self._trusted_before(start)
        while position < min(end, self._size):
            found = self._at(position)
            if found.start >= start and not (isinstance(found, Damage) and self._is_padding(found)):
                yield found
            position = found.end

    def pieces(self, start: int) -> Iterator[bytes]:
        """Yield the content of the member that starts here, in pieces, up to where it is damaged."""
        inflater = _inflater()
        position, pending = start, b""
        while not inflater.eof:
            if not pending:
                pending = bytes(self._window.get(position, position + _WINDOW_BYTES))
                position += len(pending)
            if not pending:
                return
            try:
                piece = inflater.decompress(pending, _PIECE_BYTES)
            except _unpacking_errors():
                return
            pending = inflater.unconsumed_tail
            if piece:
                yield piece

    def _is_padding(self, damage: Damage) -> bool:
        """Whether there are only zeros up to the end of the file, as tapes and some tools leave them."""
        if damage.end < self._size:
            return False
        starts = range(damage.start, self._size, _WINDOW_BYTES)
        return not any(bytes(self._window.get(at, at + _WINDOW_BYTES)).strip(b"\0") for at in starts)

    def _trusted_before(self, start: int) -> int:
        """A place at or before `start` that a reader of the whole file comes to; 0 if none was found."""
        back = LOOK_BACK_BYTES
        while start - back > 0:
            found = self._next_trusted(start - back, start + 1)
            if found is not None:
                return found
            back *= 8
        return 0

    def _at(self, position: int) -> Member | Damage:
        member = self._usual(position)
        if member is not None:
            return member
        if not self._looks_right(position):
            return self._damage(position, f"expected a member that begins with {self._begins[0].decode()!r}; got none")
        try:
            return self._unpacked(position, self._most)
        except _Broken as broken:
            return self._damage(position, str(broken))

    def _usual(self, position: int) -> Member | None:
        """A member that is whole; None where a closer look is needed.

        How it begins is checked after unpacking: unpacking the beginning just for that takes as long as all of a small
        member.
        """
        if not self._has_magic(bytes(self._window.get(position, position + 4))):
            return None
        try:
            member = self._unpacked(position, self._most)
        except _Broken:
            return None
        if member.content is None:
            return member if self._looks_right(position) else None
        return member if member.content.startswith(self._begins) else None

    def _damage(self, position: int, why: str) -> Damage:
        following = self._next_trusted(position + 1, self._size)
        return Damage(position, self._size if following is None else following, why)

    def _next_trusted(self, start: int, end: int) -> int | None:
        """The first trusted start in `start` to `end`."""
        position = start
        while (found := self._window.find(MAGIC, position, end)) is not None:
            if self._looks_right(found) and self._is_trusted(found):
                return found
            position = found + 1
        return None

    def _looks_right(self, position: int) -> bool:
        """Whether a member starts here whose content begins as it should."""
        head = bytes(self._window.get(position, position + _PEEK_BYTES))
        if not self._has_magic(head):
            return False
        try:
            longest = max(map(len, self._begins))
            return bool(_inflater().decompress(head, longest).startswith(self._begins))
        except _unpacking_errors():
            return False

    @staticmethod
    def _has_magic(head: bytes) -> bool:
        return head.startswith(MAGIC) and not any(flags & _RESERVED_FLAGS for flags in head[3:4])

    def _is_trusted(self, position: int) -> bool:
        """Whether whole members follow one another from here, for long enough."""
        first = position
        while position < self._size:
            if position - first >= TRUST_BYTES:
                return True
            if not self._looks_right(position):
                return False
            try:
                position = self._unpacked(position, 0).end
            except _Broken:
                return False
        return True

    def _unpacked(self, start: int, most: int) -> Member:
        """The member that starts here; raises _Broken if it is damaged or cut off."""
        inflater = _inflater()
        pieces: list[bytes] = []
        position, size, feed = start, 0, _FEED_BYTES
        pending: bytes | memoryview = b""
        try:
            while not inflater.eof:
                if not pending:
                    pending = self._window.get(position, position + feed)
                    if not pending:
                        raise _Broken(f"expected the end of a member; the file ends at byte {self._size:,}")
                    position += len(pending)
                    feed = _WINDOW_BYTES
                piece = inflater.decompress(pending, _PIECE_BYTES)
                pending = inflater.unconsumed_tail
                size += len(piece)
                if size <= most:
                    pieces.append(piece)
                elif size > GIVE_UP_TIMES * max(most, self._most):
                    raise _Broken(f"expected a member of at most {self._most:,} bytes; got more than {size:,}")
        except _unpacking_errors() as error:
            raise _Broken(f"expected gzip; got {error}") from None
        end = position - len(inflater.unused_data)
        if size > most:
            return Member(start, end, None, size)
        return Member(start, end, pieces[0] if len(pieces) == 1 else b"".join(pieces), size)


@cache
def _library() -> Any:
    """ISA-L where it is installed, as it takes half of zlib's time, else zlib: both agree on what is whole."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def _inflater() -> Any:
    return _library().decompressobj(zlib.MAX_WBITS | 16)


def _unpacking_errors() -> tuple[type[Exception], ...]:
    return zlib.error, _library().error


class _Broken(Exception):
    """A member that cannot be unpacked."""


class _Window:
    """The part of the file that is looked at; mostly it moves forward."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self._size = size
        self._start = 0
        self._held = memoryview(b"")

    def get(self, start: int, end: int) -> memoryview:
        """Bytes start to end, fewer at the end of the file; callers never ask for more than a window at once."""
        end = min(end, self._size)
        if start >= end:
            return memoryview(b"")
        if not (self._start <= start and end <= self._start + len(self._held)):
            self._held = memoryview(self._read(start, min(self._size, max(end, start + _WINDOW_BYTES))))
            self._start = start
        return self._held[start - self._start : end - self._start]

    def find(self, wanted: bytes, start: int, end: int) -> int | None:
        """The first place in start to end where these bytes begin."""
        while start < min(end, self._size):
            stop = min(start + _WINDOW_BYTES, end + len(wanted) - 1, self._size)
            found = bytes(self.get(start, stop)).find(wanted)
            if found >= 0:
                return start + found if start + found < end else None
            if stop >= min(end + len(wanted) - 1, self._size):
                return None
            start = stop - len(wanted) + 1
        return None
