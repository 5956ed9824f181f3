"""`DocumentModifier`: what a user subclasses to change documents one at a time.

A modifier turns a text into a text and knows nothing of batches or columns: `Modify` sees to that.
"""

from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.base import snake_case


class DocumentModifier:
    """Change a document.

    Write `modify_document`. A modifier that leaves most documents as they are may also say, for a whole column at once,
    which ones are worth looking at (`find_candidates`); the others are then not even made Python strings.
    """

    def modify_document(self, text: str) -> str:
        """Return what becomes of one text."""
        raise NotImplementedError(f"{type(self).__name__}: a modifier must define modify_document")

    def find_candidates(self, texts: pa.ChunkedArray) -> NDArray[np.bool_] | None:
        """Return true for the texts `modify_document` may change; None if it may change any.

        A text it would change must never be left out: that is all this has to promise.
        """
        return None

    @property
    def name(self) -> str:
        """The name in plans and metrics: the class name in snake_case, unless one is set."""
        given = cast("str | None", vars(self).get("_name"))
        return given or snake_case(type(self).__name__)

    @name.setter
    def name(self, name: str) -> None:
        self._name = name
