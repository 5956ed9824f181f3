r"""`MarkdownRemover`: emphasis and links.

Line by line, in this order, each as the regular expression beside it says:

    **text**    \*\*(.*?)\*\*                                   text
    *text*      \*(.*?)\*                                       text
    __text__    (?<!\w)(__?)(?=\S)(.+?)(?<=\S)\1(?!\w)          text; so snake_case stays
    [text](url) \[.*?\]\((.*?)\)                                url

The last two take quadratic time on a long line of openings that nothing closes (measured: 10 s for 100 KB of "["), so
they are written out here; a test compares them with the expressions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import match_rows

_BOLD = re.compile(r"\*\*(.*?)\*\*")
_ITALIC = re.compile(r"\*(.*?)\*")
# The mark first and what stands before it second, so that Python looks for the mark.
_OPENING = re.compile(r"(_(?<!\w_)_?)(?=\S)")
_CLOSING = {"_": re.compile(r"_(?<=\S_)(?!\w)"), "__": re.compile(r"__(?<=\S__)(?!\w)")}
_MAYBE = r"(?m)\*[^\n]*\*|(?:^|[^0-9A-Za-z_])_|\]\("


@dataclass
class MarkdownRemover(DocumentModifier):
    """Remove the marks of bold, italic and underlined text, and replace a link by its address."""

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return match_rows(texts, _MAYBE)

    def modify_document(self, text: str) -> str:
        if "*" in text:
            text = _ITALIC.sub(r"\1", _BOLD.sub(r"\1", text))
        if "_" in text:
            text = "\n".join(["".join(_without_underlines(line)) if "_" in line else line for line in text.split("\n")])
        if "](" in text:
            text = "\n".join(
                ["".join(_links_as_addresses(line)) if "](" in line else line for line in text.split("\n")]
            )
        return text


def _without_underlines(line: str) -> Iterator[str]:
    position = 0
    closable = {"_", "__"}  # marks that a closing one may still follow
    opening = _OPENING.search(line)
    while opening and closable:
        closing = None
        for mark in dict.fromkeys((opening[1], "_")):
            if mark in closable:
                start = opening.start() + len(mark)
                closing = _CLOSING[mark].search(line, start + 1)
                if closing:
                    yield line[position : opening.start()]
                    yield line[start : closing.start()]
                    position = closing.end()
                    break
                closable.remove(mark)
        opening = _OPENING.search(line, position if closing else opening.start() + 1)
    yield line[position:]


def _links_as_addresses(line: str) -> Iterator[str]:
    position = 0
    while (start := line.find("[", position)) >= 0:
        middle = line.find("](", start + 1)
        end = line.find(")", middle + 2) if middle >= 0 else -1
        if end < 0:
            break  # what closes no earlier opening closes no later one
        yield line[position:start]
        yield line[middle + 2 : end]
        position = end + 1
    yield line[position:]
