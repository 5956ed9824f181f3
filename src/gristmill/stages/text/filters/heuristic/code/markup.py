"""Filters on XML and HTML."""

import re
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

# What a reader does not see. Each alternative ends at the end of the text at the latest, so no text takes long.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b[^>]*(?:>|\Z).*?(?:</\1\s*>|\Z)|<[a-z/!?][^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_BLANKS = re.compile(r"\s+")  # a browser shows any number of them as one: indentation is not text
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


@dataclass
class XMLHeaderFilter(DocumentFilter[int]):
    """Drop XML files under other names: those with an XML declaration near the top (StarCoder, Li et al., 2023)."""

    measure: ClassVar[str] = "has an XML header"
    score_type: ClassVar[pa.DataType] = pa.int64()

    char_prefix_search_length: int = 100

    def score_document(self, text: str) -> int:
        return int("<?xml version=" in text[: self.char_prefix_search_length])

    def bounds(self) -> Bounds:
        return None, 0


@dataclass
class HTMLBoilerplateFilter(DocumentFilter[float]):
    """Drop HTML with little to read: visible text over all characters, 0 if it is too short to judge."""

    measure: ClassVar[str] = "share of visible text"
    score_type: ClassVar[pa.DataType] = pa.float64()

    min_lang_content_ratio: float = 0.2
    min_lang_content_num_chars: int = 100

    def score_document(self, text: str) -> float:
        visible = len(_BLANKS.sub(" ", _ENTITY.sub("?", _UNSEEN.sub("", text))).strip())
        return visible / len(text) if text and visible >= self.min_lang_content_num_chars else 0.0

    def bounds(self) -> Bounds:
        return self.min_lang_content_ratio, None
