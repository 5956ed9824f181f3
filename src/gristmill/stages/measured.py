"""What a stage tells its context about documents it has judged: values, which were kept, and how to show one.

A stage says `context.measure(...)` and `context.drop(...)`; stages that judge texts do so for every filter and rule.
The worker counts all of a call at once and keeps a few examples (`worker/observer.py`). Nothing is counted here, and
nothing is read from a batch before somebody asks for it.
"""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from gristmill.metrics.observations import EXCERPT_CHARS
from gristmill.secrets import without_url_secrets
from gristmill.tasks.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXCERPT_BYTES = 4 * EXCERPT_CHARS  # in which so many characters are, whatever they are
_KEY_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15
_64_BITS = (1 << 64) - 1


class About(NamedTuple):
    """Which measure it is; see `MeasureTally` for the fields."""

    name: str
    measure: str = "score"
    low: float | None = None
    high: float | None = None
    condition: str | None = None
    decides: bool = True
    amount: str | None = None
    position: int = 0


class Document(NamedTuple):
    """What is kept of a document that is an example."""

    key: int
    id: str
    source: str
    place: str
    text: str


class Shown(Protocol):
    """Documents of which some may become examples."""

    @property
    def batch(self) -> "Batch[Any]":
        """The batch they are in, row by row."""
        ...

    def keys(self, *, compiled: bool) -> "NDArray[np.uint64]":
        """Return a number for each that decides which of them are examples; the same wherever it is processed."""
        ...

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Return some of them as examples."""
        ...


class Measured(NamedTuple):
    """The values of some documents, and which of them were kept; all if that is None."""

    about: About
    values: Any  # numbers of numpy or Arrow, or a list of them
    kept: "NDArray[np.bool_] | None"
    rows: "NDArray[np.int64] | None"  # which documents; all in their order if None
    of: "Shown | Batch[Any] | None"

    @property
    def task_id(self) -> str:
        return _task_id(self.of)


class Gone(NamedTuple):
    """Documents that were dropped for one reason."""

    reason: str
    rows: Any  # numbers of rows
    values: Any  # of these documents; None if nothing was measured
    of: "Shown | Batch[Any]"

    @property
    def task_id(self) -> str:
        return _task_id(self.of)


def _task_id(of: "Shown | Batch[Any] | None") -> str:
    if of is None:
        return ""
    return of.task_id if isinstance(of, Batch) else of.batch.task_id


def text_key(text: bytes) -> int:
    """A number for a text, as the kernel `text_keys` gives it."""
    if len(text) >= 8:
        first, last = int.from_bytes(text[:8], "little"), int.from_bytes(text[-8:], "little")
    else:
        first, last = int.from_bytes(text, "big"), 0
    return _mixed(_mixed(first + len(text) * _KEY_FACTORS[2]) + last)


def _mixed(value: int) -> int:
    value &= _64_BITS
    value = ((value ^ (value >> 30)) * _KEY_FACTORS[0]) & _64_BITS
    value = ((value ^ (value >> 27)) * _KEY_FACTORS[1]) & _64_BITS
    return value ^ (value >> 31)


def shown_source(batch: "Batch[Any]") -> str:
    """The files a batch came from, without what is secret in their names."""
    return shown_text(without_url_secrets(", ".join(batch.sources())))


def shown_text(text: str) -> str:
    """A text that every reader can have: cut, and without halves of characters."""
    cut = text[:EXCERPT_CHARS]
    return cut if cut.isascii() else cut.encode("utf-8", "backslashreplace").decode()[:EXCERPT_CHARS]


class _Line(msgspec.Struct):
    id: Any = None
    text: Any = None


class _Id(msgspec.Struct):
    id: Any = None


_lines, _ids = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Id)


def id_of_line(line: bytes | memoryview) -> str:
    """The id that a JSON line has, to be shown; empty if it has none."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _ids.decode(line).id
        return "" if found is None else shown_text(str(found))
    return ""


def of_line(line: bytes | memoryview) -> tuple[str, str]:
    """The id and the text that a JSON line has, to be shown; empty where it has none."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _lines.decode(line)
        name, text = ("" if value is None else shown_text(str(value)) for value in (found.id, found.text))
        return name, text
    return "", ""
