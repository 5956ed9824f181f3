"""Bytes of a page to text.

The first that fits, in this order: a byte order mark; UTF-8 without an error; what the HTTP header says; what `<meta>`
says in the first 1,024 bytes; what two detectors say. A charset fits if the bytes decode without an error: so a page
whose declaration lies is decoded by what it is. Labels mean what they mean to browsers, as the WHATWG's Encoding
Standard has it: latin-1 is windows-1252, gb2312 is gb18030.

A page that fits nowhere has broken bytes: it was cut in the middle of a character, or put together from two sources.
Where they are few, it is decoded with U+FFFD in their place; where they are many, it is not decoded.
"""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

from gristmill.errors import check_installed, require

EXTRA = "html"
META_BYTES = 1_024  # in which a declaration has to stand, says the HTML standard
MAX_BROKEN_SHARE = (
    0.05  # of the characters beyond ASCII: a page in another charset than the one tried has 30 % and more
)
DETECTOR_BYTES = 64 * 1024  # of a page are shown to a detector: 10 ms, and more of it changes no answer

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_META = re.compile(rb"<meta\b[^>]*?charset\s*=\s*[\"']?\s*([-\w:.()]+)", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml\b[^>]*?encoding\s*=\s*[\"']([-\w:.]+)[\"']", re.IGNORECASE)
_HTTP = re.compile(r"charset\s*=\s*[\"']?([-\w:.]+)", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"^\s*<\?xml\b[^>]*\?>")
_SHIFTS = b"\x1b$"  # ISO-2022-JP is ASCII with these in it

# What browsers decode is more than Python's codecs of the same name do.
_WIDER = {
    "gbk": ("gb18030",),
    "shift_jis": ("cp932",),
    "euc_kr": ("cp949",),
    "euc_jp": ("euc_jp", "euc_jis_2004"),
    "iso2022_jp": ("iso2022_jp", "iso2022_jp_ext"),
    "big5": ("big5hkscs", "cp950"),
    "iso8859-11": ("cp874",),
    "x-mac-cyrillic": ("mac_cyrillic",),
}
_NEVER_DECLARED = ("utf-16-le", "utf-16-be")  # a declaration that could be read as ASCII is not in UTF-16


class Decoded(NamedTuple):
    """A page as text, which charset it was in, what showed that, and how many characters were broken."""

    text: str
    charset: str
    by: str  # "mark", "utf-8", "http", "meta", "detector"
    num_broken: int = 0


def check_ready() -> None:
    """Raise MissingDependency if a package is missing that decodes pages."""
    for module in ("resiliparse", "cchardet"):
        check_installed(module, extra=EXTRA)


class PageDecoder:
    """Decodes pages; loads the libraries when it is made."""

    def __init__(self) -> None:
        encoding = require("resiliparse.parse.encoding", extra=EXTRA)
        self._whatwg_name = encoding.map_encoding_to_html5
        self._detect = encoding.detect_encoding
        self._detect_again = require("cchardet", extra=EXTRA).detect

    def decode(self, data: bytes, content_type: str | None = None) -> Decoded | None:
        """Return a page's text, given its Content-Type header if there is one; None if no charset fits."""
        found = self._strictly(data, content_type) or self._leniently(data, content_type)
        return None if found is None else found._replace(text=_tidy(found.text, may_have_nul=b"\0" in data))

    def _strictly(self, data: bytes, content_type: str | None) -> Decoded | None:
        for mark, codec in _MARKS:
            if data.startswith(mark):
                found = _decoded(data[len(mark) :], codec, "mark")
                if found is not None:
                    return found
        wide = _looks_like_utf_16(data)
        if wide is None and not (data.isascii() and _SHIFTS in data):
            found = _decoded(data, "utf-8", "utf-8")
            if found is not None:
                return found
        for by, codec in self._candidates(data, content_type, wide):
            found = _decoded(data, codec, by)
            if found is not None:
                return found
        return None

    def _leniently(self, data: bytes, content_type: str | None) -> Decoded | None:
        """The charset that breaks fewest characters, if those are few."""
        best = None
        for by, codec in [("utf-8", "utf-8"), *self._candidates(data, content_type, None)]:
            text = data.decode(codec, "replace")
            broken = text.count("\ufffd")
            beyond_ascii = sum(map(len, _BEYOND_ASCII.findall(text)))
            if broken <= max(1, MAX_BROKEN_SHARE * beyond_ascii) and broken < beyond_ascii:
                found = Decoded(text, codec, by, broken)
                best = found if best is None or broken < best.num_broken else best
        return best

    def _candidates(self, data: bytes, content_type: str | None, wide: str | None) -> Iterator[tuple[str, str]]:
        """What is claimed, by what, in order: names of codecs, or of wider ones that hold the same and more."""
        if wide is not None:
            yield "detector", wide
        http = _HTTP.search(content_type) if content_type else None
        head = data[:META_BYTES]
        meta = _META.search(head) or _XML.search(head)
        for by, label in (("http", http and http[1]), ("meta", meta and meta[1].decode("ascii", "replace"))):
            if label:
                yield from ((by, codec) for codec in self.codecs_of(label) if codec not in _NEVER_DECLARED)
        part = data[:DETECTOR_BYTES]
        first = self._detect(part, html5_compatible=True)
        if first and first != "utf-8":
            yield from (("detector", codec) for codec in self.codecs_of(first))
        second = self._detect_again(part)["encoding"]
        if second:
            yield from (("detector", codec) for codec in self.codecs_of(second))

    def codecs_of(self, label: str) -> tuple[str, ...]:
        """Return Python's codecs for what a label means on the web, the likeliest first; nothing if there are none."""
        label = label.strip().lower()
        name = self._whatwg_name(label, fallback_utf8=False)
        if name is None and label in _WIDER:
            name = label
        if name is None:
            try:
                known = codecs.lookup(label).name
            except (LookupError, ValueError):
                return ()
            name = self._whatwg_name(known, fallback_utf8=False) or known
        return _WIDER.get(name, (name,))


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def _decoded(data: bytes, codec: str, by: str) -> Decoded | None:
    try:
        return Decoded(data.decode(codec), codec, by)
    except (UnicodeDecodeError, LookupError, AssertionError):
        return None


def _looks_like_utf_16(data: bytes) -> str | None:
    """The codec of a page that has a zero in every other byte and no mark: it would pass for UTF-8."""
    if b"\0" not in data[:4]:
        return None
    if data[1:64:2].count(0) > 24 and data[:64:2].count(0) == 0:
        return "utf-16-le"
    if data[:64:2].count(0) > 24 and data[1:64:2].count(0) == 0:
        return "utf-16-be"
    return None


def _tidy(text: str, *, may_have_nul: bool) -> str:
    """Drop an XML declaration, whose charset is not the text's any more, and replace NUL, which parsers stop at.

    NUL is looked for in the bytes first: there it takes a tenth of the time.
    """
    if "<?xml" in text[:100].lower():
        text = _XML_DECLARATION.sub("", text.lstrip("\ufeff"), count=1)
    return text.replace("\0", "\ufffd") if may_have_nul else text
