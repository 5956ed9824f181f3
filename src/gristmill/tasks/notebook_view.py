"""Tables for notebooks: plain HTML without script, in which no text of a document can become markup."""

import re
from collections.abc import Iterable, Sequence

MOST_ROWS, MOST_COLUMNS, MOST_CHARS = 10, 20, 120
# Controls, halves of characters, and everything that reverses the direction of writing.
_UNSHOWABLE = (  # not compiled before something is shown: every run loads this module
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\uffff]"
)


def escaped(content: object, most: int = MOST_CHARS) -> str:
    """A text as it may stand in HTML, or its beginning; what is invisible is shown as a blank or a mark.

    >>> escaped("<b>a</b>")
    '&lt;b&gt;a&lt;/b&gt;'
    """
    import html  # all the names of characters, 2 ms; every run loads this module, few show anything

    said = content if isinstance(content, str) else repr(content)
    cut = said if len(said) <= most else f"{said[:most]}…"
    return html.escape(re.sub(_UNSHOWABLE, _mark, cut))


def _mark(found: re.Match[str]) -> str:
    return " " if found[0] in "\n\r\t" else "\N{REPLACEMENT CHARACTER}"


def table_html(heading: str, columns: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """A table with a line above and, if there is more to say, one below."""
    head = "".join(f"<th>{escaped(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    note = f"<p>{escaped(below)}</p>" if below else ""
    return f"<p><b>{escaped(heading)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"
