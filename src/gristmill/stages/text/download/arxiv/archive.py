"""One paper as arXiv stores it: gzip of one TeX file, or of a tar of many. Nothing is unpacked to a disk.

Names in an archive are labels: what is called `../../etc/passwd` is a text with that label, and links and devices are
passed over. Sizes are looked at while bytes are inflated, and pictures are passed over without being held, so that a
megabyte that inflates to a gigabyte costs the time to find that out and no memory.
"""

import posixpath
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from gristmill.errors import DamagedFile
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.arxiv.tex_project import READMES, STYLES, TEX
from gristmill.storage import tar

_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 16
_WITH_PICTURES = 16  # times `max_project_bytes`: all that a paper may unpack to
_NOT_TEX = (b"%PDF", b"%!PS", b"\x89PNG", b"<!DOCTYPE", b"<html", b"<HTML", b"PK\x03\x04", b"\x04%!")
_LOOKED_AT = 4096
_CONTROL = bytes(sorted({*range(32), 127} - set(b"\t\n\v\f\r\x1a\x1b")))  # escape is part of Japanese charsets
_ID = re.compile(r"^([a-zA-Z-]*)([\d.]+)$")


class TooLarge(Exception):
    """A paper that unpacks to more than it may."""


@dataclass
class Project:
    """The files of a paper that matter: TeX in the order of the archive, and packages and notes beside it."""

    texts: dict[str, bytes] = field(default_factory=dict)
    styles: dict[str, bytes] = field(default_factory=dict)


def read_paper(content: bytes, limits: IngestLimits) -> Project | None:
    """Return the files of a paper, or None if there is no TeX in it.

    Raises TooLarge, and DamagedFile where the bytes are not what they should be.
    """
    if not content.startswith(_GZIP):
        return None
    forward = tar.Forward(_inflated(content, limits.max_project_bytes * _WITH_PICTURES))
    head = forward.read(0, tar.BLOCK)
    if is_tar(head):
        return _read_files(forward, limits)
    if head.lstrip().startswith(_NOT_TEX) or not head:
        return None
    text = forward.read(0, limits.max_project_bytes + 1)
    if len(text) > limits.max_project_bytes:
        raise TooLarge(f"expected at most {limits.max_project_bytes:,} bytes of TeX; got more")
    return Project() if is_binary(text) else Project({"paper.tex": text})


def is_binary(content: bytes) -> bool:
    """Whether the beginning of a file cannot be text in any charset: over a tenth of it is control characters.

    >>> is_binary(b"\\\\section{A}"), is_binary(b"\\x1f\\x8b\\x08\\x00\\x00")
    (False, True)
    """
    start = content[:_LOOKED_AT]
    return 10 * (len(start) - len(start.translate(None, _CONTROL))) > len(start)


def _inflated(content: bytes, most: int) -> Iterator[bytes]:
    """The content of all members of a gzip file, in pieces."""
    total, rest = 0, content
    while rest:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while not inflater.eof:
            try:
                piece = inflater.decompress(rest, _PIECE_BYTES)
            except zlib.error as error:
                raise DamagedFile(f"expected gzip; got {error}") from error
            rest = inflater.unconsumed_tail
            total += len(piece)
            if total > most:
                raise TooLarge(f"expected at most {most:,} bytes when unpacked; got more")
            if piece:
                yield piece
            elif not rest and not inflater.eof:
                raise DamagedFile("expected whole gzip; it ends too early")
        rest = inflater.unused_data
        if not rest.startswith(_GZIP):
            return  # padding, or nothing


def is_tar(head: bytes) -> bool:
    """Whether this is the first block of a tar archive: its checksum is right."""
    if len(head) < tar.BLOCK:
        return False
    try:
        stated = int(head[148:156].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    return stated == sum(head) - sum(head[148:156]) + 8 * ord(" ")


def _read_files(forward: tar.Forward, limits: IngestLimits) -> Project:
    project, size, count = Project(), 0, 0
    try:
        for member in tar.members(forward.read, 0, sys.maxsize, who="paper"):
            count += 1
            if count > limits.max_project_files:
                raise TooLarge(f"expected at most {limits.max_project_files:,} files; got more")
            kept = _where_kept(project, member.name) if member.is_file else None
            if kept is None:
                continue
            size += member.size
            if size > limits.max_project_bytes:
                raise TooLarge(f"expected at most {limits.max_project_bytes:,} bytes of TeX; got more")
            found = tar.content(forward.read, member, "paper")
            if not is_binary(found):
                kept[posixpath.normpath(member.name)] = found
    except DamagedFile as error:
        if not error.is_complete:  # else only the zeros at its end are missing
            raise
    return project


def _where_kept(project: Project, name: str) -> dict[str, bytes] | None:
    if name.endswith(TEX):
        return project.texts
    is_style = name.endswith(STYLES) or posixpath.basename(name) in READMES
    return project.styles if is_style else None


def paper_id(name: str) -> str:
    """Return arXiv's identifier for the paper in a member of this name.

    >>> paper_id("9901/hep-th9901001.gz"), paper_id("0704/0704.0001.gz")
    ('hep-th/9901001', '0704.0001')
    """
    stem = posixpath.splitext(posixpath.basename(name))[0]
    found = _ID.match(stem)
    return stem if found is None or not found[1] else f"{found[1]}/{found[2]}"
