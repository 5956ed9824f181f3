"""`UrlRemover`: web addresses."""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import find_rows, match_rows

_URL = re.compile(r"https?://\S+|www\.\S+", re.IGNORECASE)


@dataclass
class UrlRemover(DocumentModifier):
    """Remove everything from http://, https:// or www. to the next white space, in capitals too."""

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_]:
        return find_rows(texts, b"://") | match_rows(texts, r"(?i)www\.")

    def modify_document(self, text: str) -> str:
        return _URL.sub("", text)
