"""`CsvReader`: comma-separated values, every column a string.

CSV has no types, so none are guessed: `00123` stays what it is. An empty field is an empty string. A row whose number
of fields is not the header's goes to quarantine.
"""

import functools
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, DamagedFile, ReadError
from gristmill.stages.context import Quarantined
from gristmill.stages.io.files import ReadingStage, Wrong, lost_part, planned
from gristmill.stages.io.line_blocks import BOM
from gristmill.stages.io.table_reading import TableReadingStage, damaged, in_blocks
from gristmill.stages.text.io.reader.document_reader import NOT_UTF8, _DocumentReader, wrong_for_csv
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, read_start
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileSlice

BAD_UTF8, BROKEN_CSV = "bad_utf8", "broken_csv"
KINDS = {BAD_UTF8: NOT_UTF8, BROKEN_CSV: "The row of a CSV file does not have as many fields as its header."}
_SAMPLE_BYTES = 1_000_000
_LEAST_BLOCK_BYTES = 1 << 20

# Arrow refuses a whole block for one row that both has too many fields and is not UTF-8. So it only gets UTF-8: other
# bytes are replaced by their numbers, between characters that Unicode keeps out of texts, until the row is known.
_MARK = "\ufdd0\ufdd1{:02x}\ufdd1\ufdd0"
_MARKED = re.compile("\ufdd0\ufdd1([0-9a-f]{2})\ufdd1\ufdd0")
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")  # what Python makes of such a byte


@dataclass(eq=False)
class CsvReader(_DocumentReader):
    """Read CSV files with a header line; each file is one batch, unless it has more than four blocks (128 MiB).

    `read_kwargs` takes `storage_options`, `delimiter` and `quote_char`. Quoted fields may contain newlines, so files
    are read from their beginning, a block at a time. A row must fit into a block.
    """

    limits_documents: ClassVar[bool] = False
    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "delimiter", "quote_char"})

    file_extensions: list[str] = field(default_factory=lambda: [".csv"])
    name: str = "csv_reader"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("delimiter", "quote_char"):
            value = (self.read_kwargs or {}).get(key, ",")
            if not isinstance(value, str) or len(value) != 1:
                raise ConfigError(f"{self.name}: expected {key} to be one character; got {value!r}")

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        return CsvReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class CsvReaderStage(TableReadingStage[DocumentBatch]):
    """Read CSV files."""

    name: str = field(default="csv_reader", kw_only=True)

    format_name: ClassVar[str] = "CSV"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_csv(sample, is_whole=is_whole)

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        return self._header(read_start(path, _SAMPLE_BYTES, storage_options=options), path)

    def _parse_options(self, bad: list[tuple[int | None, str, str]]) -> "pa.csv.ParseOptions":
        import pyarrow.csv

        def skip(row: "pa.csv.InvalidRow") -> str:
            error = f"expected {row.expected_columns} fields; got {row.actual_columns}"
            bad.append((row.number, error, row.text))
            return "skip"

        known = {key: value for key, value in (self.read_kwargs or {}).items() if key in ("delimiter", "quote_char")}
        return pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip, **known)

    def _header(self, content: bytes, path: str) -> list[str]:
        """The column names: all must be told to Arrow to be read as strings."""
        import csv
        import io

        known = {"delimiter": "delimiter", "quote_char": "quotechar"}
        given = {known[key]: str(value) for key, value in (self.read_kwargs or {}).items() if key in known}
        text = content[:_SAMPLE_BYTES].removeprefix(BOM).decode("utf-8", "replace")
        try:
            rows = csv.reader(io.StringIO(text), **given)  # type: ignore[arg-type]
            return next(filter(None, rows), [])  # Arrow passes over blank lines too
        except csv.Error as error:
            raise ReadError(f"{path}: expected a CSV header; got {error}") from error

    def tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        """The rows, a block of the content at a time; a small file is one block, so it is one table."""
        with InputFile(part.path, planned=planned(part), storage_options=options) as file:
            lines = _WholeLines(file.pieces(), self._quote(), self._arrow_block_bytes)
            names: list[str] = []
            while not names and (start := lines.read(_SAMPLE_BYTES)):  # more than once only through blank lines
                names = self._header(start, part.path)
            if any(_MARKED.search(name) for name in names):
                raise damaged(part, "a CSV header in UTF-8", "\ufffd".join(_MARKED.split(",".join(names))[::2]))
            if names:
                yield from in_blocks(self._parsed(part, lines.from_start(start), names), self._most_at_once)
        if lines.damage is not None:
            self.context.quarantine(lost_part(lines.damage, part.path))

    def _parsed(self, part: FileSlice, source: "_WholeLines", names: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.csv

        bad: list[tuple[int | None, str, str]] = []
        # UTF-8 was checked before: Arrow would refuse all rows of a block for one.
        strings = dict.fromkeys(names, pa.string())
        convert = pyarrow.csv.ConvertOptions(column_types=strings, strings_can_be_null=False, check_utf8=False)
        # One thread: only then does Arrow know the numbers of the rows it refuses. A row must fit into a block.
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=self._arrow_block_bytes)
        num_blocks = 0
        held: pa.RecordBatch | None = None  # one batch behind: which one is the last is known only at the end
        refused = ""  # the last row that was refused
        try:
            reader = pyarrow.csv.open_csv(pa.PythonFile(source, "r"), read, self._parse_options(bad), convert)
            held = pa.RecordBatch.from_pylist([], schema=reader.schema)  # the columns of a file without rows
            for batch in reader:
                refused = bad[-1][2] if bad else refused
                self._report(bad, part.path)
                yield self._in_utf8(held, source, part.path)
                held = batch
                num_blocks += 1
        except pa.ArrowException as error:
            if held is not None:
                yield self._in_utf8(held, source, part.path)
            damage = damaged(part, "CSV in UTF-8", error)
            if not is_compressed(part.path):
                damage.position = min(source.end_of_rows(num_blocks), part.file_size)
                damage.lost_bytes = part.file_size - damage.position
            raise damage from error
        finally:
            source.stop()
            refused = bad[-1][2] if bad else refused
            self._report(bad, part.path)
        # The damage is in a quoted field: the row would be a document without its end.
        if source.ends_in_quotes and refused.encode().count(self._quote()) % 2 == 0:
            held = held.slice(0, max(0, held.num_rows - 1))
        yield self._in_utf8(held, source, part.path)

    @property
    def _arrow_block_bytes(self) -> int:
        return max(self.block_bytes, _LEAST_BLOCK_BYTES)

    def _quote(self) -> bytes:
        return str((self.read_kwargs or {}).get("quote_char", '"')).encode()

    def _in_utf8(self, batch: pa.RecordBatch, source: "_WholeLines", path: str) -> pa.RecordBatch:
        """The rows of a batch that are UTF-8; the others go to quarantine."""
        if not source.has_marks:
            return batch
        import pyarrow.compute as pc

        marked = (pc.match_substring_regex(column, _MARKED.pattern) for column in batch.columns)
        suspects = pc.indices_nonzero(functools.reduce(pc.or_, marked)).to_pylist()
        bad = {row for row in suspects if not self._is_utf8(batch, row, path)}
        return batch.take(pa.array([row for row in range(batch.num_rows) if row not in bad], pa.int64()))

    def _is_utf8(self, batch: pa.RecordBatch, number: int, path: str) -> bool:
        row = [_as_it_was(column[number].as_py()) for column in batch.columns]
        try:
            for value in row:
                value.decode()
        except UnicodeDecodeError as error:
            message = f"expected UTF-8; got {error.reason} in {error.object[error.start : error.start + 4]!r}"
            shown = ",".join(value.decode("utf-8", "replace") for value in row)
            self.context.quarantine(Quarantined(error=message, kind=BAD_UTF8, document=shown, source=path))
            return False
        return True

    def _report(self, bad: list[tuple[int | None, str, str]], path: str) -> None:
        for number, problem, text in bad:
            shown = _as_it_was(text).decode("utf-8", "replace")
            record = Quarantined(error=problem, kind=BROKEN_CSV, document=shown, source=path, line=number)
            self.context.quarantine(record)
        bad.clear()


def _as_it_was(text: str) -> bytes:
    """A text as bytes, with each mark replaced by the byte it stands for."""
    return _MARKED.sub(lambda mark: chr(0xDC00 + int(mark[1], 16)), text).encode("utf-8", "surrogateescape")


def _is_utf_8(content: bytes) -> bool:
    """Whether all of it is, by Arrow: where not all is ASCII, that takes a tenth of the time of Python's decoder."""
    if content.isascii():
        return True
    offsets = pa.array([0, len(content)], pa.int64()).buffers()[1]
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(content)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _whole_characters(content: bytes) -> int:
    """Where to cut this so that no character is cut in two; its length if it is not UTF-8 there anyway."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:  # the first byte of a character says how many there are
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(content) - back if length > back else len(content)
    return len(content)


class _WholeLines:
    """The content of a file to be read once, up to the last whole line before the damage if there is any.

    It is in UTF-8; what is not has marks in its place, and `has_marks` says if there are any.
    """

    closed = False

    def __init__(self, pieces: Iterator[bytes], quote: bytes, most_held: int) -> None:
        self._lines = self._whole(pieces)
        self._quote, self._most_held = quote, most_held
        self._left = b""
        self._num_quotes = 0
        self._is_stopped = False
        self._reading = threading.Lock()
        self.damage: DamagedFile | None = None
        self.has_marks = False
        self._ends: list[int] = []  # of the last line in each block that was given, counted from the beginning
        self._given = 0

    @property
    def ends_in_quotes(self) -> bool:
        """Whether the damage seems to be in a quoted field, which may have held more lines."""
        return self.damage is not None and not self.damage.is_complete and self._num_quotes % 2 == 1

    def _whole(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        rest: list[bytes] = []
        held = 0
        try:
            for piece in pieces:
                # A line of more than a block is Arrow's to refuse: nothing is gained by holding all of it.
                cut = _whole_characters(piece) if held > self._most_held else piece.rfind(b"\n") + 1
                if cut:
                    yield b"".join([*rest, piece[:cut]])
                    rest, held = [], 0
                rest.append(piece[cut:])
                held += len(piece) - cut
        except DamagedFile as error:
            self.damage = error
            if not error.is_complete:
                return
        yield b"".join(rest)

    def from_start(self, start: bytes) -> "_WholeLines":
        """Give back what was read ahead."""
        self._left, self._ends, self._given = start + self._left, [], 0
        return self

    def read(self, size: int) -> bytes:
        with self._reading:
            if self._is_stopped:
                return b""
            found = [self._left]
            length = len(self._left)
            while length < size and (more := next(self._lines, None)) is not None:
                more = self._marked(more)
                self._num_quotes += more.count(self._quote)
                found.append(more)
                length += len(more)
            content = b"".join(found)
            self._left, content = content[size:], content[:size]
            self._ends.append(self._given + content.rfind(b"\n") + 1)
            self._given += len(content)
            return content

    def end_of_rows(self, num_blocks: int) -> int:
        """Where the last row ends in the first `num_blocks` blocks that Arrow was given."""
        return max(self._ends[:num_blocks], default=0)

    def _marked(self, content: bytes) -> bytes:
        if _is_utf_8(content):
            return content
        self.has_marks = True
        text = content.decode("utf-8", "surrogateescape")
        return _NOT_UTF_8.sub(lambda byte: _MARK.format(ord(byte[0]) - 0xDC00), text).encode()

    def stop(self) -> None:
        """Give nothing from now on: Arrow's thread reads ahead even when the rows are no longer wanted."""
        with self._reading:
            self._is_stopped = True

    def close(self) -> None:
        """Do nothing: the code that opened the file closes it."""
