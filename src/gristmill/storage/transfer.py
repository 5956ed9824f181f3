"""Whole files over HTTP and from S3: continued where they were cut, compared with what was promised, then named.

A file is fetched into `.NAME.part`. If that already holds a beginning, only the rest is asked for, on condition that
the server still has the same file (`Range` and `If-Range`). Its length, and its checksum where one is published, are
compared before it gets its name (`download_notes.py`). Every failure is tried again with pauses, on another mirror if
there is one; after the last try the file is lost, which the caller reports. Nothing here knows what the bytes mean.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gristmill.errors import ConfigError, DownloadFailed, nearest
from gristmill.secrets import without_url_secrets
from gristmill.storage import http
from gristmill.storage.atomic_write import explained
from gristmill.storage.disk_budget import DiskBudget
from gristmill.storage.download_notes import Note, Told
from gristmill.storage.file_system import FileStatus
from gristmill.storage.rate import REFUSED, HostRate, seconds_asked
from gristmill.storage.s3_requests import signed
from gristmill.storage.sizes import parse_size

__all__ = ["RemoteFile", "TransferOptions", "fetch_file", "fetch_text", "locate", "remote_size"]

FIRST_PAUSE_S = 1.0  # before a file is tried again; the next ones double
MAX_PAUSE_S = 60.0
PROGRESS_BYTES = 1 << 20  # a try that brought this many was not in vain
MAX_TEXT_BYTES = 1 << 30  # of a list, unpacked: a crawl's has 30 MB
FINAL = frozenset({400, 401, 402, 404, 405, 406, 410, 412, 414, 451, 501})  # asking again gives the same answer
_CHECKSUMS = {"md5", "sha1", "sha256", "sha512"}
_PIECE_BYTES = 1 << 20
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
_MD5 = re.compile(r'"[0-9a-f]{32}"')


@dataclass(frozen=True)
class RemoteFile:
    """A file on a server, as a list names it.

    `size` is None where the list does not give it. `version` is what else must agree: a checksum ("sha1:…", "md5:…" and
    hex digits), or an entity tag (`etag:"…"`); "" where nothing is known.
    """

    url: str
    size: int | None = None
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """How files are fetched, and where they may stay.

    `max_connections`   downloads, or requests for ranges, at a time on one machine
    `max_rate`          requests a second to one host, from one machine; found out if not given
    `contact`           an address or a page, given to servers, so that they can write before they block
    `mirrors`           pairs of prefixes: where a URL begins with the first it may be fetched with the second instead
    `max_disk`          bytes, or "100GB", that the download directory may hold; what does not fit waits
    `keep_files`        False: a file is removed once everything made of it is committed
    `max_retries`       how often a file is tried again before it counts as lost
    `timeout`           seconds without a byte
    """

    max_connections: int = 16
    max_rate: float | None = None
    contact: str | None = None
    mirrors: tuple[tuple[str, str], ...] = ()
    max_disk: int | str | None = None
    keep_files: bool = True
    max_retries: int = 8
    timeout: float = 30

    def __post_init__(self) -> None:
        if self.max_connections < 1:
            raise ConfigError(f"TransferOptions: expected max_connections ≥ 1; got {self.max_connections!r}")
        if self.max_retries < 0:
            raise ConfigError(f"TransferOptions: expected max_retries ≥ 0; got {self.max_retries!r}")
        for name in ("max_rate", "timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"TransferOptions: expected {name} > 0; got {value!r}")
        if self.max_disk is not None:
            parse_size(self.max_disk, who="TransferOptions: max_disk")
        for given in self.mirrors:
            pair: object = given  # by a user, who may have written one prefix, or three
            if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
                raise ConfigError(f"TransferOptions: expected mirrors to be pairs of prefixes; got {pair!r}")


def transfer_options(given: "TransferOptions | Mapping[str, Any]") -> TransferOptions:
    """Return the options that were given, made from a mapping if a recipe has one."""
    if isinstance(given, TransferOptions):
        return given
    known = [each.name for each in fields(TransferOptions)]
    for name in given:
        if name not in known:
            raise ConfigError(f"transfer: expected options of {known}; got {name!r}{nearest(name, known)}")
    pairs = tuple(tuple(pair) for pair in given.get("mirrors", ()))
    return TransferOptions(**{**given, "mirrors": pairs})


def client_of(options: TransferOptions, *, requester_pays: bool = False) -> http.Client:
    """How servers see us."""
    return http.Client(options.contact, options.timeout, requester_pays)


def budget_of(options: TransferOptions, directory: Path) -> DiskBudget | None:
    """The bound on a directory, if there is one."""
    if options.max_disk is None:
        return None
    return DiskBudget(directory, parse_size(options.max_disk), frees=not options.keep_files)


def places_of(options: TransferOptions, url: str) -> list[str]:
    """Where a URL may be fetched: as it is, then from each mirror."""
    return [url, *(to + url.removeprefix(prefix) for prefix, to in options.mirrors if url.startswith(prefix))]


class _Failed(Exception):
    """A try that came to nothing. `is_final`: from this place nothing will come."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


def fetch_file(
    file: RemoteFile,
    note: Note,
    options: TransferOptions,
    *,
    budget: DiskBudget | None = None,
    requester_pays: bool = False,
    waiting: Callable[[str], object] = lambda _: None,
) -> str:
    """Fetch a file, unless it is there, and return its path; raise DownloadFailed when the last try has failed."""
    with note.held():
        if note.is_complete() or _is_the_file(file, note):
            return note.path
        transfer = _Transfer(file, note, options, client_of(options, requester_pays=requester_pays))
        if budget is not None:
            budget.claim(note, transfer.size_ahead(), waiting)
        transfer.run()
    return note.path


def _is_the_file(file: RemoteFile, note: Note) -> bool:
    """Whether the file that is there, of unknown origin, has the published size and checksum."""
    kind = file.version.partition(":")[0]
    if kind not in _CHECKSUMS or note.size() is None or file.size not in (None, note.size()):
        return False
    if checksum(note.path, kind) != file.version:
        return False
    note.tell(Told(note.url, note.size(), "", file.version, is_whole=True))
    return True


class _Transfer:
    """One file on its way. Its lock is held."""

    def __init__(self, file: RemoteFile, note: Note, options: TransferOptions, client: http.Client) -> None:
        self._file = file
        self._note = note
        self._options = options
        self._client = client
        self._places = places_of(options, file.url)
        self._told = self._beginning()

    def _beginning(self) -> Told:
        """What is known of the part that is there; it is thrown away if it cannot be continued safely."""
        told = self._note.told()
        same = told is not None and told.url == self._note.url and told.version == self._file.version
        if told is not None and same and (_is_strong(told.etag) or self._has_checksum):
            return told
        Path(self._note.part_path).unlink(missing_ok=True)
        return Told(self._note.url, self._file.size, "", self._file.version)

    @property
    def _has_checksum(self) -> bool:
        return self._file.version.partition(":")[0] in _CHECKSUMS

    def size_ahead(self) -> int:
        """How large the file will be: as listed, or as its server says."""
        size = self._file.size or self._told.size
        if size is not None:
            return size
        for place in self._places:
            size = remote_size(place, self._options, self._client)
            if size is not None:
                return size
        shown = without_url_secrets(self._file.url)
        raise _lost(f"{shown}: expected a server that says how large a file is, since max_disk is set; got none")

    def run(self) -> None:
        """Try until it is there, or until there is no try left."""
        places = list(self._places)
        failures = in_vain = 0  # all, and those since the last that made progress
        while True:
            place = places[failures % len(places)]
            before = self._note.part_size()
            try:
                self._try(place)
                self._finish()
                return
            except _Failed as failed:
                failures += 1
                in_vain = 1 if self._note.part_size() >= before + PROGRESS_BYTES else in_vain + 1
                if failed.is_final:
                    places.remove(place)
                if not places or in_vain > self._options.max_retries:
                    if not self._note.part_size():
                        Path(self._note.part_path).unlink(missing_ok=True)  # nothing has come that could be continued
                    shown = without_url_secrets(self._file.url)
                    raise _lost(f"{shown}: expected to be fetched; got {failed} at try {failures}") from None
            time.sleep(_pause_s(in_vain))

    def _try(self, place: str) -> None:
        rate = HostRate(signed(place).url, max_rate=self._options.max_rate)
        rate.wait()
        can_go_on = _is_strong(self._told.etag) or self._has_checksum
        start = self._note.part_size() if can_go_on else 0
        headers = [f"Range: bytes={start}-"] if start else []
        headers += [f"If-Range: {self._told.etag}"] if start and _is_strong(self._told.etag) else []
        with _Part(self._note.part_path) as part:
            arriving = _Arriving(self, part, start)
            answer = http.receive(http.Request(place, tuple(headers)), self._client, part.write, arriving.begins)
        if answer.status in (200, 206):
            rate.take_good()
        elif answer.status in REFUSED or answer.timed_out or not answer.status:
            rate.take_refusal(seconds_asked(answer.headers))
        if arriving.refused:
            raise arriving.refused
        if answer.status == 416:
            self._start_over_unless_whole(answer.headers, start)
            return
        if answer.status not in (200, 206):
            why = answer.error or f"status {answer.status}"
            raise _Failed(why, is_final=answer.status in FINAL)
        if answer.error:
            raise _Failed(answer.error)
        total = arriving.total
        if total is None and not self._has_checksum:
            total = remote_size(place, self._options, self._client)
        got = self._note.part_size()
        if total is not None and got != total:
            if got > total:
                Path(self._note.part_path).unlink()
            raise _Failed(f"{got:,} bytes of {total:,}")

    def begins(self, head: http.Head, start: int) -> tuple[int, int | None]:
        """Compare the beginning of an answer with what was asked for; return where its body goes, and the size."""
        etag = head.headers.get("etag", "")
        if head.status == 206:
            found = _RANGE.match(head.headers.get("content-range", ""))
            first, total = (found[1], found[3]) if found else (None, "*")
            if first is None or int(first) != start:
                raise _Failed(f"a range from byte {first} on where byte {start} was asked for")
            size = int(total) if total != "*" else None
            changed = etag and self._told.etag and etag != self._told.etag
            if changed or (size is not None and self._told.size not in (None, size)):
                self._forget()
                raise _Failed("a different file from the one that was begun")
        else:
            start, size = 0, head.length
        self._check_promised(size, etag)
        # Where an answer states no length, a cut looks like the end: the listed size counts, or what HEAD says.
        size = self._file.size if size is None else size
        self._told = replace_told(self._told, size=size, etag=etag or self._told.etag)
        self._note.tell(self._told)
        return start, size

    def _check_promised(self, size: int | None, etag: str) -> None:
        if self._file.size is not None and size is not None and size != self._file.size:
            self._forget()
            raise _Failed(f"a file of {size:,} bytes where {self._file.size:,} were listed")
        kind, _, wanted = self._file.version.partition(":")
        if kind == "etag" and etag and etag != wanted:
            self._forget()
            raise _Failed(f"entity tag {etag} where {wanted} was listed")

    def _start_over_unless_whole(self, headers: dict[str, str], start: int) -> None:
        """The server has nothing from here on: because that is all there is, or because the file is another one."""
        found = _RANGE.match(headers.get("content-range", ""))
        total = found[3] if found else "*"
        if str(start) != total or self._file.size not in (None, start):
            self._forget()
            raise _Failed(f"status 416: the server has {total} bytes, and {start:,} were here")

    def _finish(self) -> None:
        """Compare the checksum, and give the file its name."""
        for expected in self._checksums():
            kind = expected.partition(":")[0]
            found = checksum(self._note.part_path, kind)
            if found != expected:
                self._forget()
                raise _Failed(f"a file with {found} where {expected} was promised")
        self._note.finish(self._told.etag, self._file.version)

    def _checksums(self) -> list[str]:
        found = [self._file.version] if self._has_checksum else []
        # S3 uses the MD5 of an object as its tag, unless it was uploaded in parts (then there is a dash in it).
        is_s3 = any(place.startswith("s3://") for place in self._places)
        if is_s3 and _MD5.fullmatch(self._told.etag):
            found.append(f"md5:{self._told.etag.strip(chr(34))}")
        return found

    def _forget(self) -> None:
        Path(self._note.part_path).unlink(missing_ok=True)
        self._told = Told(self._note.url, self._file.size, "", self._file.version)


class _Part:
    """The file a body is written to."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._position = 0

    def __enter__(self) -> "_Part":
        with explained(self._path):
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def begin_at(self, position: int) -> None:
        """Write from here on, and drop what follows, which is not of this file."""
        os.ftruncate(self._descriptor, position)
        self._position = position

    def write(self, piece: bytes) -> None:
        view = memoryview(piece)
        with explained(self._path):
            while view:
                written = os.pwrite(self._descriptor, view, self._position)
                self._position += written
                view = view[written:]


class _Arriving:
    """What the beginning of an answer says; libcurl calls `begins` when it is there."""

    def __init__(self, transfer: _Transfer, part: _Part, start: int) -> None:
        self._transfer = transfer
        self._part = part
        self._start = start
        self.total: int | None = None
        self.refused: _Failed | None = None

    def begins(self, head: http.Head) -> bool:
        """Whether the body is wanted."""
        if head.status not in (200, 206):
            return False
        try:
            place, self.total = self._transfer.begins(head, self._start)
        except _Failed as refused:
            self.refused = refused
            return False
        self._part.begin_at(place)
        return True


def replace_told(told: Told, *, size: int | None, etag: str) -> Told:
    """The note of a file, with what its server has said since."""
    return Told(told.url, size, etag, told.version)


def checksum(path: str, kind: str) -> str:
    """Return the checksum of a file as "sha1:…"."""
    digest = hashlib.new(kind, usedforsecurity=False)
    with Path(path).open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return f"{kind}:{digest.hexdigest()}"


def _is_strong(etag: str) -> bool:
    """Whether a tag names bytes, and not only what they mean: `If-Range` takes no other."""
    return bool(etag) and not etag.startswith("W/")


def _pause_s(failures: int) -> float:
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10))


def _lost(message: str) -> DownloadFailed:
    error = DownloadFailed(message)
    error.is_final = True
    return error


# Small things that are asked for while a plan is made: lists, and how large files are.


def remote_size(url: str, options: TransferOptions, client: http.Client | None = None) -> int | None:
    """Return how large a file is, as its server says without sending it; None if it does not say."""
    rate = HostRate(signed(url).url, max_rate=options.max_rate)
    rate.wait()
    answer = http.ask(http.Request(url, method="HEAD"), client or client_of(options))
    if answer.status in REFUSED:
        rate.take_refusal(seconds_asked(answer.headers))
    head = http.Head(answer.status, answer.headers)
    return head.length if answer.status == 200 else None


def locate(file: RemoteFile, options: TransferOptions, *, requester_pays: bool = False) -> FileStatus:
    """Return where a file can be read in ranges: the first place that has it, its size and its tag.

    Raises DownloadFailed if none has it, or none has the one that was listed.
    """
    client = client_of(options, requester_pays=requester_pays)
    places, failures, why = places_of(options, file.url), 0, "nothing"
    while places:
        place = places[failures % len(places)]
        rate = HostRate(signed(place).url, max_rate=options.max_rate)
        rate.wait()
        answer = http.ask(http.Request(place, method="HEAD"), client)
        size = http.Head(answer.status, answer.headers).length
        if answer.status == 200 and size is not None and file.size in (None, size):
            etag = answer.headers.get("etag", "")
            return FileStatus(place, size, f"etag:{etag}" if _is_strong(etag) else "")
        why = answer.error or f"status {answer.status}"
        if answer.status == 200:
            why = "no size" if size is None else f"a file of {size:,} bytes where {file.size:,} were listed"
        if answer.status in REFUSED or answer.timed_out or not answer.status:
            rate.take_refusal(seconds_asked(answer.headers))
        failures += 1
        if answer.status in FINAL or answer.status == 200:
            places.remove(place)
        if failures > options.max_retries:
            break
        if places:
            time.sleep(_pause_s(failures))
    raise _lost(f"{without_url_secrets(file.url)}: expected to be read in ranges; got {why} at try {failures}")


def fetch_text(url: str, options: TransferOptions, *, who: str, requester_pays: bool = False) -> bytes:
    """Return what is at a URL, unpacked if it is gzip; raise ConfigError if it cannot be had, after some tries."""
    error = ""
    for attempt in range(min(3, options.max_retries) + 1):
        if attempt:
            time.sleep(_pause_s(attempt))
        rate = HostRate(signed(url).url, max_rate=options.max_rate)
        rate.wait()
        client = client_of(options, requester_pays=requester_pays)
        answer = http.ask(http.Request(url, most_bytes=MAX_TEXT_BYTES), client)
        if answer.status == 200 and not answer.error:
            return _unpacked(answer.body, url, who)
        error = answer.error or f"status {answer.status}"
        if answer.status in REFUSED:
            rate.take_refusal(seconds_asked(answer.headers))
        if answer.status in FINAL:
            break
    raise ConfigError(f"{who}: expected a list at {without_url_secrets(url)}; got {error}")


def _unpacked(body: bytes, url: str, who: str) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body
    import zlib

    found, rest = [], body
    try:
        size = 0
        while rest:
            inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = inflater.decompress(rest, MAX_TEXT_BYTES - size + 1)
            size += len(piece)
            if size > MAX_TEXT_BYTES:
                raise ConfigError(f"{who}: expected at most {MAX_TEXT_BYTES:,} bytes in {url}; got more")
            if not inflater.eof:
                raise ConfigError(f"{who}: expected a whole file at {url}; got one that is cut off")
            found.append(piece)
            rest = inflater.unused_data
    except zlib.error as error:
        raise ConfigError(f"{who}: expected gzip at {url}; got {error}") from error
    return b"".join(found)
