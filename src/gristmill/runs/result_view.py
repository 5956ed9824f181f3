"""A result in a notebook: the books in a line, and a funnel of what each stage dropped. No script, no widgets."""

from collections.abc import Mapping
from typing import Protocol

from gristmill.metrics.amounts import duration, share
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks.notebook_view import escaped

WIDTH, ROW, BAR, LABEL = 720, 24, 16, 220
MOST_STAGES = 60


class Shown(Protocol):
    """What is shown of a result."""

    counts: dict[str, StageCounts]
    wall_s: float

    @property
    def read(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def dropped_total(self) -> int: ...
    @property
    def quarantined(self) -> int: ...


class ShownInNotebooks:
    """Gives a result `_repr_html_`, which notebooks ask for."""

    def _repr_html_(self: Shown) -> str:
        books = (
            f"read {self.read:,}, written {self.written:,}, dropped {self.dropped_total:,} "
            f"({share(self.dropped_total, self.read)}), quarantined {self.quarantined:,}, in {duration(self.wall_s)}"
        )
        return f"<p>{escaped(books, 500)}</p>{funnel_svg(self.counts)}"


def funnel_svg(counts: Mapping[str, StageCounts]) -> str:
    """What came into every stage as a bar, and of it what was dropped or failed there."""
    stages = list(counts.items())[:MOST_STAGES]
    most = max((_came(count) for _, count in stages), default=0) or 1
    scale = (WIDTH - LABEL - 120) / most
    rows = []
    for number, (name, count) in enumerate(stages):
        top, came, lost = number * ROW, _came(count), count.dropped_total + count.quarantined
        middle = top + BAR - 3
        kept = max(0, came - lost)
        reasons = (
            ", ".join(f"{reason} {number:,}" for reason, number in sorted(count.dropped.items())) or "nothing dropped"
        )
        rows.append(
            f"<g><title>{escaped(f'{name}: {reasons}', 500)}</title>"
            f'<text x="0" y="{middle}" font-size="12">{escaped(name, 32)}</text>'
            f'<rect x="{LABEL}" y="{top}" width="{kept * scale:.1f}" height="{BAR}" fill="#4878a8"/>'
            f'<rect x="{LABEL + kept * scale:.1f}" y="{top}" width="{lost * scale:.1f}" height="{BAR}" fill="#d08040"/>'
            f'<text x="{LABEL + came * scale + 6:.1f}" y="{middle}" font-size="12">'
            f"{kept:,}{f' (−{lost:,})' if lost else ''}</text></g>"
        )
    height = max(1, len(rows)) * ROW
    label = escaped("documents kept and dropped by stage")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{label}" font-family="sans-serif" fill="currentColor">{"".join(rows)}</svg>'
    )


def _came(count: StageCounts) -> int:
    return count.documents_in or count.read
