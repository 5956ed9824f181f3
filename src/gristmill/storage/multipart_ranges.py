"""The answer to a request for several ranges of a file: `multipart/byteranges`, taken apart (RFC 9110, 14.6).

    --BOUNDARY CRLF  Content-Range: bytes 0-99/4000 CRLF  CRLF  100 bytes CRLF  --BOUNDARY CRLF … CRLF --BOUNDARY--

Where a part ends is known from its range: what looks like a boundary within the bytes is not one.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

MAX_HEAD_BYTES = 1 << 10  # of one part, with the boundary before it: most have a tenth of that
_KIND = re.compile(r"\s*multipart/byteranges\s*;(?:.*;)?\s*boundary\s*=\s*(?:\"([^\"]+)\"|([^\s;]+))", re.IGNORECASE)
_PART = re.compile(rb"^content-range\s*:\s*bytes\s+(\d+)-(\d+)/(\d+|\*)", re.IGNORECASE | re.MULTILINE)


class Part(NamedTuple):
    """Bytes of a file from `start` on. `is_last` where the file ends with them."""

    start: int
    content: memoryview
    is_last: bool

    @property
    def end(self) -> int:
        return self.start + len(self.content)


def boundary_of(headers: Mapping[str, str]) -> bytes | None:
    """Return what stands between the parts of an answer; None if it does not have parts."""
    found = _KIND.match(headers.get("content-type", ""))
    return (found[1] or found[2]).encode("latin-1") if found else None


def parts_of(body: bytes, boundary: bytes) -> list[Part]:
    """Return the parts of an answer, up to where it was cut off or is something else."""
    mark = b"--" + boundary
    view, parts = memoryview(body), []
    position = body.find(mark, 0, MAX_HEAD_BYTES)
    while position >= 0:
        stop = body.find(b"\r\n\r\n", position, position + MAX_HEAD_BYTES)
        told = _PART.search(body[position:stop]) if stop >= 0 else None
        if told is None:  # as for the mark after the last part
            break
        first, last = int(told[1]), int(told[2])
        start, end = stop + 4, stop + 4 + last + 1 - first
        if not start < end <= len(body):
            break
        parts.append(Part(first, view[start:end], told[3] == b"%d" % (last + 1)))
        position = end + 2 if body.startswith(b"\r\n" + mark, end) else -1
    return parts
