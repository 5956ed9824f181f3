"""Drawings as SVG, made in Python: nothing runs in the reader's browser, and the same numbers give the same bytes."""

from collections.abc import Sequence

from gristmill.dashboard.markup import Html, tag

WIDTH = 340.0  # of a bar in a table; the browser makes it fit
BAR_HEIGHT = 14.0
LEAST = 0.8  # of what is not nothing: it must be seen


def waterfall(left: float, gone: float, before: float, whole: float, kind: str = "gone") -> Html:
    """A row of a funnel: what is left, what went here, and what had gone before."""
    unit = WIDTH / whole if whole else 0.0
    kept, lost = left * unit, gone * unit
    if gone and lost < LEAST:
        lost = LEAST
    del before  # the rest of the width
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


def _svg(width: float, height: float, *children: Html | None, label: str) -> Html:
    box = f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", *children, viewBox=box, width=width, height=height, role="img", aria_label=label)
