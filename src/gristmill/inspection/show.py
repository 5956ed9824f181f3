"""Values as text for a screen: short in a table, whole below it; bars for histograms; what changed between two rows.

Everything is safe to print (see `safe_text`), except for what `as_text` returns.
"""

import difflib
import json
from collections.abc import Iterator

from gristmill.inspection.columns import Values
from gristmill.inspection.labels import as_json
from gristmill.inspection.safe_text import printable, shortened
from gristmill.inspection.statistics import Histogram

_BRIEF_CHARS = 400
_WHOLE_CHARS = 200_000
_BAR_CHARS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MOST_WORDS = 2_000  # compared word by word: the time grows with their square
_AROUND = 5  # words shown around a change


def brief(value: object) -> str:
    """A value on one line."""
    return printable(shortened(as_text(value), _BRIEF_CHARS))


def whole(value: object) -> str:
    """A value with its lines; of a very long one the beginning, and how much more there is."""
    text = as_text(value, indent=2)
    more = f"\n… ({len(text):,} characters)" if len(text) > _WHOLE_CHARS else ""
    return printable(text[:_WHOLE_CHARS], lines=True) + more


def as_text(value: object, indent: int | None = None) -> str:
    """A value as text, not made safe: for what escapes by itself."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, bytes):
        return f"{len(value):,} bytes: {value[:64].hex(' ')}"
    if isinstance(value, list | dict):
        return json.dumps(as_json(value), ensure_ascii=False, indent=indent)
    return str(value)


def number(value: float) -> str:
    """A number as a person would write it."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.3f}" if 0.01 <= abs(value) < 1e6 else f"{value:.3g}"


def bars(histogram: Histogram) -> str:
    """A line per bin: its lower edge, a bar, its count."""
    greatest = max(histogram.counts)
    edges = [number(edge) for edge in histogram.edges]
    width = max(map(len, edges))
    lines = []
    for edge, count in zip(edges, histogram.counts, strict=False):
        full, part = divmod(round(count / greatest * _BAR_CHARS * 8), 8)
        bar = "█" * full + (_EIGHTHS[part] if part else "")
        if count and not bar:
            bar = _EIGHTHS[1]
        lines.append(f"  {edge:>{width}} {bar:{_BAR_CHARS}} {count:,}")
    return "\n".join(lines)


def changes(here: Values, there: Values) -> Iterator[str]:
    """Yield a line for each column that differs."""
    for name in dict.fromkeys([*here, *there]):
        one, other = here.get(name), there.get(name)
        if as_json(one) == as_json(other):
            continue
        if isinstance(one, str) and isinstance(other, str):
            yield from (f"{brief(name)}: {line}" for line in _words_changed(one, other))
        else:
            yield f"{brief(name)}: {brief(one)} → {brief(other)}"


def _words_changed(here: str, there: str) -> Iterator[str]:
    one, other = here.split(" "), there.split(" ")
    if len(one) > _MOST_WORDS or len(other) > _MOST_WORDS:
        same = next(
            (i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there))
        )
        yield f"differs from character {same + 1:,} on ({len(here):,} and {len(there):,} characters)"
        return
    for tag, i, j, k, m in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            before = " ".join(one[max(0, i - _AROUND) : i])
            yield f"…{brief(before)} [-{brief(' '.join(one[i:j]))}-] {{+{brief(' '.join(other[k:m]))}+}}"
