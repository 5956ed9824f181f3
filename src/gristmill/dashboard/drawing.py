"""Drawings as SVG, made in Python: nothing runs in the reader's browser, and the same numbers give the same bytes."""

import math
from collections.abc import Sequence

from gristmill.dashboard.histogram import Histogram
from gristmill.dashboard.markup import Html, tag
from gristmill.metrics.tally import shown

WIDTH = 340.0  # of a bar in a table; the browser makes it fit
BAR_HEIGHT = 14.0
LEAST = 0.8  # of anything above zero: it must be seen


def waterfall(left: float, gone: float, whole: float, kind: str = "gone") -> Html:
    """A row of a funnel: what is left, and what went here; the rest of the width had gone before."""
    unit = WIDTH / whole if whole else 0.0
    kept, lost = left * unit, gone * unit
    if gone and lost < LEAST:
        lost = LEAST
    return _svg(
        WIDTH,
        BAR_HEIGHT,
        tag("rect", x=0, y=3, width=WIDTH, height=8, class_="rest", opacity="0.35"),
        tag("rect", x=0, y=3, width=kept, height=8, class_="kept") if left else None,
        tag("rect", x=min(kept, WIDTH - lost), y=1, width=lost, height=12, class_=kind) if gone else None,
        label=f"{left:,.0f} left of {whole:,.0f}",
    )


def shares_bar(parts: Sequence[tuple[str, float, str]]) -> Html:
    """Parts of a whole side by side: name, share, class."""
    place, rects = 0.0, []
    for name, share, kind in parts:
        width = share * 720
        rects.append(
            tag("rect", tag("title", f"{name} {share:.1%}"), x=place, y=0, width=width, height=18, class_=kind)
        )
        place += width
    return _svg(720, 18, *rects, label=", ".join(f"{name} {share:.1%}" for name, share, _ in parts))


CHART_WIDTH, CHART_HEIGHT = 980.0, 130.0
AXIS = 18.0  # for the numbers below


def histogram_chart(drawn: Histogram, thresholds: Sequence[float]) -> Html:
    """Bars of kept and refused documents, stacked, with a line at each threshold.

    Heights are square roots of the counts: a rule that refuses one in a thousand is still seen to refuse.
    """
    tallest = max((bar.kept + bar.refused for bar in drawn.bars), default=0) or 1
    height, step = CHART_HEIGHT - AXIS, CHART_WIDTH / max(1, len(drawn.bars))
    rects: list[Html | None] = []
    for at, bar in enumerate(drawn.bars):
        whole = height * ((bar.kept + bar.refused) / tallest) ** 0.5
        refused = whole * bar.refused / ((bar.kept + bar.refused) or 1)
        place = {"x": at * step + 0.5, "width": step - 1}
        rects.append(
            tag("rect", **place, y=height - whole, height=whole - refused, class_="kept") if bar.kept else None
        )
        rects.append(tag("rect", **place, y=height - refused, height=refused, class_="gone") if bar.refused else None)
    axis = tag("line", x1=0, x2=CHART_WIDTH, y1=height, y2=height, class_="axis")
    marks = (_mark(drawn, threshold, height) for threshold in thresholds)
    label = f"Documents by value, from {shown(drawn.bars[0].low)} to {shown(drawn.bars[-1].high)}" if drawn.bars else ""
    return _svg(CHART_WIDTH, CHART_HEIGHT, *rects, axis, *_ticks(drawn, height), *marks, label=label)


def _place(drawn: Histogram, value: float) -> float | None:
    """Where a value is on the axis; None if it is not on it."""
    low, high = drawn.bars[0].low, drawn.bars[-1].high
    if not low <= value <= high or high <= low:
        return None
    if drawn.logarithmic:
        return CHART_WIDTH * math.log(value / low) / math.log(high / low)
    return CHART_WIDTH * (value - low) / (high - low)


def _mark(drawn: Histogram, threshold: float, height: float) -> Html | None:
    place = _place(drawn, threshold) if drawn.bars else None
    return None if place is None else tag("line", x1=place, x2=place, y1=0, y2=height, class_="limit")


def _ticks(drawn: Histogram, height: float) -> list[Html]:
    """Values below the axis: its ends, and three between them."""
    chosen = [drawn.bars[at * (len(drawn.bars) - 1) // 4] for at in range(5)] if drawn.bars else []
    anchors = ["start", "middle", "middle", "middle", "end"]
    made = []
    for at, (bar, anchor) in enumerate(zip(chosen, anchors, strict=False)):
        value = bar.high if at == 4 else bar.low
        place = _place(drawn, value)
        made.append(tag("text", shown(value), x=place or 0, y=height + 13, text_anchor=anchor))
    return made


def split_bar(kept: float, whole: float, width: float = 160.0) -> Html:
    """The kept and the lost part of a whole."""
    part = width * kept / whole if whole else 0.0
    return _svg(
        width,
        BAR_HEIGHT,
        tag("rect", x=0, y=3, width=width, height=8, class_="gone" if whole else "rest"),
        tag("rect", x=0, y=3, width=part, height=8, class_="kept"),
        label=f"{kept:,.0f} kept of {whole:,.0f}",
    )


CURVE_HEIGHT = 110.0


def curve_chart(seconds: Sequence[float], values: Sequence[float | None], label: str) -> Html:
    """A line over time from zero to its greatest value, broken where nothing is known."""
    known = [value for value in values if value is not None]
    most, long = max(known, default=0.0) or 1.0, (seconds[-1] if seconds else 0.0) or 1.0
    pieces: list[list[str]] = [[]]
    for at, value in zip(seconds, values, strict=True):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{CHART_WIDTH * at / long:.1f},{(CURVE_HEIGHT - 2) * (1 - value / most) + 1:.1f}")
    lines = (tag("polyline", points=" ".join(piece), class_="curve") for piece in pieces if len(piece) > 1)
    axis = tag("line", x1=0, x2=CHART_WIDTH, y1=CURVE_HEIGHT, y2=CURVE_HEIGHT, class_="axis")
    return _svg(CHART_WIDTH, CURVE_HEIGHT + 1, *lines, axis, label=label)


def _svg(width: float, height: float, *children: Html | None, label: str) -> Html:
    box = f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", *children, viewBox=box, width=width, height=height, role="img", aria_label=label)
