"""`Explanation`: the story of one document in one run, as data, as JSON and as lines for a terminal."""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import msgspec

SHOWN_CHARS = 200  # of a text
SHOWN_CHANGES = 12  # of one text


class Checked(msgspec.Struct, frozen=True):
    """One rule on one document. `distance` is how far the value is from the nearest bound: below 0 it is outside."""

    rule: str
    value: object
    threshold: str | None
    distance: float | None
    keeps: bool


class Change(msgspec.Struct, frozen=True):
    """Words of a column that a stage has taken out and put in, and how many others it left."""

    column: str
    removed: str
    added: str


class Passage(msgspec.Struct, frozen=True):
    """What one stage made of the document, or of one of those it was split into.

    | outcome     |                                                                  |
    |-------------|------------------------------------------------------------------|
    | kept        | it went on                                                       |
    | dropped     | it went no further, for `reason`                                 |
    | quarantined | the stage failed on it                                           |
    | split       | several documents went on in its place                           |
    | not run     | the stage was not run again; `note` says why                     |

    `already_gone`: a stage before had dropped it, and this says what would have come of it.
    """

    stage: str
    outcome: str
    document: str = ""  # which, if there are several
    reason: str = ""
    note: str = ""
    already_gone: bool = False
    checks: tuple[Checked, ...] = ()
    changes: tuple[Change, ...] = ()
    columns: Mapping[str, object] = {}  # added, with their values


class Place(msgspec.Struct, frozen=True):
    """Where something about the document is written down: output, reject, quarantine or source."""

    kind: str
    path: str
    line: int | None = None
    row: int | None = None
    details: Mapping[str, object] = {}

    @property
    def shown(self) -> str:
        """Path and line."""
        if self.line is not None:
            return f"{self.path}:{self.line}"
        return self.path if self.row is None else f"{self.path}, row {self.row}"


class Duplicate(msgspec.Struct, frozen=True):
    """The document it lost to, in a deduplication."""

    kept_id: str
    similarity: float
    source: str
    kept_source: str


class Explanation(msgspec.Struct, frozen=True):
    """What became of a document and why. Print it, or ask `to_json`."""

    document_id: str
    run_dir: str
    verdict: str
    source: Place | None = None
    partition: str = ""
    passages: tuple[Passage, ...] = ()
    places: tuple[Place, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    disagreements: tuple[str, ...] = ()  # of the re-run with the books, or with itself
    remarks: tuple[str, ...] = ()
    history: tuple[str, ...] = ()  # of the task it was in

    def to_json(self) -> dict[str, object]:
        """All of it as plain data."""
        return dict(msgspec.to_builtins(self, enc_hook=str))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """For a terminal: what is from documents has its control characters escaped."""
        yield printable(f"{self.document_id}: {self.verdict}")
        if self.source is not None:
            partition = f" (partition {self.partition})" if self.partition else ""
            yield printable(f"  source      {self.source.shown}{partition}")
        for place in self.places:
            yield printable(f"  {place.kind:<11} {place.shown}{_details(place.details)}")
        for lost in self.duplicates:
            yield printable(f"  lost to     {lost.kept_id} ({lost.similarity:.3f} alike), in {lost.kept_source}")
        for passage in self.passages:
            yield ""
            yield from _passage_lines(passage)
        if self.history:
            yield ""
            yield "Its task:"
            yield from (printable(f"  {sentence}") for sentence in self.history)
        if self.disagreements:
            yield ""
            yield "The re-run and the books DISAGREE:"
            yield from (printable(f"  {sentence}") for sentence in self.disagreements)
        yield from (printable(remark) for remark in ("", *self.remarks) if self.remarks)


def _details(details: Mapping[str, object]) -> str:
    return "".join(f"; {name}: {shortened(str(value), 300)}" for name, value in details.items())


def _passage_lines(passage: Passage) -> Iterator[str]:
    of = f" [{passage.document}]" if passage.document else ""
    would = " (had it come so far)" if passage.already_gone else ""
    why = f": {passage.reason}" if passage.reason else ""
    yield printable(f"{passage.stage}{of}: {passage.outcome}{why}{would}")
    width = max((len(check.rule) for check in passage.checks), default=0)
    for check in passage.checks:
        mark = "ok  " if check.keeps else "FAIL"
        bound = f"   {check.threshold}" if check.threshold else ""
        away = "" if check.distance is None else f"   ({_away(check.distance)})"
        yield printable(f"  {mark} {check.rule:<{width}}  {number(check.value)}{bound}{away}")
    for change in passage.changes:
        if change.removed:
            yield printable(f'  - {change.column}: "{change.removed}"')
        if change.added:
            yield printable(f'  + {change.column}: "{change.added}"')
    for name, value in passage.columns.items():
        yield printable(f"  {name} = {shortened(number(value), SHOWN_CHARS)}")
    if passage.note:
        yield printable(f"  {passage.note}")


def _away(distance: float) -> str:
    if distance == 0:
        return "exactly on the bound"
    return f"{abs(distance):.6g} {'inside' if distance > 0 else 'outside'}"


def number(value: object) -> str:
    """A value as people write it."""
    return f"{value:.6g}" if isinstance(value, float) and not math.isnan(value) else str(value)


def shortened(text: str, most: int = SHOWN_CHARS) -> str:
    """The beginning of a text, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def printable(text: str) -> str:
    r"""The same with characters escaped that would move the cursor, change colours or reverse the line.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if not _is_hidden(c) else ascii(c)[1:-1] for c in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def changes_between(column: str, before: str, after: str) -> list[Change]:
    """The difference of two texts in words: what was removed and what is in its place, in order."""
    import difflib

    old, new = _words(before), _words(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 2_000)
    found = [
        Change(column, shortened("".join(old[a:b])), shortened("".join(new[c:d])))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]
    if len(found) > SHOWN_CHANGES:
        left = f"… and {len(found) - SHOWN_CHANGES} more changes"
        return [*found[:SHOWN_CHANGES], Change(column, "", left)]
    return found


def _words(text: str) -> Sequence[str]:
    """The text in words and what is between them, so that joined they are the text."""
    import re

    return re.findall(r"\S+|\s+", text)
