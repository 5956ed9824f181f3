"""`WikitextScanner`: the text readers see of an article, by the kernel `text.wikitext`."""

import html.entities
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.download.wikipedia.site_names import LANGUAGES, category_names, file_names
from gristmill.stages.text.download.wikipedia.text_templates import TEXT_FUNCTIONS, text_templates

_clean_wikitext = CompiledKernel("text.wikitext", "clean_wikitext")

# What becomes of a tag and what stands between it and its end. A tag that is not here is text.
_TAGS: dict[int, str] = {
    lay.STRIPPED: """
        a abbr b bdi bdo big caption center cite code col colgroup data del dfn em font i ins kbd langconvert mark
        noinclude onlyinclude poem q rb rbc rp rt rtc ruby s samp small span strike strong sub tbody tfoot thead time
        translate tt tvar u var wbr
    """,
    lay.NEW_LINE: "blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p tr ul",
    lay.CELL: "td th",
    lay.RAISED: "sup",
    lay.DROPPED: """
        categorytree dynamicpagelist gallery graph hiero imagemap includeonly indicator inputbox mapframe maplink ref
        references score section templatedata templatestyles timeline
    """,
    lay.MATH: "math",
    lay.CHEMISTRY: "ce chem",
    lay.NO_WIKI: "nowiki",
    lay.CODE: "source syntaxhighlight",
    lay.PREFORMATTED: "pre",
    lay.TABLE_BEGIN: "table",
}
_FORM = {f"{{{number}}}": chr(number) for number in range(1, 10)} | {
    "{all}": chr(lay.ALL_ARGUMENTS),
    "{last}": chr(lay.LAST_ARGUMENT),
    "{list}": chr(lay.LISTED_ARGUMENTS),
}


class WikitextScanner:
    """Cleans articles of one Wikipedia.

    `namespaces` are names of files and categories beside those that are known for the language.
    """

    def __init__(
        self,
        language: str = "en",
        *,
        math: bool = True,
        tables: bool = False,
        namespaces: Iterable[str] = (),
        max_depth: int = 100,
    ) -> None:
        self._options = np.array([math, tables, max_depth], np.int64)  # KEEP_MATH, KEEP_TABLES, MOST_OPEN
        self._slots, self._keys = _names(language, tuple(namespaces))

    def clean(self, wikitext: str) -> str:
        """Return the text of an article. Anything is an article: nothing is an error here."""
        content = wikitext.encode("utf-8", "replace")
        data = np.zeros(len(content) + lay.PADDING, np.uint8)
        data[: len(content)] = np.frombuffer(content, np.uint8)
        out = np.empty(3 * len(content) + 4 * lay.PADDING, np.uint8)
        stack = np.empty(self._options[lay.MOST_OPEN] * lay.ENTRY, np.int64)
        notes, spans = np.empty(lay.NOTES, np.int64), np.empty(2 * lay.MOST_SPANS, np.int64)
        length = _clean_wikitext(
            data, len(content), self._options, self._slots, len(self._slots) // lay.SLOT, self._keys, stack, notes,
            spans, out,
        )  # fmt: skip
        return out[:length].tobytes().decode()


@lru_cache(maxsize=64)
def scanner_for(
    language: str, *, math: bool, tables: bool, namespaces: tuple[str, ...], max_depth: int
) -> WikitextScanner:
    """Return the scanner for articles of a wiki. It may be used by several threads at a time."""
    return WikitextScanner(language, math=math, tables=tables, namespaces=namespaces, max_depth=max_depth)


@lru_cache(maxsize=8)
def _names(language: str, namespaces: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The table of names that the kernel looks up: slots, and the bytes of keys and texts."""
    known = list(_known(language, namespaces))
    num_slots = 1 << (2 * len(known)).bit_length()
    slots = np.zeros((num_slots, lay.SLOT), np.int64)
    content = bytearray(b"\0")
    for key, value in known:
        place = _hash(key) & (num_slots - 1)
        while slots[place, lay.KEY_LENGTH]:
            start = slots[place, lay.KEY_AT]
            if content[start : start + slots[place, lay.KEY_LENGTH]] == key:
                break  # the first of two counts
            place = (place + 1) & (num_slots - 1)
        else:
            slots[place, lay.KEY_AT], slots[place, lay.KEY_LENGTH] = len(content), len(key)
            content += key
            if isinstance(value, bytes):
                slots[place, lay.VALUE], slots[place, lay.VALUE_LENGTH] = len(content), len(value)
                content += value
            else:
                slots[place, lay.VALUE], slots[place, lay.VALUE_LENGTH] = value
    return slots.ravel(), np.frombuffer(bytes(content), np.uint8)


Known = Iterator[tuple[bytes, bytes | tuple[int, int]]]


def _known(language: str, namespaces: tuple[str, ...]) -> Known:
    yield from _known_prefixes(language, namespaces)
    yield from _known_templates()
    number = 0
    for kind, names in _TAGS.items():
        for name in names.split():
            number += kind in _CLOSED
            yield _key(lay.OF_TAG, name), (kind, number)
    for name, text in html.entities.html5.items():
        if name.endswith(";"):
            yield bytes([lay.OF_ENTITY]) + name[:-1].encode(), text.encode()


def _known_prefixes(language: str, namespaces: tuple[str, ...]) -> Known:
    for name in (*file_names(language), *category_names(language), *namespaces):
        # The kernel lower-cases ASCII only; for other scripts the usual forms are listed.
        for form in {name, name.lower(), name[:1].upper() + name[1:], name.upper()}:
            yield _key(lay.OF_NAMESPACE, form), (1, 0)
    for code in LANGUAGES - {language}:
        yield _key(lay.OF_NAMESPACE, code), (1, 0)


def _known_templates() -> Known:
    for name, form in text_templates().items():
        packed = form
        for text, byte in _FORM.items():
            packed = packed.replace(text, byte)
        for written in {name, name[:1].upper() + name[1:]}:
            yield _key(lay.OF_TEMPLATE, written), packed.encode()
    for name in TEXT_FUNCTIONS:
        yield _key(lay.OF_FUNCTION, name), (1, 0)


_CLOSED = {lay.DROPPED, lay.MATH, lay.CHEMISTRY, lay.NO_WIKI, lay.CODE, lay.PREFORMATTED}


def _key(kind: int, name: str) -> bytes:
    return bytes([kind]) + bytes(name.replace("_", " ").encode()).lower()


def _hash(key: bytes) -> int:
    value = lay.HASH_START
    for byte in key:
        value = (value ^ byte) * lay.HASH_FACTOR & lay.HASH_MASK
    return value
