"""`extract_pdf`: the text of one PDF, or why there is none. The one user of pypdfium2.

pdfium is C++ and reads what strangers have made: it may crash, or run for ever. So stages call this in a process that
can be lost (`pdf_process.py`), one document at a time; the time limit here takes effect only between two pages.
"""

import ctypes
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from gristmill.errors import check_installed, require
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import Dropped
from gristmill.stages.text.pdf.page_text import Character, Line, join_lines, page_lines, words_of

EXTRA = "pdf"
NEEDS_OCR, TOO_LARGE, TRUNCATED, ENCRYPTED, NOT_PDF, EMPTY = (
    "needs_ocr",
    "too_large",
    "truncated",
    "encrypted",
    "not_pdf",
    "empty",
)
BROKEN, TIME_LIMIT = "broken_pdf", "time_limit"
REASONS = {
    NEEDS_OCR: "Too many pages are pictures, or too much of the text is not characters: a model has to read it.",
    TOO_LARGE: "The file has more than `max_pdf_bytes`, or more than `max_pdf_pages` pages.",
    TRUNCATED: "The file is cut off: pdfium cannot read it, and its end is missing.",
    ENCRYPTED: "The file can only be opened with a password.",
    NOT_PDF: "The bytes are not those of a PDF.",
    EMPTY: "No page has text.",
}
KINDS = {
    BROKEN: "pdfium cannot read the file, which has a beginning and an end.",
    TIME_LIMIT: "The file took longer than `pdf_s`, or a page longer than `pdf_page_s`.",
}

_SCANNED_CHARS = 20  # a page with fewer, and pictures on most of it, is scanned
_SCANNED_AREA = 0.8
_REPEATED_SHARE = 0.6  # of pages: a line at the top or the bottom of this many is a header or a footer
_LEAST_PAGES = 4  # to tell what is repeated
_EDGE = 0.1  # of a page's height, at its top and at its bottom, where those are
_MOST_CHARS = 200_000  # of a page: more is a drawing made of letters
_HEAD_BYTES = 1024
_DIGITS = re.compile(r"\d+")


@dataclass
class PdfText:
    """The text of a PDF, and what is known of its pages."""

    text: str
    num_pages: int
    scanned_share: float  # of pages
    text_garbled_share: float  # of characters: those of private use, those without a meaning


@dataclass
class _Page:
    lines: list[Line] = field(default_factory=list)
    num_chars: int = 0
    num_garbled: int = 0
    is_scanned: bool = False
    bottom: float = 0.0
    height: float = 1.0

    def edges(self) -> list[Line]:
        """The lines where headers and footers are."""
        places = [(line, (line.middle - self.bottom) / self.height) for line in self.lines]
        return [line for line, place in places if not _EDGE < place < 1 - _EDGE]


Read = PdfText | Dropped | Quarantined


def check_ready() -> None:
    """Say what to install, if pypdfium2 is missing."""
    check_installed("pypdfium2", extra=EXTRA)


@cache
def _pdfium() -> tuple[ModuleType, ModuleType]:
    return require("pypdfium2", extra=EXTRA), require("pypdfium2.raw", extra=EXTRA)


def extract_pdf(
    content: bytes,
    limits: IngestLimits,
    *,
    max_scanned_share: float = 0.5,
    max_garbled_share: float = 0.2,
    on_page: Callable[[str], object] = str,
) -> Read:
    """Return the text of a PDF, or why there is none; `on_page` gets the lines of each page as soon as it is read."""
    if len(content) > limits.max_pdf_bytes:
        return Dropped(TOO_LARGE, len(content), f"≤ {limits.max_pdf_bytes} bytes")
    if b"%PDF" not in content[:_HEAD_BYTES]:
        return Dropped(NOT_PDF)
    library, _ = _pdfium()
    try:
        document = library.PdfDocument(content)
    except library.PdfiumError as error:
        return _unreadable(content, str(error))
    try:
        return _read(document, limits, max_scanned_share, max_garbled_share, on_page)
    finally:
        document.close()


def _unreadable(content: bytes, error: str) -> Read:
    if "password" in error.lower() or "security" in error.lower():
        return Dropped(ENCRYPTED)
    if b"%%EOF" not in content[-_HEAD_BYTES:]:
        return Dropped(TRUNCATED)
    return Quarantined(f"expected a PDF; got {error}", BROKEN)


def _read(
    document: Any,
    limits: IngestLimits,
    max_scanned_share: float,
    max_garbled_share: float,
    on_page: Callable[[str], object],
) -> Read:
    count = len(document)
    if count > limits.max_pdf_pages:
        return Dropped(TOO_LARGE, count, f"≤ {limits.max_pdf_pages} pages")
    pages: list[_Page] = []
    begun = time.monotonic()
    for number in range(count):
        before = time.monotonic()
        pages.append(_read_page(document, number))
        on_page("\n".join(line.text for line in pages[-1].lines))
        now = time.monotonic()
        if now - begun > limits.pdf_s or now - before > limits.pdf_page_s:
            error = f"expected {count} pages within {limits.pdf_s:g} s, each within {limits.pdf_page_s:g} s"
            made = _joined(pages)
            return Quarantined(f"{error}; got {number + 1} in {now - begun:.1f} s", TIME_LIMIT, document=made)
    chars = sum(page.num_chars for page in pages)
    scanned = sum(page.is_scanned for page in pages) / max(count, 1)
    garbled = sum(page.num_garbled for page in pages) / max(chars, 1)
    if scanned > max_scanned_share:
        return Dropped(NEEDS_OCR, round(scanned, 4), f"scanned_share ≤ {max_scanned_share:g}")
    if garbled > max_garbled_share:
        return Dropped(NEEDS_OCR, round(garbled, 4), f"text_garbled_share ≤ {max_garbled_share:g}")
    text = _joined(pages)
    return PdfText(text, count, scanned, garbled) if text else Dropped(EMPTY)


# Pages


def _read_page(document: Any, number: int) -> _Page:
    """One page; one that pdfium cannot read has no text, and the others are read."""
    library, _ = _pdfium()
    try:
        page = document[number]
    except library.PdfiumError:
        return _Page()
    try:
        _, bottom, _, top = page.get_cropbox()
        made = _Page(bottom=bottom, height=max(top - bottom, 1.0))
        text = page.get_textpage()
        try:
            _read_text(text, made)
        finally:
            text.close()
        if made.num_chars < _SCANNED_CHARS:
            made.is_scanned = _picture_share(page) > _SCANNED_AREA
        return made
    except library.PdfiumError:
        return _Page()
    finally:
        page.close()


def _read_text(text: Any, made: _Page) -> None:
    _, raw = _pdfium()
    handle, count = text.raw, min(text.count_chars(), _MOST_CHARS)
    box = raw.FS_RECTF()
    place = ctypes.byref(box)
    # Boxes of the font, not of the ink: a comma is as high as its line.
    unicode_of, box_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
    characters = []
    for index in range(count):
        code = unicode_of(handle, index)
        if code not in (0x0A, 0x0D, 0x20):
            made.num_chars += 1
            made.num_garbled += is_garbled(code)
        box_of(handle, index, place)
        characters.append(Character(code, box.left, box.right, box.bottom, box.top))
    made.lines = page_lines(characters)


def is_garbled(code: int) -> bool:
    """Whether a number stands for no readable character: private use, replacement, nothing."""
    private = 0xE000 <= code <= 0xF8FF or 0xF0000 <= code <= 0x10FFFF
    control = code < 0x20 and code not in (0x02, 0x09, 0x0A, 0x0D)
    return private or control or code in (0xFFFD, 0xFFFE, 0xFFFF)


def _picture_share(page: Any) -> float:
    """How much of a page its pictures take; overlapping ones count twice, up to the whole page."""
    _, raw = _pdfium()
    width, height = page.get_size()
    area = 0.0
    for found in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        left, bottom, right, top = found.get_bounds()
        shown = max(0.0, min(right, width) - max(left, 0.0)) * max(0.0, min(top, height) - max(bottom, 0.0))
        area += shown
    return min(1.0, area / (width * height)) if width * height > 0 else 0.0


# Pages to a document


def _joined(pages: list[_Page]) -> str:
    repeated = _repeated(pages)
    lines = [_without_repeated(page, repeated) for page in pages]
    words = set().union(*map(words_of, lines))
    texts = (join_lines(page, words).strip() for page in lines)
    return "\n\n".join(text for text in texts if text)


def _repeated(pages: list[_Page]) -> set[str]:
    """What stands at the top or at the bottom of most pages, numbers aside."""
    with_text = [page for page in pages if page.lines]
    if len(with_text) < _LEAST_PAGES:
        return set()
    counts = Counter(shape for page in with_text for shape in {_shape(line) for line in page.edges()})
    return {shape for shape, count in counts.items() if count >= _REPEATED_SHARE * len(with_text)}


def _shape(line: Line) -> str:
    return _DIGITS.sub("0", line.text.strip().lower())


def _without_repeated(page: _Page, repeated: set[str]) -> list[Line]:
    gone = {id(line) for line in page.edges() if _shape(line) in repeated}
    return [line for line in page.lines if id(line) not in gone]
