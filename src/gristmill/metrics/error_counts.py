"""`ErrorCounts`: what went wrong in a run, by stage and error, with one example of each.

A run may quarantine millions of documents for a handful of reasons. Errors that differ in numbers, quoted text or
addresses only ("line 17", "line 18") are one; of each, one example is kept with its place, traceback and document: the
first by source and line, so it does not matter which worker reports when. The number of examples is bounded.
"""

import re
from collections.abc import Iterable

import msgspec

MAX_KINDS = 20  # of each stage; what comes after them is counted by its exception alone, and then together
MAX_MESSAGE_CHARS = 500
MAX_KIND_CHARS = 120
MAX_TRACEBACK_CHARS = 4_000
MAX_DOCUMENT_CHARS = 10_000
OTHERS = "other errors"

_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*|'[^']*'|\"[^\"]*\"|`[^`]*`")


class ErrorExample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One document that failed. `line` counts from 1 in `source`; `document` is it, or the beginning of it."""

    document_id: str = ""
    source: str = ""
    line: int | None = None
    row: int | None = None
    task: str = ""
    traceback: str = ""
    document: str = ""

    @property
    def place(self) -> str:
        """Where to look, for a person: id, file and line as far as they are known."""
        where = f"line {self.line} of {self.source}" if self.source and self.line is not None else self.source
        return " in ".join(part for part in (f"document {self.document_id}" if self.document_id else "", where) if part)

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """The key by which one of two examples comes first, whoever reported it when."""
        line = -1 if self.line is None else self.line
        return self.source, line, -1 if self.row is None else self.row, self.task, self.document_id


class ErrorCount(msgspec.Struct):
    """One error of one stage: how many documents it cost, and how many parts of files that nobody could read."""

    stage: str
    kind: str  # the exception, or what a reader calls it
    message: str  # of the example
    count: int = 0
    lost_parts: int = 0
    lost_bytes: int = 0
    example: ErrorExample = msgspec.field(default_factory=ErrorExample)

    def to_json(self) -> dict[str, object]:
        """For the report of a run. The document stays where it is private: in quarantine, and in the result."""
        fields = msgspec.to_builtins(self)
        fields["example"].pop("document", None)
        return dict(fields)

    @property
    def error(self) -> str:
        """Exception and message in one line."""
        first_line = self.message.partition("\n")[0]
        return f"{self.kind}: {first_line}" if self.kind and first_line else self.kind or first_line


class ErrorCounts:
    """Counts errors. `add` what a worker reports, or what another has counted; ask for `commonest`."""

    def __init__(self, counted: Iterable[ErrorCount] = ()) -> None:
        self._by_stage: dict[str, dict[tuple[str, str], ErrorCount]] = {}
        for count in counted:
            self.add(count)

    def add(self, count: ErrorCount) -> None:
        """Add one error, or many of a kind."""
        kinds = self._by_stage.setdefault(count.stage, {})
        key = self._key(kinds, count)
        known = kinds.get(key)
        if known is None:
            kinds[key] = _cut(count, key)
            return
        known.count += count.count
        known.lost_parts += count.lost_parts
        known.lost_bytes += count.lost_bytes
        if count.example.order < known.example.order:
            newer = _cut(count, key)
            known.message, known.example = newer.message, newer.example

    def would_show(self, count: ErrorCount) -> bool:
        """Whether its example would be kept: what is long about it need not be known otherwise."""
        kinds = self._by_stage.get(count.stage, {})
        known = kinds.get(self._key(kinds, count))
        return known is None or count.example.order < known.example.order

    def merge(self, other: "ErrorCounts") -> None:
        """Add everything another has counted."""
        for count in other.all():
            self.add(count)

    def all(self) -> list[ErrorCount]:
        """Stages in the order they were met, the commonest error of each first."""
        return [
            count
            for kinds in self._by_stage.values()
            for count in sorted(kinds.values(), key=lambda c: (-c.count, -c.lost_parts, c.kind, c.message))
        ]

    def commonest(self, stage: str) -> list[ErrorCount]:
        """The errors of one stage, the commonest first."""
        return [count for count in self.all() if count.stage == stage]

    @staticmethod
    def _key(kinds: dict[tuple[str, str], ErrorCount], count: ErrorCount) -> tuple[str, str]:
        exact = count.kind, alike(count.message)
        if exact in kinds or len(kinds) < MAX_KINDS:
            return exact
        of_kind = count.kind, ""
        return of_kind if of_kind in kinds or len(kinds) < 2 * MAX_KINDS else (OTHERS, "")


def alike(message: str) -> str:
    """The message without what differs from one document to the next.

    >>> alike("line 17: expected 'text'; got 3.5")
    "line #: expected #; got #"
    """
    return _VARYING.sub("#", message[:MAX_MESSAGE_CHARS])


def error_kind(kind: str, error: str) -> str:
    """Return what the terminal calls errors like this one: short, and the same for all of them.

    >>> error_kind("ValueError", "ValueError: line 17: expected 'text'")
    "ValueError: line …: expected …"
    """
    message = _VARYING.sub("…", _without_kind(error[:MAX_MESSAGE_CHARS], kind).partition("\n")[0])
    return (f"{kind}: {message}" if kind and message else kind or message)[:MAX_KIND_CHARS]


def of_record(
    stage: str, kind: str, error: str, example: ErrorExample, *, num_documents: int = 1, lost_bytes: int = 0
) -> ErrorCount:
    """Return what a quarantine record counts as. One without a document is a part of a file that cannot be read."""
    lost = num_documents == 0
    return ErrorCount(stage, kind, _without_kind(error, kind), num_documents, int(lost), lost_bytes, example)


def _without_kind(error: str, kind: str) -> str:
    """Python writes `json.decoder.JSONDecodeError: Expecting value`; the exception is named already."""
    name, colon, message = error.partition(": ")
    return message if colon and name.rpartition(".")[2] == kind else error


def _cut(count: ErrorCount, key: tuple[str, str]) -> ErrorCount:
    example = count.example
    return ErrorCount(
        count.stage,
        key[0],
        count.message[:MAX_MESSAGE_CHARS] if key[0] != OTHERS else "",
        count.count,
        count.lost_parts,
        count.lost_bytes,
        msgspec.structs.replace(
            example,
            traceback=example.traceback[-MAX_TRACEBACK_CHARS:],  # its end says where it happened
            document=example.document[:MAX_DOCUMENT_CHARS],
        ),
    )
