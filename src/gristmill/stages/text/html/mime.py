"""What a record is: a page, plain text, a PDF, a notebook, or something else.

In this order: what the crawler has identified, what the first bytes say, what the server said. Servers are often wrong
(PDFs as text/html, pages as application/octet-stream), crawlers that look at the bytes seldom.
"""

import re
from typing import Literal

Kind = Literal["html", "text", "pdf", "notebook", "other"]

LOOK_BYTES = 1_024
MAX_CONTROL_SHARE = 0.05  # of the first bytes: text has hardly any, and other files have many

_KINDS: dict[str, Kind] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/vnd.wap.xhtml+xml": "html",
    "text/plain": "text",
    "text/markdown": "text",
    "text/x-web-markdown": "text",
    "text/x-rst": "text",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/x-ipynb+json": "notebook",
}
_SAY_NOTHING = ("", "application/octet-stream", "application/unknown", "unknown/unknown", "binary/octet-stream", "*/*")

# What begins a page, by the WHATWG's MIME Sniffing Standard, and a few more that pages in crawls begin with.
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|meta|link|center|ul|span"
    rb"|frameset|!--)(?:[\s>/]|(?<=--))",
    re.IGNORECASE,
)
_HTML_LATER = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_NOTEBOOK = re.compile(rb"\"nbformat\"\s*:|\"cells\"\s*:|\"worksheets\"\s*:")
_IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"\x00\x00\x01\x00")
_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x7fELF", b"MZ")
_OTHERS = (*_IMAGES, *_ARCHIVES, b"\xd0\xcf\x11\xe0", b"ID3", b"OggS", b"fLaC", b"{\\rtf", b"%!PS", b"wOFF", b"wOF2")
_BEFORE = b"\xef\xbb\xbf \t\r\n\x0c"
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r\x0c\x1b")


def kind_of(data: bytes, *, identified_type: str | None = None, content_type: str | None = None) -> Kind:
    """Return what a record is, given its bytes, what the crawler identified and what the server said, if they did."""
    for kind in (_kind_of_type(identified_type), _kind_of_bytes(data), _kind_of_type(content_type)):
        if kind is not None:
            return "notebook" if kind in ("other", "text") and is_notebook(data) else kind
    return _guess(data)


def is_notebook(data: bytes) -> bool:
    """Whether it looks like a notebook of Jupyter: JSON with a format number, which may stand at its end."""
    return data.lstrip(_BEFORE)[:1] == b"{" and b'"nbformat"' in data and _NOTEBOOK.search(data) is not None


def _kind_of_type(media_type: str | None) -> Kind | None:
    """What a type says; None if it says nothing."""
    plain = (media_type or "").partition(";")[0].strip().lower()
    return None if plain in _SAY_NOTHING else _KINDS.get(plain, "other")


def _kind_of_bytes(data: bytes) -> Kind | None:
    """What the first bytes say; None if they may be anything."""
    head = data[:LOOK_BYTES].lstrip(_BEFORE)
    if b"%PDF-" in data[:LOOK_BYTES]:
        return "pdf"
    if head.startswith(_OTHERS):
        return "other"
    if _HTML.match(head):
        return "html"
    if head[:5].lower() == b"<?xml":
        return "html" if _HTML_LATER.search(data[:LOOK_BYTES]) else "other"
    return None


def _guess(data: bytes) -> Kind:
    """What bytes are when nothing was said about them."""
    head = data[:LOOK_BYTES]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if is_notebook(data):
        return "notebook"
    if b"<\0" in head or b"\0<" in head:
        return "html"  # in UTF-16
    if controls > MAX_CONTROL_SHARE * len(head):
        return "other"
    return "html" if re.search(rb"</?[a-z][a-z0-9]*[\s>/]", data, re.IGNORECASE) else "text"
