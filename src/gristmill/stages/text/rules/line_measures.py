"""What rule sets count on lines and paragraphs, for a whole column; the definitions are those of the rule sets."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.layout import FILLED_COLUMNS, SHAPE_COLUMNS
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.statistics.text_column import TextColumn

_count_line_shapes = CompiledKernel("text.line_shapes", "count_line_shapes")
_count_filled_lines = CompiledKernel("text.line_shapes", "count_filled_lines")


def line_shapes(texts: TextColumn) -> NDArray[np.int64]:
    """Return int64[D, 6]: characters, number signs, ellipses; lines, with a bullet, with an ellipsis at the end."""
    counts = np.zeros((len(texts), SHAPE_COLUMNS), np.int64)
    _count_line_shapes(texts.data, texts.starts, texts.stops, len(texts), counts)
    return counts


def filled_lines(texts: TextColumn, short_length: int) -> NDArray[np.int64]:
    """Return int64[D, 4]: lines that are not blank, with end mark, of at most so many characters; newlines."""
    counts = np.zeros((len(texts), FILLED_COLUMNS), np.int64)
    marks = _end_marks()
    where = (texts.data, texts.starts, texts.stops, len(texts))
    _count_filled_lines(*where, short_length, marks, len(marks), counts)
    return counts


@cache
def _end_marks() -> NDArray[np.int64]:
    from gristmill.kernels.tokens.marks import LINE_ENDS

    return np.array(sorted(int.from_bytes(mark.encode(), "big") for mark in LINE_ENDS), np.int64)
