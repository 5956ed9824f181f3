"""`LineRemover`: lines that are known word for word."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.text_columns import find_rows


@dataclass
class LineRemover(DocumentModifier):
    """Remove the lines that are equal to one of `patterns`."""

    patterns: list[str]

    def __post_init__(self) -> None:
        given: object = self.patterns
        if isinstance(given, str):  # its letters would be taken for lines
            raise ConfigError(f"LineRemover: expected patterns to be a list of lines; got {given!r}")

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_] | None:
        if "" in self.patterns:
            return None
        found = np.zeros(len(texts), np.bool_)
        for pattern in self.patterns:
            found |= find_rows(texts, pattern.encode("utf-8", "surrogatepass"))
        return found

    def modify_document(self, text: str) -> str:
        unwanted = frozenset(self.patterns)
        return "\n".join([line for line in text.split("\n") if line not in unwanted])
