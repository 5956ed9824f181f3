"""WARC records: bytes to headers and payload. No file is read here, and nothing is decided about documents.

A record is `WARC/1.0`, headers, an empty line, a block of `Content-Length` bytes and two line ends. The block of a
response is an HTTP answer. Common Crawl stores its body decoded; others store it as it was sent, and say so in
`Transfer-Encoding` and `Content-Encoding`. Where a header says so and the bytes do not, the bytes count.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

WARC_BEGINS = (b"WARC/1.", b"WARC/0.")
MAX_HEAD_BYTES = 1 << 20
_LINE_ENDS = b"\r\n"
_CONTINUED = re.compile(rb"\r?\n[ \t]+")
_RESYNC = re.compile(rb"(?:\r?\n){2}(?=WARC/[01]\.)")
_STATUS = re.compile(rb"\S+[ \t]+(\d{3})")
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\r?\n")

Headers = dict[str, str]  # by names in lower case; of a repeated name the first counts


class BadRecord(ValueError):
    """Bytes that are not a record."""


class TooLarge(ValueError):
    """A record, or its payload, has more bytes than it may have."""


class Record(NamedTuple):
    """Headers and block of a record. `offset` is where it begins, in what it was found in.

    The block is the bytes `start` to `stop` of `content`: a copy is made only when it is asked for.
    """

    headers: Headers
    content: bytes
    start: int
    stop: int
    offset: int

    @property
    def block(self) -> bytes:
        return self.content[self.start : self.stop]

    @property
    def kind(self) -> str:
        return self.headers.get("warc-type", "").lower()

    @property
    def identifier(self) -> str:
        """The id, without `<urn:uuid:` and `>`."""
        given = self.headers.get("warc-record-id", "")
        return given.strip("<>").removeprefix("urn:").removeprefix("uuid:")

    @property
    def url(self) -> str | None:
        given = self.headers.get("warc-target-uri")
        return None if given is None else given.strip("<>")


class Problem(NamedTuple):
    """A stretch of bytes in which no record could be read, and why."""

    offset: int
    size: int
    why: str
    is_too_large: bool = False


class Payload(NamedTuple):
    """What a response carries. `status` is None where it is not an HTTP answer."""

    body: bytes
    status: int | None
    headers: Headers


def records_in(content: bytes, offset: int = 0) -> Iterator[Record | Problem]:
    """Yield the records of a member of an archive, mostly one; `offset` is where that begins in the file."""
    position = 0
    while (position := _behind_line_ends(content, position)) < len(content):
        try:
            record, position = _record_at(content, position, offset)
        except BadRecord as bad:
            yield Problem(offset, len(content) - position, str(bad))
            return
        yield record


def records_of_stream(pieces: Iterable[bytes], most_bytes: int) -> Iterator[Record | Problem]:
    """Yield the records of an archive that is one stream: not compressed, or compressed as a whole.

    After bytes that are not a record, it goes on where the next one seems to begin.
    """
    stream = _Stream(pieces)
    while True:
        stream.skip_line_ends()
        if stream.is_at_end:
            return
        offset = stream.offset
        try:
            headers, length = _parsed_head(stream.head())
        except BadRecord as bad:
            yield Problem(offset, stream.resync(), str(bad))
            continue
        if length > most_bytes:
            why = f"expected a record of at most {most_bytes:,} bytes; got {length:,}"
            yield Problem(offset, stream.skip(length), why, is_too_large=True)
            continue
        block = stream.take(length)
        if len(block) < length:
            why = f"expected a block of {length:,} bytes; the file ends after {len(block):,}"
            yield Problem(offset, len(block), why)
            return
        yield Record(headers, block, 0, length, offset)


def payload_of(record: Record, most_bytes: int) -> Payload:
    """Return what a record carries: of an HTTP answer its body, as a browser would get it."""
    content, start, stop = record.content, record.start, record.stop
    is_http = record.headers.get("content-type", "").startswith("application/http")
    if not is_http and not content.startswith(b"HTTP/", start, stop):
        return Payload(record.block, None, {})
    end, behind = _end_of_head(content, start, stop)
    lines, body = (record.block, b"") if end < 0 else (content[start:end], content[behind:stop])
    first, _, rest = lines.partition(b"\n")
    status = _STATUS.match(first)
    headers = _headers(rest)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _dechunked(body)
    for encoding in reversed(headers.get("content-encoding", "").lower().split(",")):
        body = _decoded(body, encoding.strip(), most_bytes)
    return Payload(body, int(status[1]) if status else None, headers)


# Heads


def _record_at(content: bytes, position: int, offset: int) -> tuple[Record, int]:
    end, behind = _end_of_head(content, position, len(content))
    if end < 0:
        raise BadRecord("expected headers and an empty line; they do not end")
    headers, length = _parsed_head(content[position:end])
    if behind + length > len(content):
        raise BadRecord(f"expected a block of {length:,} bytes; got {len(content) - behind:,}")
    return Record(headers, content, behind, behind + length, offset), behind + length


def _parsed_head(head: bytes) -> tuple[Headers, int]:
    first, _, rest = head.partition(b"\n")
    if not first.startswith(WARC_BEGINS):
        raise BadRecord(f"expected a record that begins with WARC/1.; got {first[:40]!r}")
    headers = _headers(rest)
    given = headers.get("content-length", "")
    if not given.isdecimal():
        raise BadRecord(f"expected a Content-Length in digits; got {given[:40]!r}")
    return headers, int(given)


def _headers(lines: bytes) -> Headers:
    headers: Headers = {}
    for line in _CONTINUED.sub(b" ", lines).split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            text = value.strip()
            headers.setdefault(name.strip().lower().decode("latin-1"), text.decode("utf-8", "replace"))
    return headers


def _end_of_head(content: bytes, start: int, stop: int) -> tuple[int, int]:
    """Where the headers end, and where what follows them begins; -1 if they do not end."""
    usual = content.find(b"\r\n\r\n", start, stop)
    odd = content.find(b"\n\n", start, usual if usual >= 0 else stop)
    if odd >= 0:
        return odd, odd + 2
    return usual, usual + 4


def _behind_line_ends(content: bytes, position: int) -> int:
    while position < len(content) and content[position] in _LINE_ENDS:
        position += 1
    return position


# Bodies


def _dechunked(body: bytes) -> bytes:
    """A body without the lengths of its chunks; from where they are wrong, it is left as it is."""
    found: list[bytes] = []
    position = 0
    while (size := _CHUNK.match(body, position)) is not None:
        length = int(size[1], 16)
        if length == 0:
            return b"".join(found)
        found.append(body[size.end() : size.end() + length])
        position = _behind_one_line_end(body, size.end() + length)
        if position >= len(body):
            return b"".join(found)
    return b"".join([*found, body[position:]])


def _behind_one_line_end(body: bytes, position: int) -> int:
    if body[position : position + 2] == b"\r\n":
        return position + 2
    return position + (body[position : position + 1] == b"\n")


def _decoded(body: bytes, encoding: str, most_bytes: int) -> bytes:
    if encoding in ("gzip", "x-gzip"):
        return _inflated(body, (zlib.MAX_WBITS | 32,), most_bytes)
    if encoding == "deflate":  # with a header by the standard, without one by some servers
        return _inflated(body, (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS), most_bytes)
    if encoding in ("br", "zstd"):
        return _unpacked_by_arrow(body, {"br": "brotli", "zstd": "zstd"}[encoding], most_bytes)
    return body


def _inflated(body: bytes, forms: tuple[int, ...], most_bytes: int) -> bytes:
    for form in forms:
        inflater = zlib.decompressobj(form)
        try:
            content = inflater.decompress(body, most_bytes + 1)
        except zlib.error:
            continue  # it is not what the header says
        if len(content) > most_bytes:
            raise TooLarge(f"expected a payload of at most {most_bytes:,} bytes; got more, unpacked")
        return content  # of a payload that was cut, what there is
    return body


def _unpacked_by_arrow(body: bytes, codec: str, most_bytes: int) -> bytes:
    import pyarrow as pa

    found: list[bytes] = []
    size = 0
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(body), codec)
        while piece := stream.read(1 << 20):
            found.append(piece)
            size += len(piece)
            if size > most_bytes:
                raise TooLarge(f"expected a payload of at most {most_bytes:,} bytes; got more, unpacked")
    except OSError:
        return b"".join(found) or body
    return b"".join(found)


class _Stream:
    """Pieces of bytes, looked at as one."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""
        self.offset = 0  # of what is held

    @property
    def is_at_end(self) -> bool:
        return not self._held and not self._more()

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._held += piece
        return bool(piece)

    def _drop(self, count: int) -> None:
        self._held = self._held[count:]
        self.offset += count

    def skip_line_ends(self) -> None:
        while True:
            behind = _behind_line_ends(self._held, 0)
            self._drop(behind)
            if self._held or not self._more():
                return

    def head(self) -> bytes:
        """Take the headers, up to what follows them."""
        while True:
            end, behind = _end_of_head(self._held, 0, len(self._held))
            if end >= 0:
                head = self._held[:end]
                if not head.startswith(WARC_BEGINS):
                    raise BadRecord(f"expected a record that begins with WARC/1.; got {head[:40]!r}")
                self._drop(behind)
                return head
            if len(self._held) > MAX_HEAD_BYTES or not self._more():
                raise BadRecord(f"expected headers of at most {MAX_HEAD_BYTES:,} bytes; they do not end")

    def take(self, count: int) -> bytes:
        """Take `count` bytes, fewer at the end."""
        parts = [self._held]
        size = len(self._held)
        self._held = b""
        while size < count and (piece := next(self._pieces, b"")):
            parts.append(piece)
            size += len(piece)
        joined = b"".join(parts)
        self._held = joined[count:]
        self.offset += min(count, size)
        return joined[:count]

    def skip(self, count: int) -> int:
        """Leave out `count` bytes; return how many there were."""
        left = count
        while left and not self.is_at_end:
            some = min(left, len(self._held))
            self._drop(some)
            left -= some
        return count - left

    def resync(self) -> int:
        """Leave out everything up to where a record seems to begin; return how many bytes that was."""
        began = self.offset
        while True:
            found = _RESYNC.search(self._held)
            if found is not None:
                self._drop(found.end())
                return self.offset - began
            self._drop(max(0, len(self._held) - 16))
            if not self._more():
                self._drop(len(self._held))
                return self.offset - began
