"""What a stage tells its context about documents it has judged: values, which were kept, and how to show one.

A stage says `context.measure(...)` and `context.drop(...)`; stages that judge texts do so for every filter and rule.
The worker counts all of a call at once and keeps a few examples (`worker/observer.py`). Nothing is counted here, and
nothing is read from a batch before it is asked for.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from gristmill.metrics.observation_parts import PartDocuments, joined, shown_text
from gristmill.metrics.observations import EXCERPT_CHARS
from gristmill.secrets import without_url_secrets
from gristmill.tasks.batch import Batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEY_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15


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


class Excerpts(NamedTuple):
    """What is kept of documents that are examples: ids, and how their texts begin."""

    ids: Sequence[bytes]
    texts: Sequence[bytes]
    json_ids: bool = False  # whether ids are as JSON has them

    def packed(
        self, batch: "Batch[Any]", keys: "NDArray[np.uint64]", texts: tuple[bytes, bytes] | None = None
    ) -> PartDocuments:
        """The same in the form of a file; `texts` if the caller has them: all end to end, and where each ends."""
        source, names = shown_source(batch), joined(self.ids)
        shown = joined(self.texts) if texts is None else texts
        return PartDocuments(source, batch.task_id, keys.tobytes(), *names, *shown, self.json_ids)


class Shown(Protocol):
    """Documents of which some may become examples."""

    @property
    def batch(self) -> "Batch[Any]":
        """The batch they are in, row by row."""
        ...

    def texts(self) -> "tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None":
        """Return bytes, starts and stops of texts, where compiled code may make `text_keys` of them."""
        ...

    def keys(self) -> "NDArray[np.uint64]":
        """Return a number for each document that decides which are examples; the same wherever it is processed."""
        ...

    def excerpts(self, rows: "NDArray[np.int64]", *, with_texts: bool = True) -> Excerpts:
        """Return some of them as examples; without texts where compiled code has them from `texts`."""
        ...


class _KeptBefore:
    """In place of rows: those of the same batch that the measure noted before has kept. Saves handing them over."""


KEPT_BEFORE: Final = _KeptBefore()


class Measured(NamedTuple):
    """The values of some documents, and which of them were kept; all if that is None."""

    about: About
    values: Any  # numbers of numpy or Arrow, or a list of them
    kept: "NDArray[np.bool_] | None"
    rows: "NDArray[np.int64] | _KeptBefore | None"  # which documents; all in their order if None
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


def text_keys(
    data: "NDArray[np.uint8]", starts: "NDArray[np.int64]", stops: "NDArray[np.int64]"
) -> "NDArray[np.uint64]":
    """Return a number for every text, made from its first and last bytes and its length, as compiled code does."""
    import numpy as np

    lengths = stops - starts
    first, last = (np.zeros(len(starts), np.uint64) for _ in range(2))
    rows = np.flatnonzero(lengths >= 8)
    if len(rows):
        # The eight bytes from each place on, as a number: a view, since texts take as much memory as all of a batch.
        words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
        first[rows], last[rows] = words[starts[rows]], words[stops[rows] - 8]
    for row in np.flatnonzero(lengths < 8).tolist():
        first[row] = int.from_bytes(data[starts[row] : stops[row]].tobytes(), "big")
    return _mixed(_mixed(first + lengths.astype(np.uint64) * np.uint64(_KEY_FACTORS[2])) + last)


def _mixed(value: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    import numpy as np

    value = (value ^ (value >> np.uint64(30))) * np.uint64(_KEY_FACTORS[0])
    value = (value ^ (value >> np.uint64(27))) * np.uint64(_KEY_FACTORS[1])
    return value ^ (value >> np.uint64(31))


def shown_source(batch: "Batch[Any]") -> str:
    """The files a batch came from, without what is secret in their names."""
    return shown_text(without_url_secrets(", ".join(batch.sources())))


# At most EXCERPT_CHARS characters, each of them a byte and those that continue it: 10xxxxxx.
_BEGINNING = rb"[\x80-\xbf]*+(?:[^\x80-\xbf][\x80-\xbf]*+){0,%d}+" % EXCERPT_CHARS


def excerpt(text: bytes | memoryview) -> bytes:
    """How a text begins, as compiled code copies it: the first `EXCERPT_CHARS` characters."""
    start = bytes(text[: 4 * EXCERPT_CHARS])
    if start.isascii():
        return start[:EXCERPT_CHARS]
    found = re.match(_BEGINNING, start)
    return start if found is None else found.group()


class _Line(msgspec.Struct):
    id: Any = None
    text: Any = None


_lines = msgspec.json.Decoder(_Line)
_LEADING_ID = rb'\{"id": ?("[^"\\\x00-\x1f]{0,400}"|-?[0-9]{1,18})[,}]'
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # where a reader accepts what msgspec refuses


def ids_in_lines(data: bytes | memoryview, places: Iterable[tuple[int, int]]) -> list[bytes]:
    """The ids that JSON lines have, each data[start:stop], in JSON; empty where there is none.

    Where an id comes first, the rest of the line is not looked at.
    """
    match = re.compile(_LEADING_ID).match  # only when wanted: few processes need it
    return [
        found[1] if (found := match(data, start, stop)) is not None else _id_in_line(data[start:stop])
        for start, stop in places
    ]


def _id_in_line(line: bytes | memoryview) -> bytes:
    name, _ = of_line(line)
    return msgspec.json.encode(name) if name else b""


def of_line(line: bytes | memoryview) -> tuple[str, str]:
    """The id and the text that a JSON line has, to be shown; empty where it has none."""
    with contextlib.suppress(*_UNREADABLE):
        found = _lines.decode(line)
        name, text = ("" if value is None else shown_text(str(value)) for value in (found.id, found.text))
        return name, text
    return "", ""
