"""`NewlineNormalizer`: at most one empty line."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import find_rows

_NEWLINES = re.compile(r"\n{3,}")
_WINDOWS_NEWLINES = re.compile(r"(?:\r\n){3,}")


@dataclass
class NewlineNormalizer(DocumentModifier):
    r"""Turn three or more newlines into two, Windows' \r\n included."""

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return find_rows(texts, b"\n\n\n") | find_rows(texts, b"\r\n\r\n\r\n")

    def modify_document(self, text: str) -> str:
        return _WINDOWS_NEWLINES.sub("\r\n\r\n", _NEWLINES.sub("\n\n", text))
