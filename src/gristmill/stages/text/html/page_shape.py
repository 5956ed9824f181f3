"""`measure_shape`: how deep a page is nested and how many tags it has, found out before anything parses it."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import html_layout as layout
from gristmill.stages.compiled_kernel import CompiledKernel

_measure_depth = CompiledKernel("text.html_depth", "measure_depth")


class PageShape(NamedTuple):
    """What is known of a page: nested elements, formatting elements open at once, start tags, attributes of one tag."""

    depth: int
    formatting: int
    tags: int
    attributes: int
    hints: int = 0

    @property
    def may_have_math(self) -> bool:
        """False if there is no formula in any form that `math_nodes` knows."""
        return bool(self.hints & (layout.MAY_HAVE_MATH | layout.MAY_HAVE_TEX))

    @property
    def may_have_tex(self) -> bool:
        """False if no formula is written out in the text of the page."""
        return bool(self.hints & layout.MAY_HAVE_TEX)

    @property
    def has_glued_cells(self) -> bool:
        """Whether cells of a table follow each other without so much as a space."""
        return bool(self.hints & layout.HAS_GLUED_CELLS)

    @property
    def may_have_code(self) -> bool:
        """False if there is no code in any form that `code_nodes` knows."""
        return bool(self.hints & layout.MAY_HAVE_CODE)


def measure_shape(page: bytes) -> PageShape:
    """Return the shape of a page, in any charset that is ASCII where tags are."""
    tables, scratch, stack, found = _room()
    _measure_depth(np.frombuffer(page, np.uint8), len(page), *tables, scratch, stack, found)
    return PageShape(*found[:5].tolist())


@cache
def _room() -> tuple[tuple[NDArray[np.generic], ...], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Tables, and memory that every page is measured in: pages are measured one at a time."""
    scratch, stack = np.zeros(2 * layout.SLOTS, np.int32), np.zeros(layout.MAX_STACK, np.int32)
    return layout.element_tables(), scratch, stack, np.zeros(layout.FOUND, np.int64)
