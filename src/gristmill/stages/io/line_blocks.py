"""Bytes to lines: where lines begin and end, and which part of a file owns them.

A line belongs to the byte range its first byte is in, so ranges can be read independently and every line is read once,
wherever the cuts are. A block is bytes that begin at a line's first byte and end with a newline. A line longer than
is wanted in memory is counted and passed over, never held whole: a `LongLine` stands in its place.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import DamagedFile
from gristmill.secrets import without_url_secrets
from gristmill.stages.context import Completer, Entry, Quarantined, StageContext
from gristmill.storage.open_read import InputFile
from gristmill.tasks.text_columns import find_byte

_NEWLINE = ord("\n")
_TAIL_BYTES = 1 << 16
_SKIP_BYTES = 1 << 20
_SHOWN_BYTES = 1000  # of a line that is too long
Block: TypeAlias = "bytes | pa.Buffer"
BOM = b"\xef\xbb\xbf"


class LongLine(NamedTuple):
    """A line that is too long to be read: where it begins, how long it is, and its first bytes."""

    position: int
    num_bytes: int
    beginning: bytes


class OwnedLines(NamedTuple):
    """What a byte range of a file owns: its lines, where the first begins, and the last one if that is too long."""

    block: Block
    position: int
    long_line: LongLine | None = None


def line_bounds(block: Block) -> NDArray[np.int64]:
    """Return where each line begins, and where the last one ends; every line ends with a newline."""
    found = find_byte(np.frombuffer(block, np.uint8), ord("\n"))
    bounds = np.zeros(len(found) + 1, np.int64)
    np.add(found, 1, out=bounds[1:])
    return bounds


def read_owned_lines(file: InputFile, start: int, end: int, max_line_bytes: int | None = None) -> OwnedLines:
    """Return the lines whose first byte is in [start, end), as one block; a last line without newline gets one."""
    # One byte before the range tells whether a line begins exactly at its start.
    begin = max(start - 1, 0)
    # Most last lines end in the spare room, so the block is neither moved nor copied.
    buffer = file.read_range(begin, end + _TAIL_BYTES)
    view = memoryview(buffer)
    first = _after_newline(view, 0) if start else 0
    if first is None or first >= end - begin:
        return OwnedLines(buffer.slice(0, 0), start)
    if len(view) <= end - begin and view and view[-1] == _NEWLINE:
        return OwnedLines(buffer.slice(first), begin + first)
    last = _after_newline(view, min(end - begin, len(view)) - 1) if len(view) > first else first
    if last is not None:
        return OwnedLines(buffer.slice(first, last - first), begin + first)
    return _with_rest_of_line(file, buffer, begin, first, max_line_bytes)


def _after_newline(view: memoryview, position: int) -> int | None:
    """Where the line after the next newline begins."""
    step = _TAIL_BYTES
    while position < len(view):
        found = bytes(view[position : position + step]).find(b"\n")
        if found >= 0:
            return position + found + 1
        position += step
    return None


def _with_rest_of_line(
    file: InputFile, buffer: pa.Buffer, begin: int, first: int, max_line_bytes: int | None
) -> OwnedLines:
    """The lines of a buffer, from `first` on, whose last one continues beyond it."""
    view = memoryview(buffer).cast("B")
    line = max(first, _after_last_newline(view, len(view)))  # where the last line begins
    read_to = begin + len(view)
    line_end, has_newline = _end_of_line(file, read_to)
    num_bytes = line_end - (begin + line)
    if max_line_bytes is not None and num_bytes > max_line_bytes:
        long_line = LongLine(begin + line, num_bytes, bytes(view[line : line + _SHOWN_BYTES]))
        return OwnedLines(buffer.slice(first, line - first), begin + first, long_line)
    # The end is known, so this is allocated once and what follows is read into its place: the line may be gigabytes.
    head = len(view) - first
    whole = pa.allocate_buffer(head + line_end - read_to + (not has_newline))
    target = memoryview(whole).cast("B")
    target[:head] = view[first:]
    file.read_into(target[head : head + line_end - read_to], read_to)
    if not has_newline:
        target[-1] = _NEWLINE
    return OwnedLines(whole, begin + first)


def _end_of_line(file: InputFile, position: int) -> tuple[int, bool]:
    """Where the line that continues at `position` ends, its newline included, and whether it has one."""
    step = _TAIL_BYTES
    while position < file.size:
        piece = memoryview(file.read_range(position, position + step))
        found = bytes(piece).find(b"\n") + 1
        if found:
            return position + found, True
        position += len(piece)
        step = min(step * 2, _SKIP_BYTES)
    return position, False


def stream_blocks(
    pieces: Iterable[bytes], block_bytes: int, max_line_bytes: int | None = None
) -> Iterator["Block | LongLine"]:
    """Yield blocks of at most one size, unless a line is longer, from content that is read from its beginning.

    Lines of more than `max_line_bytes` may be passed over (see `LongLine`): those that grow beyond a block are. If the
    pieces end in `DamagedFile`, the whole lines before the damage are yielded first.
    """
    block = _GrowingBlock(block_bytes, max_line_bytes)
    try:
        for piece in pieces:
            for part in (piece[i : i + block_bytes] for i in range(0, len(piece), block_bytes)):
                if block.is_full(part):
                    yield from block.take_lines()
                yield from block.append(part)
    except DamagedFile as damage:
        yield from block.take_rest() if damage.is_complete else block.take_lines()
        raise
    yield from block.take_rest()


def long_lines_apart(block: Block, max_line_bytes: int) -> Iterator[tuple[int, "Block | LongLine"]]:
    """Yield the lines that are too long and the blocks between them, each with its offset in the block."""
    bounds = line_bounds(block)
    done = 0
    for i in np.flatnonzero(np.diff(bounds) > max_line_bytes).tolist():
        start, end = int(bounds[i]), int(bounds[i + 1])
        if start > done:
            yield done, block[done:start]
        yield start, LongLine(start, end - start, bytes(memoryview(block)[start : start + _SHOWN_BYTES]))
        done = end
    if done < len(block):
        yield done, block[done:]


class _GrowingBlock:
    """A block being filled. What is taken from it is never written to again."""

    def __init__(self, block_bytes: int, max_line_bytes: int | None) -> None:
        self._block_bytes = block_bytes
        self._most = None if max_line_bytes is None else max(max_line_bytes, block_bytes)
        self._position = 0  # in the content, of the block's first byte
        self._skipped: LongLine | None = None  # being passed over
        self._renew(b"", block_bytes)

    def _renew(self, content: bytes | memoryview, room: int) -> None:
        self._buffer = pa.allocate_buffer(room)
        self.view = memoryview(self._buffer).cast("B")
        self.view[: len(content)] = content
        self.used = len(content)
        self._searched = 0  # no newline before this

    def is_full(self, part: bytes) -> bool:
        return self.used + len(part) > self._block_bytes

    def append(self, part: bytes) -> Iterator[LongLine]:
        if self._skipped is not None:
            cut = part.find(b"\n") + 1 or len(part)
            self._skipped = self._skipped._replace(num_bytes=self._skipped.num_bytes + cut)
            if part[cut - 1] != _NEWLINE:
                return
            yield self._take_skipped()
            part = part[cut:]
        end = self.used + len(part)
        if end > len(self.view):
            searched = self._searched
            self._renew(self.view[: self.used], 2 * end)
            self._searched = searched
        self.view[self.used : end] = part
        self.used = end
        if self._most is not None and end > self._most:
            self._skip_if_long()

    def take_lines(self) -> Iterator[Block]:
        """Yield the whole lines, if there are any, and keep what is after them."""
        cut = _after_last_newline(self.view, self.used, self._searched)
        # A line may be many pieces long: each is searched once, or time would grow with the square of its length.
        self._searched = self.used
        if cut:
            block, rest = self._buffer.slice(0, cut), self.view[cut : self.used]
            self._renew(rest, max(self._block_bytes, len(rest)))
            self._searched = self.used
            self._position += cut
            yield block

    def take_rest(self) -> Iterator["Block | LongLine"]:
        """Yield what is left at the end of the content; a last line without newline gets one."""
        if self._skipped is not None:
            yield self._take_skipped()
        if self.used:
            if self.view[self.used - 1] != _NEWLINE:
                self._most = None  # one byte more is not one too many
                yield from self.append(b"\n")
            yield from self.take_lines()

    def _skip_if_long(self) -> None:
        """Skip the block's only line from here on. Whole lines were taken before, so it begins the block."""
        if _after_last_newline(self.view, self.used, self._searched):
            return
        self._skipped = LongLine(self._position, self.used, bytes(self.view[:_SHOWN_BYTES]))
        self._renew(b"", self._block_bytes)

    def _take_skipped(self) -> LongLine:
        assert self._skipped is not None  # noqa: S101  # asked by the callers
        line, self._skipped = self._skipped, None
        self._position += line.num_bytes
        return line


def _after_last_newline(view: memoryview, end: int, least: int = 0) -> int:
    while end > least:
        start = max(least, end - _TAIL_BYTES)
        found = bytes(view[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


# Line numbers in quarantine: a reader counts from the start of its block, an editor from the start of the file.
#
# How many lines lie before a block is known when all blocks before it are done, which is when the run has ended. So a
# reader of lines notes how many lines each block had, as facts of its partition (`StageContext.note_fact`), and
# completes the records from the facts of all partitions. A file that was read in one piece needs none of this: its
# records say `block_start=None`, which means that the number is final.

_LinesOfBlock = tuple[str, int, int]  # source, first byte of the block, lines in it
_facts = msgspec.json.Decoder(_LinesOfBlock)


def note_lines(context: StageContext, read: Mapping[tuple[str, int], int]) -> None:
    """Note how many lines were in blocks, each given by its file and its first byte."""
    for (path, start), count in read.items():
        context.note_fact((_as_in_records(path), start, count))


def numbers_from(facts: Iterable[bytes]) -> Completer:
    """Return what turns the line numbers of records, counted from a block's start, into those of the file."""
    counts: dict[str, dict[int, int]] = {}
    for fact in facts:
        source, start, count = _facts.decode(fact)
        counts.setdefault(source, {})[start] = count
    lines_before = {source: _LinesBefore(blocks) for source, blocks in counts.items()}

    def complete(entry: Entry) -> bool:
        source, start, line = entry["source"], entry["block_start"], entry["line"]
        if not isinstance(line, int) or not isinstance(start, int) or source not in lines_before:
            return False
        entry["line"] = line + lines_before[str(source)].of(start)
        entry["block_start"] = None
        return True

    return complete


def with_final_numbers(records: Iterable[Quarantined], read: Mapping[tuple[str, int], int]) -> list[Quarantined]:
    """Return the records of a file whose blocks are all in `read`: nothing is left to be completed."""
    before = _LinesBefore({start: count for (_, start), count in read.items()})
    return [
        record
        if record.line is None or record.block_start is None
        else replace(record, line=record.line + before.of(record.block_start), block_start=None)
        for record in records
    ]


class _LinesBefore:
    """How many lines of a file lie before a byte at which a block begins."""

    def __init__(self, blocks: Mapping[int, int]) -> None:
        self._starts = sorted(blocks)
        self._sums = [0, *accumulate(blocks[start] for start in self._starts)]

    def of(self, start: int) -> int:
        return self._sums[bisect_left(self._starts, start)]


def _as_in_records(path: str) -> str:
    """A path as quarantine files name it: without secrets, and as text even where a name is not UTF-8."""
    return without_url_secrets(path).encode("utf-8", "backslashreplace").decode()
