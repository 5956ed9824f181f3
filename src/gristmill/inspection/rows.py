"""What a page is made of: rows, where they are, and what is damaged among them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gristmill.inspection.columns import Kind, Values
from gristmill.inspection.wanted import Wanted


class Place(NamedTuple):
    """Where a row begins: the number of its file, and there the byte (JSON lines) or the row (Parquet), from 0."""

    file: int
    offset: int


class Count(NamedTuple):
    """A number of rows, or the number of a row. While rows are still being counted it is an estimate."""

    rows: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.rows:,}" if self.is_exact else f"≈{self.rows:,}"


@dataclass(frozen=True)
class Row:
    """A row as it was read, or what is there instead: then `damage` says why, and `values` is empty.

    `offset` and `end` are where the row begins in its file and where the next one does.
    """

    offset: int
    end: int
    values: Values = field(default_factory=dict)
    damage: str = ""
    raw: str = ""  # of damaged lines: the beginning of what is there


@dataclass
class Found:
    """What a stretch of a file held: the wanted rows, how much was looked at, and what could not be judged."""

    rows: Sequence[Row] = ()
    num_read: int = 0
    num_damaged: int = 0
    num_of_other_kind: int = 0  # values that were not of their column's kind, and so were null to the condition
    end: int = 0


class DataFile(Protocol):
    """One file of a dataset. Offsets are bytes or rows; only the file itself knows which."""

    path: str

    @property
    def size(self) -> int: ...  # one more than the last offset
    @property
    def is_streamed(self) -> bool: ...  # going back means reading from the beginning
    def kinds(self) -> dict[str, Kind]: ...
    def read(self, offset: int, count: int) -> list[Row]: ...
    def back(self, offset: int, count: int) -> tuple[int, int]: ...
    def at_row(self, number: int) -> int: ...
    def row_at(self, offset: int) -> Count: ...
    def num_rows(self) -> Count: ...
    def matches(self, offset: int, wanted: Wanted) -> Iterator[Found]: ...
    def near(self, share: float) -> int: ...
    def place_name(self, offset: int) -> str: ...
    def close(self) -> None: ...
