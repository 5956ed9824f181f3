"""The order in which the pieces of a page are read: columns from left to right, each from top to bottom.

A region is cut at a white gap from top to bottom, if there are columns on both sides of one; else at the widest white
gap from left to right, if that lets columns appear in one of the parts (recursive XY-cut: Nagy and Seth, 1984). A
heading across two columns hides the gap between them, so the gap below it is cut first. A column is wide, and its lines
fill most of it: numbers of a list, and cells of a table, are not columns. What cannot be cut is read line by line.

Boxes are left, bottom, right, top, with y growing upwards, as in PDF.
"""

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]  # [N, 4]
Numbers = NDArray[np.int64]

LEFT, BOTTOM, RIGHT, TOP = range(4)
MOST_BOXES = 20_000  # on a page that is cut; a page with more is not text for reading

_MOST_CUTS = 60  # nested in one another
_MOST_COLUMNS = 6
_LEAST_GAP = 0.8  # between columns, in heights of a line
_LEAST_COLUMN_SHARE = 0.15  # of a region's width
_LEAST_FILL = 0.5  # of a column's width, by its median line
_LEAST_COLUMN_BOXES = 2


def reading_order(boxes: Boxes) -> list[Numbers]:
    """Return regions in the order they are read, each with the numbers of its boxes.

    boxes  [N, 4]   pieces of lines; if there are more than MOST_BOXES, one region in the given order
    """
    if not len(boxes):
        return []
    everything = np.arange(len(boxes))
    if len(boxes) > MOST_BOXES:
        return [everything]
    height = float(np.median(boxes[:, TOP] - boxes[:, BOTTOM])) or 1.0
    return _regions(boxes, everything, height, _MOST_CUTS)


def _regions(boxes: Boxes, region: Numbers, height: float, cuts: int) -> list[Numbers]:
    if not cuts or not _has_neighbours(boxes[region], height):
        return [region]
    is_left = _columns(boxes[region], height)
    if is_left is not None:
        parts = (region[is_left], region[~is_left])
        return [each for part in parts for each in _regions(boxes, part, height, cuts - 1)]
    found = _widest_gap(boxes, region)
    if found is None:
        return [region]
    above, below = (_regions(boxes, part, height, cuts - 1) for part in found)
    # A cut that revealed no columns was for nothing: lines of one text stay together.
    return [region] if len(above) == len(below) == 1 else [*above, *below]


def _has_neighbours(boxes: Boxes, height: float) -> bool:
    """Whether two boxes stand side by side, far enough apart to be in two columns."""
    if len(boxes) < 2 * _LEAST_COLUMN_BOXES:
        return False
    order = np.argsort(-boxes[:, TOP], kind="stable")
    upper, lower = boxes[order[:-1]], boxes[order[1:]]
    beside = upper[:, BOTTOM] < (lower[:, TOP] + lower[:, BOTTOM]) / 2
    apart = np.maximum(upper[:, LEFT] - lower[:, RIGHT], lower[:, LEFT] - upper[:, RIGHT]) > _LEAST_GAP * height
    return bool((beside & apart).any())


def lines_of(boxes: Boxes, region: Numbers) -> list[Numbers]:
    """Return the boxes of a region line by line, each from left to right.

    A box is on a line if its middle lies within the height of the line's first box.
    """
    middles = (boxes[region, TOP] + boxes[region, BOTTOM]) / 2
    lines: list[list[int]] = []
    bottom = np.inf
    for place in np.argsort(-middles, kind="stable"):
        number = int(region[place])
        if middles[place] < bottom:
            lines.append([])
            bottom = boxes[number, BOTTOM]
        lines[-1].append(number)
    return [np.array(sorted(line, key=lambda number: (boxes[number, LEFT], number))) for line in lines]


def _widest_gap(boxes: Boxes, region: Numbers) -> tuple[Numbers, Numbers] | None:
    """What is above and below the widest white gap across a region; None if there is none."""
    order, gaps = _gaps(-boxes[region, TOP], -boxes[region, BOTTOM])  # from the top of the page downwards
    if not len(gaps) or gaps.max() <= 0:
        return None
    widest = int(np.argmax(gaps))
    return region[np.sort(order[: widest + 1])], region[np.sort(order[widest + 1 :])]


def _columns(boxes: Boxes, height: float) -> NDArray[np.bool_] | None:
    """Which boxes are in the first column, if others follow it on the right; None if the page has only one."""
    order, gaps = _gaps(boxes[:, LEFT], boxes[:, RIGHT])
    for place in np.nonzero(gaps > _LEAST_GAP * height)[0][:_MOST_COLUMNS]:
        is_left = np.zeros(len(boxes), np.bool_)
        is_left[order[: place + 1]] = True
        rest = boxes[~is_left]
        if _is_column(boxes[is_left], boxes) and (_is_column(rest, boxes) or _columns(rest, height) is not None):
            return is_left
    return None


def _is_column(boxes: Boxes, region: Boxes) -> bool:
    width = boxes[:, RIGHT].max() - boxes[:, LEFT].min()
    whole = region[:, RIGHT].max() - region[:, LEFT].min()
    if len(boxes) < _LEAST_COLUMN_BOXES or width < _LEAST_COLUMN_SHARE * whole:
        return False
    return bool(np.median(boxes[:, RIGHT] - boxes[:, LEFT]) >= _LEAST_FILL * width)


def _gaps(starts: NDArray[np.float64], ends: NDArray[np.float64]) -> tuple[Numbers, NDArray[np.float64]]:
    """Intervals in the order of their starts, and the gap between all up to each one and the next."""
    order = np.argsort(starts, kind="stable")
    reached = np.maximum.accumulate(ends[order])
    return order, starts[order][1:] - reached[:-1]
