"""`tag`: HTML whose text cannot become markup. Strings are escaped; only what `tag` has made is taken as it is.

Documents may hold anything: tags, control characters, characters that reverse the direction of writing. What would
be invisible, or would change how its surroundings read, is shown as its number.
"""

import html
import re

_NAMES = {"class_": "class", "for_": "for"}
_EMPTY = frozenset(("meta", "br", "hr", "rect", "line", "path", "circle", "polyline"))
# Controls but tab and line feed, halves of characters, and everything that reverses the direction of writing.
_UNSHOWABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\uffff]"
)


class Html(str):
    """Markup that `tag` has made."""

    __slots__ = ()


Child = Html | str | int | None


def text(content: str, most: int | None = None) -> Html:
    """Return a text, or its beginning, escaped."""
    shown = content if most is None or len(content) <= most else f"{content[:most]}…"
    return Html(html.escape(_UNSHOWABLE.sub(_numbered, shown)))


def _numbered(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """Return an element. An attribute that is None is left out; `class_` is `class`, and `_` in others is `-`."""
    said = "".join(
        f' {_NAMES.get(key, key.replace("_", "-"))}="{text(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Html(f"<{name}{said}>" if name in ("meta", "br", "hr") else f"<{name}{said}/>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Html:
    """Return several one after another."""
    return Html(
        "".join(child if isinstance(child, Html) else text(str(child)) for child in children if child is not None)
    )


def _number(value: str | float) -> str:
    """Numbers in drawings are rounded to 0.1 pixel: the file stays small, and the same everywhere."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def table(head: list[Child], rows: list[list[Child]], *, numbers: int = 1, class_: str | None = None) -> Html:
    """Return a table; columns from number `numbers` on are numbers, set to the right."""

    def cells(kind: str, row: list[Child]) -> Html:
        return joined(*(tag(kind, cell, class_="n" if at >= numbers else None) for at, cell in enumerate(row)))

    body = (tag("tr", cells("td", row)) for row in rows)
    return tag("table", tag("thead", tag("tr", cells("th", head))), tag("tbody", *body), class_=class_)
