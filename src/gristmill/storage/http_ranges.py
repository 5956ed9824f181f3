"""Many small pieces of large files, by range requests: neighbours together, some in flight at once, answers in order.

Pieces of one file that lie near each other are asked for together, because a request costs as much time as megabytes
do. Where there are more ranges than requests may be under way, a request asks for several ranges of a file, however far
apart, provided the server understands that, which one request finds out. If a server sends a whole file where a range
was asked for, the answer is dropped: it may be a gigabyte. No server is asked more often than its rate allows
(`rate.py`).
"""

import heapq
import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gristmill.errors import DownloadFailed
from gristmill.secrets import without_url_secrets
from gristmill.storage import http
from gristmill.storage.multipart_ranges import MAX_HEAD_BYTES, Part, boundary_of, parts_of
from gristmill.storage.rate import REFUSED, SOON_S, HostRate, Place, seconds_asked
from gristmill.storage.s3_requests import is_signed, signed
from gristmill.storage.transfer import FINAL, TransferOptions, client_of, remote_size

MAX_GAP_BYTES = 1 << 16  # that are fetched for nothing rather than asking twice
MAX_SPAN_BYTES = 8 << 20  # of one request, unless one piece is larger
MAX_RANGES = 5  # of one request: more are taken for an attack by some servers (rule 920200 of OWASP's rule set)
READ_AHEAD_BYTES = 8 << 20
FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
_RANGE = re.compile(r"bytes (\d+)-(\d+)/")
_IDLE_S = 1.0
_AT_ONCE_S = 0.001
_CLAIMED = 8  # places at a time
# Whether servers answer a request for several ranges with all of them, as far as this process knows. S3 does not;
# CloudFront, which serves Common Crawl, does.
_ANSWERS_SEVERAL: dict[str, bool] = {}
_NOT_SEVERAL = (200, 206, 400, 416, 501)  # answers of those that do not


class Piece(NamedTuple):
    """Bytes of a file, from `start` up to but not including `end`."""

    url: str
    start: int
    end: int


class NotFetched(NamedTuple):
    """Stands in place of bytes that could not be had, and says why."""

    reason: str


class Span(NamedTuple):
    """A range that is asked for, and the numbers of the pieces in it."""

    url: str
    start: int
    end: int
    pieces: tuple[int, ...]


def spans_of(pieces: Sequence[Piece], max_gap: int = MAX_GAP_BYTES, max_span: int = MAX_SPAN_BYTES) -> list[Span]:
    """Join pieces that lie near each other, whatever their order. Each piece is in one span, whole."""
    spans: list[Span] = []
    for number in sorted(range(len(pieces)), key=pieces.__getitem__):
        url, start, end = pieces[number]
        last = spans[-1] if spans else None
        if last is not None and last.url == url and start <= last.end + max_gap:
            joined = max(end, last.end)
            if joined - last.start <= max_span or end <= last.end:
                spans[-1] = Span(url, last.start, joined, (*last.pieces, number))
                continue
        spans.append(Span(url, start, end, (number,)))
    return spans


def requests_of(spans: Sequence[Span], at_once: int) -> list[tuple[Span, ...]]:
    """Put spans that follow each other in a file into one request, where there are more than can be asked for at once.

    Servers want ranges in order and without overlap (CloudFront sends the whole file otherwise). S3 answers one range.
    """
    most = min(MAX_RANGES, -(-len(spans) // at_once))
    requests: list[list[Span]] = []
    for span in spans:
        last = requests[-1] if requests else []
        fits = 0 < len(last) < most and last[-1].url == span.url and last[-1].end < span.start
        size = span.end - span.start + sum(each.end - each.start for each in last)
        if fits and size <= MAX_SPAN_BYTES and not is_signed(span.url):
            last.append(span)
        else:
            requests.append([span])
    return [tuple(each) for each in requests]


def fetch_pieces(
    pieces: Sequence[Piece], options: TransferOptions, *, requester_pays: bool = False, if_match: str = ""
) -> list[bytes | NotFetched]:
    """Return the bytes of each piece in its place, or why they could not be had.

    `if_match` is the entity tag a file must have: nothing is taken from a file with another.
    """
    found: list[bytes | NotFetched] = [NotFetched("not asked for")] * len(pieces)
    wanted = [number for number, piece in enumerate(pieces) if piece.start < piece.end and piece.start >= 0]
    for number, piece in enumerate(pieces):
        if not piece.start < piece.end or piece.start < 0:
            found[number] = NotFetched(f"expected a range of bytes; got {piece.start} to {piece.end}")
    chosen = [pieces[number] for number in wanted]
    fetching = _Fetching(spans_of(chosen), options, client_of(options, requester_pays=requester_pays), if_match)
    try:
        for span, answer in fetching.run():
            for own in span.pieces:
                found[wanted[own]] = _cut_out(chosen[own], span, answer)
    finally:
        fetching.close()
    return found


class RangeFile:
    """A file on a server, read in ranges and never stored: what a reader of parts needs of a file.

    A range that cannot be had after all tries is a DownloadFailed.
    """

    def __init__(self, url: str, size: int, version: str, options: TransferOptions) -> None:
        self.path = url
        self.size = size or remote_size(url, options) or 0
        if not self.size:
            raise DownloadFailed(f"{without_url_secrets(url)}: expected a server that says how large a file is")
        self._version = version
        self._options = options
        self._start = 0
        self._held = b""

    def __enter__(self) -> "RangeFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._held = b""

    def read_range(self, start: int, end: int) -> bytes:
        """Return bytes start to end, fewer only where the file ends first; more than asked for is fetched, and kept."""
        end = min(end, self.size)
        if not (self._start <= start and end <= self._start + len(self._held)):
            stop = min(self.size, max(end, start + READ_AHEAD_BYTES))
            tag = self._version.removeprefix("etag:")
            [found] = fetch_pieces([Piece(self.path, start, stop)], self._options, if_match=tag)
            if isinstance(found, NotFetched):
                raise DownloadFailed(found.reason)
            self._start, self._held = start, found
        return self._held[start - self._start : end - self._start]

    def pieces(self) -> Iterator[bytes]:
        """Yield the content from the beginning, still packed if the file is."""
        for start in range(0, self.size, READ_AHEAD_BYTES):
            yield self.read_range(start, start + READ_AHEAD_BYTES)


def _cut_out(piece: Piece, span: Span, answer: bytes | NotFetched) -> bytes | NotFetched:
    if isinstance(answer, NotFetched):
        return answer
    content = answer[piece.start - span.start : piece.end - span.start]
    if len(content) < piece.end - piece.start:
        return NotFetched(f"the file ends at byte {span.start + len(answer):,}")
    return content


class _Ask(NamedTuple):
    """What one request asks for. One for several spans is tried once; spans it does not bring are asked for singly."""

    spans: tuple[Span, ...]
    attempt: int

    @property
    def url(self) -> str:
        return self.spans[0].url

    @property
    def is_for_several(self) -> bool:
        return len(self.spans) > 1


class _Waiting(NamedTuple):
    """A request that may not start yet."""

    start: float
    number: int  # of the request: so that no two compare equal
    ask: _Ask
    place: Place | None  # None: it has to claim one first
    has_waited: bool  # since it claimed its place


Ended = list[tuple[Span, "bytes | NotFetched"]]


class _Fetching:
    """The requests of one call, from the first to the last answer."""

    def __init__(self, spans: Sequence[Span], options: TransferOptions, client: http.Client, if_match: str) -> None:
        self._conditions = (f"If-Match: {if_match}",) if if_match else ()
        self._todo = deque(_Ask(each, 0) for each in requests_of(spans, options.max_connections))
        self._options = options
        self._many: http.Many[_Ask] = http.Many(client, options.max_connections)
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._rates: dict[str, HostRate] = {}
        self._good: dict[HostRate, int] = {}  # answers that are not noted yet
        self._places: dict[HostRate, list[Place]] = {}  # claimed and not used yet, the next one last
        self._claimed_to: dict[HostRate, float] = {}  # when the time of the last place comes
        self._trying: set[str] = set()  # hosts that are asked for several ranges for the first time

    def close(self) -> None:
        """Give up what is under way."""
        self._many.close()

    def run(self) -> Ended:
        """Return what came of each span, as they end."""
        ended: Ended = []
        while self._todo or self._waiting or len(self._many):
            self._claim_places()
            self._start_those_whose_time_has_come()
            if len(self._many):
                for ask, answer in self._many.wait(self._until_next()):
                    ended += self._of_several(ask, answer) if ask.is_for_several else self._of_one(ask, answer)
            elif self._waiting:
                time.sleep(self._until_next())
        for rate, number in self._good.items():
            rate.take_good(number)
        return ended

    def _claim_places(self) -> None:
        """Claim places for requests that may start now, and for the one after them.

        Places further ahead would keep the spacing they were claimed with when the rate rises, and all be due at once
        after this process was held up: the server would then be asked more often than the rate says.
        """
        room = self._options.max_connections - len(self._many) - len(self._waiting)
        while self._todo and room > 0:
            rate = self._rate(self._todo[0].url)
            if self._claimed_to.get(rate, 0.0) > time.monotonic() + SOON_S:
                return
            place = self._place(rate)
            self._claimed_to[rate] = place.start
            self._push(place.start, self._todo.popleft(), place)
            room -= 1

    def _place(self, rate: HostRate) -> Place:
        """The next place in the line of a host. Several are claimed at a time: the lock costs as much as a request."""
        places = self._places.setdefault(rate, [])
        if places and rate.is_void(places[-1]):
            places.clear()
        if not places:
            places += reversed(rate.claim_some(_CLAIMED, self._good.pop(rate, 0)))
        return places.pop()

    def _start_those_whose_time_has_come(self) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0].start <= now and len(self._many) < self._options.max_connections:
            waiting = heapq.heappop(self._waiting)
            ask, place = waiting.ask, waiting.place
            if place is None or (waiting.has_waited and self._rate(ask.url).is_void(place)):
                self._todo.appendleft(ask)
                self._claim_places()
                continue
            self._start(self._understood(ask))

    def _start(self, ask: _Ask) -> None:
        ranges = ",".join(f"{span.start}-{span.end - 1}" for span in ask.spans)
        most_bytes = sum(span.end - span.start for span in ask.spans)
        goes_on = _is_partial
        if ask.is_for_several:
            most_bytes += MAX_HEAD_BYTES * (len(ask.spans) + 1)
            goes_on = _has_parts
        headers = (f"Range: bytes={ranges}", *self._conditions)
        self._many.start(ask, http.Request(ask.url, headers, most_bytes=most_bytes), goes_on)

    def _understood(self, ask: _Ask) -> _Ask:
        """As much of a request as its server understands: several ranges only if it does, or that is not known yet."""
        host = _host(ask.url)
        if not ask.is_for_several or _ANSWERS_SEVERAL.get(host):
            return ask
        if host in _ANSWERS_SEVERAL or host in self._trying:
            self._todo.appendleft(_Ask(ask.spans[1:], ask.attempt))
            return _Ask(ask.spans[:1], ask.attempt)
        self._trying.add(host)
        return ask

    def _push(self, start: float, ask: _Ask, place: Place | None) -> None:
        self._number += 1
        has_waited = start > time.monotonic() + _AT_ONCE_S
        heapq.heappush(self._waiting, _Waiting(start, self._number, ask, place, has_waited))

    def _until_next(self) -> float:
        if not self._waiting:
            return _IDLE_S
        return min(_IDLE_S, max(0.0, self._waiting[0].start - time.monotonic()))

    def _rate(self, url: str) -> HostRate:
        host = _host(url)
        if host not in self._rates:
            self._rates[host] = HostRate(signed(url).url, max_rate=self._options.max_rate)
        return self._rates[host]

    def _of_one(self, ask: _Ask, answer: http.Answer) -> Ended:
        """What came of a request; nothing if it is tried again."""
        [span], attempt = ask
        reason = _wrong(span, answer)
        if reason is None:
            self._note_good(span.url)
            return [(span, answer.body)]
        self._note_refusal(span.url, answer)
        if answer.status in FINAL or answer.status in (200, 416) or attempt >= self._options.max_retries:
            shown = without_url_secrets(span.url)
            return [(span, NotFetched(f"{shown}, bytes {span.start} to {span.end}: {reason} at try {attempt + 1}"))]
        pause = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt, 10))
        self._push(time.monotonic() + pause, _Ask(ask.spans, attempt + 1), None)
        return []

    def _of_several(self, ask: _Ask, answer: http.Answer) -> Ended:
        """What came of a request for several spans. Those that did not come are asked for one by one."""
        host = _host(ask.url)
        self._trying.discard(host)
        boundary = boundary_of(answer.headers) if answer.status == 206 else None
        if boundary is not None:
            _ANSWERS_SEVERAL[host] = True
        elif answer.status in _NOT_SEVERAL or (answer.status == 403 and host not in _ANSWERS_SEVERAL):
            _ANSWERS_SEVERAL[host] = False
        parts = [] if boundary is None else parts_of(answer.body, boundary)
        found = [(span, _cut_from(parts, span)) for span in ask.spans]
        self._todo.extendleft(_Ask((span,), 0) for span, content in reversed(found) if content is None)
        if parts and not answer.error:
            self._note_good(ask.url)
        else:
            self._note_refusal(ask.url, answer)
        return [(span, content) for span, content in found if content is not None]

    def _note_good(self, url: str) -> None:
        rate = self._rate(url)
        self._good[rate] = self._good.get(rate, 0) + 1

    def _note_refusal(self, url: str, answer: http.Answer) -> None:
        if answer.status in REFUSED or answer.timed_out or not answer.status:
            self._rate(url).take_refusal(seconds_asked(answer.headers))


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def _is_partial(head: http.Head) -> bool:
    return head.status == 206


def _has_parts(head: http.Head) -> bool:
    return head.status == 206 and boundary_of(head.headers) is not None


def _cut_from(parts: Sequence[Part], span: Span) -> bytes | None:
    """A span out of the parts of an answer; None if it is not in one. Servers may join ranges and reorder them."""
    for part in parts:
        if part.start <= span.start and (span.end <= part.end or (part.is_last and span.start < part.end)):
            return bytes(part.content[span.start - part.start : span.end - part.start])
    return None


def _wrong(span: Span, answer: http.Answer) -> str | None:
    """What is wrong with an answer, or None."""
    if answer.status == 200:
        return "expected a range; the server sent the whole file"
    if answer.status != 206:
        return answer.error or f"status {answer.status}"
    told = _RANGE.match(answer.headers.get("content-range", ""))
    if told is None or int(told[1]) != span.start or int(told[2]) >= span.end:
        return f"another range: {answer.headers.get('content-range', 'none')}"
    if answer.error or len(answer.body) != int(told[2]) + 1 - span.start:
        return answer.error or f"{len(answer.body):,} bytes where {told[0]} was announced"
    return None
