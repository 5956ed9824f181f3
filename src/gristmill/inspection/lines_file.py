"""A file of JSON lines, looked at by byte offsets: nothing is read but what is shown.

How many lines there are, and which number a line has, is an estimate from the mean length of lines until `LineCounts`
has been through the file. It knows the lines of each 4 MiB, so that any number is found by reading 4 MiB at most.
A line that is not a JSON object is shown as damage, and so is one too long to hold.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from gristmill.inspection.byte_access import open_bytes
from gristmill.inspection.columns import Kind, Values, column_of, kinds_of_rows, of_row
from gristmill.inspection.line_counts import BLOCK_BYTES, LineCounts
from gristmill.inspection.rows import Count, Found, Row
from gristmill.inspection.wanted import Wanted
from gristmill.tasks.text_columns import find_byte

_READ_BYTES = 1 << 18
_SCAN_BYTES = 1 << 20
_NEAR_BYTES = 32 << 20  # of a compressed file: a sample decompresses no more
_LONGEST_LINE = 8 << 20
_SHOWN_BYTES = 2_000  # of a damaged line
_SAMPLED_LINES = 200


class LinesFile:
    """JSON lines, plain or compressed."""

    def __init__(self, path: str, counts: LineCounts | None = None) -> None:
        self.path = path
        self._bytes = open_bytes(path)
        self._counts = counts or LineCounts()
        self._mean_bytes = 0.0
        self._numbered = (0, 0)  # an offset, and the lines before it

    @property
    def size(self) -> int:
        return self._bytes.size

    @property
    def is_streamed(self) -> bool:
        return self._bytes.is_streamed

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()

    def kinds(self) -> dict[str, Kind]:
        """The columns of some lines at the beginning, in the middle and near the end; compressed, at the beginning."""
        starts = [0] if self.is_streamed else [0, self.near(0.5), self.near(0.95)]
        return kinds_of_rows([row.values for start in starts for row in self.read(start, _SAMPLED_LINES)])

    def read(self, offset: int, count: int) -> list[Row]:
        """Return rows from the line that begins at `offset` on; blank lines are skipped."""
        rows: list[Row] = []
        for start, end, line in self._lines(offset):
            if len(rows) == count:
                return rows
            if line.strip():
                rows.append(_row(start, end, line))
        if self._bytes.damage and len(rows) < count:
            end = self._bytes.size
            rows.append(Row(end, end + 1, damage=self._bytes.damage))
        return rows

    def _lines(self, offset: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield where each line begins and where the next one does, and the line; of a very long one its beginning."""
        held = b""
        while True:
            piece = self._bytes.read(offset + len(held), _READ_BYTES)
            held += piece
            if not piece:
                if held:
                    yield offset, offset + len(held), held
                return
            begin = 0
            while (newline := held.find(b"\n", begin)) >= 0:
                yield offset + begin, offset + newline + 1, held[begin:newline]
                begin = newline + 1
            held, offset = held[begin:], offset + begin
            if len(held) > _LONGEST_LINE:
                end = self._after_newline(offset + len(held))
                yield offset, end, held[: _LONGEST_LINE + 1]
                held, offset = b"", end

    def _after_newline(self, position: int) -> int:
        """Where the line after the one at `position` begins, or the file ends."""
        while piece := self._bytes.read(position, _SCAN_BYTES):
            newline = piece.find(b"\n")
            if newline >= 0:
                return position + newline + 1
            position += len(piece)
        return position

    def back(self, offset: int, count: int) -> tuple[int, int]:
        """Where the line `count` lines earlier begins, blank ones not counted, and how many were missing."""
        found, step = min(offset, self.size), _READ_BYTES
        while count > 0 and found > 0:
            begin = max(0, found - step)
            first = self._line_start(begin)
            if first >= found:  # one line is longer than the step
                step *= 4
                continue
            starts = [start for start, _, line in self._between(first, found) if line.strip()]
            if len(starts) >= count:
                return starts[-count], 0
            count -= len(starts)
            found = first
        return found, count

    def _line_start(self, position: int) -> int:
        """The first line that begins at or after a position."""
        return 0 if position == 0 else self._after_newline(position - 1)

    def _between(self, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
        for line in self._lines(start):
            if line[0] >= end:
                return
            yield line

    def near(self, share: float) -> int:
        """A line about that far into the file; of a compressed one, about that far into its first 32 MiB."""
        if not self.is_streamed:
            return self._line_start(int(self.size * share))
        most = min(self._bytes.guessed_size, _NEAR_BYTES)
        found = self._line_start(int(most * share))
        # The size was a guess: at the end of the file it is known.
        return found if found < self.size else self._line_start(int(self.size * share))

    def row_at(self, offset: int) -> Count:
        """The number, from 1, of the line at an offset."""
        before = self._counts.before(offset)
        if before is not None:
            start = offset - offset % BLOCK_BYTES
            if start <= self._numbered[0] <= offset:  # the rows of a page are asked for one after another
                start, before = self._numbered
            self._numbered = offset, before + self._bytes.read(start, offset - start).count(b"\n")
            return Count(self._numbered[1] + 1, is_exact=True)
        counted, counted_bytes = self._counts.counted()
        return Count(counted + round((offset - counted_bytes) / self._mean()) + 1, is_exact=False)

    def at_row(self, number: int) -> int:
        """Where the line of a number, from 1, begins; about there, if it has not been counted so far."""
        line, total = max(0, number - 1), self._counts.total
        if total is not None:
            line = min(line, max(0, total - 1))
        start, before, is_known = self._counts.block_of(line)
        if is_known:
            return self._nth_line(start, line - before)
        guess = start + int((line - before) * self._mean())
        return self._line_start(min(guess, max(0, self.size - 1)))

    def _nth_line(self, start: int, count: int) -> int:
        """Where the line `count` lines after `start` begins."""
        position, left = start, count
        while left > 0:
            piece = self._bytes.read(position, BLOCK_BYTES)
            if not piece:
                return self.back(position, 1)[0]  # fewer lines than wanted: the last one
            newlines = find_byte(np.frombuffer(piece, np.uint8), ord("\n"))
            if len(newlines) >= left:
                return position + int(newlines[left - 1]) + 1
            left, position = left - len(newlines), position + len(piece)
        return position

    def num_rows(self) -> Count:
        """How many lines there are."""
        total = self._counts.total
        if total is not None:
            return Count(total, is_exact=True)
        counted, counted_bytes = self._counts.counted()
        return Count(counted + round(max(0, self.size - counted_bytes) / self._mean()), is_exact=False)

    def _mean(self) -> float:
        if not self._mean_bytes:
            start = self._bytes.read(0, _SCAN_BYTES)
            self._mean_bytes = len(start) / max(1, start.count(b"\n")) if start else 1.0
        return self._mean_bytes

    def place_name(self, offset: int) -> str:
        """The file and the line, for people."""
        number = self.row_at(offset)
        return f"{self.path}:{number.rows}" if number.is_exact else f"{self.path}: byte {offset:,}"

    def matches(self, offset: int, wanted: Wanted) -> Iterator[Found]:
        """Yield what each stretch of the file holds of the wanted rows."""
        forms = wanted.forms()
        while True:
            block, end = self._block(offset)
            if not block:
                break
            is_in = not forms or any(form in block for form in forms)
            if len(block) > _LONGEST_LINE:
                rows = [_row(offset, end, block)] if forms and is_in else []
                yield Found(rows, 1, 1, 0, end)
            elif is_in:
                yield self._judged(offset, block, wanted, forms)
            else:
                yield Found(num_read=block.count(b"\n") + (not block.endswith(b"\n")), end=end)
            offset = end
        if self._bytes.damage:
            yield Found((), 0, 1, 0, offset + 1)

    def _block(self, offset: int) -> tuple[bytes, int]:
        """Whole lines from an offset on, about 1 MiB, and where they end; of a very long line only the beginning."""
        block = self._bytes.read(offset, _SCAN_BYTES)
        end = block.rfind(b"\n")
        while end < 0 and len(block) <= _LONGEST_LINE:
            piece = self._bytes.read(offset + len(block), _SCAN_BYTES)
            if not piece:
                return block, offset + len(block)
            newline = piece.find(b"\n")
            end, block = (len(block) + newline if newline >= 0 else -1), block + piece
        if end < 0:
            return block[: _LONGEST_LINE + 1], self._after_newline(offset + len(block))
        return block[: end + 1], offset + end + 1

    def _judged(self, offset: int, block: bytes, wanted: Wanted, forms: Sequence[bytes]) -> Found:
        rows: list[Row] = []
        found = Found(end=offset + len(block))
        begin = 0
        for line in block.split(b"\n"):
            if line.strip():
                found.num_read += 1
                if not forms or any(form in line for form in forms):
                    rows.append(_row(offset + begin, offset + begin + len(line) + 1, line))
            begin += len(line) + 1
        found.num_damaged = sum(bool(row.damage) for row in rows)
        # A damaged line cannot be judged by a condition. That it holds a text is seen in its bytes.
        damaged = [row for row in rows if row.damage and forms and wanted.where is None]
        whole = [row for row in rows if not row.damage and wanted.is_in(row.values)]
        if wanted.where is not None and whole:
            table, found.num_of_other_kind = table_of([row.values for row in whole], wanted.where.kinds)
            mask = wanted.where.mask(table)
            whole = [row for row, holds in zip(whole, mask, strict=True) if holds]
        found.rows = sorted([*whole, *damaged], key=lambda row: row.offset)
        return found


def table_of(rows: Sequence[Values], kinds: Mapping[str, Kind]) -> tuple[pa.Table, int]:
    """Some columns of rows of JSON as a table, and how many values were not of their column's kind."""
    made = [column_of([of_row(row, name) for row in rows], kind) for name, kind in kinds.items()]
    if not made:  # a table without columns has no rows
        made, kinds = [(pa.nulls(len(rows)), 0)], {"": "unknown"}
    return pa.Table.from_arrays([column for column, _ in made], names=list(kinds)), sum(others for _, others in made)


def _row(start: int, end: int, line: bytes) -> Row:
    if len(line) > _LONGEST_LINE:
        return Row(start, end, damage=f"a line of {end - start:,} bytes, too long to show", raw=_beginning(line))
    try:
        values = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf") if not start else line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Row(start, end, damage=f"not JSON: {error}", raw=_beginning(line))
    if not isinstance(values, dict):
        return Row(start, end, damage=f"expected a JSON object; got {type(values).__name__}", raw=_beginning(line))
    return Row(start, end, values)


def _beginning(line: bytes) -> str:
    return line[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
